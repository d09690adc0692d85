"""ReduceSumInteger: sums of integers of 8 bits, in 32 bits."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.elements import INT32, UINT32, ElementType
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.shapes import axes_in
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

reduce_sum_integer = Operator(
    "ReduceSumInteger",
    domain="com.microsoft",
    summary="Sums over some axes: int32 of int8, uint32 of uint8.",
    body_opset=18,
)

T1 = Constraint("T1", tensors("int8", "uint8"))
T2 = Constraint("T2", tensors("int32", "uint32"))

v1 = reduce_sum_integer.first(
    1,
    inputs=[Input("data", T1, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("reduced", T2, "The sums.", differentiable=False)],
    attributes=[
        Attribute("axes", "ints", "The axes to sum over; all if there are none.", required=True),
        Attribute("keepdims", "int", "1: the axes stay, with size 1; 0: they are removed.", required=True),
    ],
)

v1.absent("gradient", "integers have no gradients")


def _wide(narrow: ElementType) -> ElementType:
    return UINT32 if narrow.name.startswith("u") else INT32


@v1.infer
def infer(data: TensorType, /, *, axes: Sequence[int], keepdims: int) -> TensorType:
    wide = _wide(data.element)
    if data.shape is None:
        return TensorType(wide, () if not axes and not keepdims else None)
    gone = _summed(axes, len(data.shape))
    dims: list[Dim] = [1 if i in gone else d for i, d in enumerate(data.shape) if keepdims or i not in gone]
    return TensorType(wide, tuple(dims))


def _summed(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    return axes_in(axes, rank) or tuple(range(rank))


@v1.evaluate
def evaluate(data: Array, /, *, axes: Sequence[int], keepdims: int) -> Array:
    passed_over(data)
    wide: np.dtype[Any] = np.dtype(np.uint32 if data.dtype.kind == "u" else np.int32)
    return np.asarray(np.sum(data, _summed(axes, data.ndim), wide, keepdims=bool(keepdims)))


@v1.body
def body(b: Builder, data: Value, /, *, axes: Sequence[int], keepdims: int) -> Value:
    wide = b.Cast(data, to=_wide(element_of(data)).number)
    return reductions.call(b, "ReduceSum", wide, axes, keepdims=keepdims)


@reduce_sum_integer.examples
def examples() -> Iterator[Example]:
    x = np.array([[[100, 100], [1, 2]], [[100, 50], [3, 4]]])
    for kind, wide in ((np.int8, np.int32), (np.uint8, np.uint32)):
        rows = np.array([[[200], [3]], [[150], [7]]], wide)
        yield Example(1, x.astype(kind), axes=[-1], keepdims=1, expect=[rows])
        yield Example(1, x.astype(kind), axes=[2], keepdims=0, expect=[rows[..., 0]])
        yield Example(1, x.astype(kind), axes=[0, 1], keepdims=0, expect=[np.array([204, 156], wide)])
        yield Example(1, x.astype(kind), axes=[], keepdims=0, expect=[wide(360)])
        yield Example(1, np.zeros((0, 2), kind), axes=[0], keepdims=0, expect=[np.zeros(2, wide)])
