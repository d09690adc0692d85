"""Compress: the parts of a tensor that a condition selects."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, Dim, TensorType, Value, total
from sabir.opsets.families.indexing.move_gradients import moved_back, numbers_of
from sabir.opsets.families.indexing.places import check_has_kernels, true_places
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input, from_front
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    BOOL,
    CLASSIC,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

compress = Operator(
    "Compress", summary="The slices of `input` along `axis`, or its elements, for which `condition` is true."
)

T = Constraint("T", CLASSIC)
T1 = Constraint("T1", BOOL)

v9 = compress.first(
    9,
    inputs=[
        Input("input", T, "A tensor of rank 1 or more.", differentiable=True),
        Input(
            "condition",
            T1,
            "One flag for each slice, or element; those past its end are dropped.",
            differentiable=False,
        ),
    ],
    outputs=[Output("output", T, "The selected part; a vector without `axis`.", differentiable=True)],
    attributes=[
        Attribute("axis", "int", "The dimension to select from, from the back if negative; absent: elements.")
    ],
)
v11 = v9.restate(11, "A negative `axis` counts from the back.")
v28 = v11.widen(28, T=BFLOAT16)


v9.absent("lower", "the shape of the result depends on the contents of the operands")


@v9.infer
def infer(x: TensorType, condition: TensorType, /, *, axis: int | None) -> TensorType:
    flags = condition.known
    check_rank("condition", condition, 1)
    picked: Dim = None if flags is None else total(int(f) if isinstance(f, int) else None for f in flags)
    if axis is None:
        kind = TensorType(x.element, (picked,))
    elif x.shape is None:
        return TensorType(x.element)
    else:
        axis = axis_in(axis, len(x.shape))
        kind = TensorType(x.element, (*x.shape[:axis], picked, *x.shape[axis + 1 :]))
    mask = contents.array_of(condition)
    if mask is not None:
        _check_places(np.flatnonzero(mask), x.size if axis is None or x.shape is None else x.shape[axis])
    return kind if mask is None else contents.moved(kind, lambda known: _picked(known, mask, axis), x)


@v9.evaluate
def evaluate(x: Array, condition: Array, /, *, axis: int | None) -> Array:
    check_rank("condition", condition, 1)
    return _picked(x, condition, None if axis is None else axis_in(axis, x.ndim))


@v9.parts
def parts(b: Builder, x: Value, condition: Value, /, *, axis: int | None) -> Value:
    """Find the places of true flags in one kernel, whose result has room for all; take the data there."""
    check_has_kernels(x)
    places = true_places(b, condition)
    if axis is None:
        return b.Gather(b.Reshape(x, as_input(b, "row", [-1])), places, axis=0)
    return b.Gather(x, places, axis=axis)


def _picked(x: Array, condition: Array, axis: int | None) -> Array:
    passed_over(condition)
    places = np.flatnonzero(condition)
    _check_places(places, x.size if axis is None else x.shape[axis])
    return np.take(x, places, axis)


def _check_places(places: Array, count: Dim) -> None:
    """Raise InferenceError where a true flag is beyond the data; more false ones are allowed."""
    if places.size and isinstance(count, int) and places[-1] >= count:
        raise InferenceError(f"`condition` selects index {places[-1]} of {count}")


@v11.downgrade
def axis_from_front(b: Builder, x: Value, condition: Value, /, *, axis: int | None) -> Value:
    return b.Compress(x, condition, axis=None if axis is None else from_front([axis], x)[0])


@v9.downgrade
def gather(b: Builder, x: Value, condition: Value, /, *, axis: int | None) -> Value:
    flags = contents.array_of(condition.type) if isinstance(condition.type, TensorType) else None
    if flags is None:
        raise Unconvertible("`condition` is computed at run time, and no older operator finds its places")
    places = as_input(b, "places", np.flatnonzero(flags))
    if axis is None:
        return b.Gather(b.Reshape(x, as_input(b, "row", [-1])), places, axis=0)
    return b.Gather(x, places, axis=axis)


@v11.gradient
def gradient(g: Gradient, x: Value, condition: Value, /, *, axis: int | None) -> tuple[Value, None]:
    return moved_back(g, x, g.Compress(numbers_of(g, x), condition, axis=axis)), None


@compress.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    for opset in (9, 11, 28):
        yield Example(opset, x, [False, True, True], axis=0, expect=[x[1:]])
        yield Example(opset, x, [False, True], axis=1, expect=[[[2], [4], [6]]])
        yield Example(opset, x, [False, True, False, False, True], expect=[[2, 5]])
        yield Example(opset, x, [True], axis=0, expect=[x[:1]])
    yield Example(11, x, [True, False], axis=-1, expect=[[[1], [3], [5]]])
    yield Example(11, x, [True, False, False, False], axis=0, expect=[x[:1]])
    words = ["a", "b", "c"]
    yield Example(11, words, [True, False, True], expect=[["a", "c"]])
    yield Example(11, x, np.zeros(0, bool), axis=0, expect=[x[:0]])
    brain = np.array([1, 2], ml_dtypes.bfloat16)
    yield Example(28, brain, [False, True], axis=0, expect=[brain[1:]])
