"""DynamicSlice: a part of a tensor, by start and end along some axes, which are inputs."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.building.removals import removed
from sabir.opsets.families.indexing import slices
from sabir.opsets.families.indexing.indexing import INDEX_TYPES
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output

dynamic_slice = Operator(
    "DynamicSlice", summary="The part of `data` from `starts` up to `ends`, along each of `axes`."
)

T = Constraint("T", CLASSIC)
Tind = Constraint("Tind", INDEX_TYPES)

v1 = dynamic_slice.first(
    1,
    inputs=[
        Input("data", T, "A tensor of any shape."),
        Input("starts", Tind, "The first index on each axis; from the back if negative, clamped."),
        Input("ends", Tind, "The exclusive end on each axis; from the back if negative, clamped."),
        Input("axes", Tind, "The axes to slice; the first ones when absent.", optional=True),
    ],
    outputs=[Output("output", T, "The part, of the rank of `data`.")],
    unpublished=True,
)
v1.absent("body", "Slice has inputs since opset 10, for which a conversion writes that")
v10 = removed(v1, "Slice has the same inputs.")


@v1.infer
def infer(
    data: TensorType, starts: TensorType, ends: TensorType, axes: TensorType | None = None, /
) -> TensorType:
    return slices.infer(data, starts, ends, axes)


@v1.evaluate
def evaluate(data: Array, starts: Array, ends: Array, axes: Array | None = None, /) -> Array:
    return slices.evaluate(data, starts, ends, axes)


@v1.lower
def lower(
    data: Expression, starts: Expression, ends: Expression, axes: Expression | None = None, /,
    *, call: Lowering,
) -> Expression:  # fmt: skip
    return slices.lower(data, starts, ends, axes, call=call)


@v10.upgrade
def take_the_new_name(
    b: Builder, data: Value, starts: Value, ends: Value, axes: Value | None = None, /
) -> Value:
    return b.Slice(data, starts, ends, axes)


@dynamic_slice.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    for opset in (1, 9):
        for kind in (np.int32, np.int64):
            at = [np.array(n, kind) for n in ([1, 0], [2, 3], [0, 1])]
            yield Example(opset, x, *at, expect=[[[5, 6, 7]]])
            yield Example(opset, x, np.array([0, 1], kind), np.array([-1, 1000], kind), expect=[[[2, 3, 4]]])
    yield Example(9, x, [-2], [9], [-1], expect=[x[:, 2:]])
    yield Example(9, ["a", "b"], [1], [2], expect=[["b"]])
    yield Example(9, x, [3], [1], [1], expect=[x[:, :0]])
