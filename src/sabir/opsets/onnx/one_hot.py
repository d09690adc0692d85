"""OneHot: indices as vectors with one element switched on."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value, is_nonnegative
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import as_dim
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input, from_front
from sabir.opsets.families.shapes.extents import indices, shape_of, unsqueezed, wrapped
from sabir.opsets.families.shapes.ranks import as_number, check_one, check_shape
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
)

one_hot = Operator(
    "OneHot",
    summary="For each index a vector of `depth` elements: `values[1]` at the index, `values[0]` elsewhere.",
)

T1 = Constraint("T1", NUMBERS)
T2 = Constraint("T2", NUMBERS)
T3 = Constraint("T3", CLASSIC)
_INDICES = "Of any shape, truncated to integers; -1 is the last, and one out of range selects no element."

v9 = one_hot.first(
    9,
    inputs=[
        Input("indices", T1, _INDICES, differentiable=False),
        Input("depth", T2, "One number: the length of the vectors.", differentiable=False),
        Input("values", T3, "Two elements: off, on.", differentiable=False),
    ],
    outputs=[
        Output("output", T3, "The shape of `indices` with `depth` inserted at `axis`.", differentiable=False)
    ],
    attributes=[
        Attribute("axis", "int", "The dimension of the vectors in the output; -1 is the last.", default=-1)
    ],
)
v11 = v9.restate(11, "Negative `indices` count from the back, and so does a negative `axis`.")
v28 = v11.widen(28, T3=BFLOAT16)


@v9.infer
def infer(indices: TensorType, depth: TensorType, values: TensorType, /, *, axis: int) -> TensorType:
    check_one("depth", depth)
    check_shape("values", values, 2)
    if indices.shape is None:
        return TensorType(values.element)
    axis = axis_in(axis, len(indices.shape) + 1)
    length = as_dim(depth.known[0]) if depth.known else None
    if isinstance(length, int) and length < 0:
        raise InferenceError(f"`depth` cannot be {length}")
    if length is not None and not is_nonnegative(length):
        length = None
    return TensorType(values.element, (*indices.shape[:axis], length, *indices.shape[axis:]))


@v9.evaluate
def evaluate_from_front(indices: Array, depth: Array, values: Array, /, *, axis: int) -> Array:
    return _spread(_whole(indices), depth, values, axis)


@v11.evaluate
def evaluate(indices: Array, depth: Array, values: Array, /, *, axis: int) -> Array:
    places = _whole(indices)
    if places.dtype.kind == "i":
        places = places.astype(np.int64)
        places = np.where(places < 0, places + int(as_number("depth", depth)), places)
    return _spread(places, depth, values, axis)


def _whole(indices: Array) -> Array:
    """Return indices as integers; NaN and those out of range become -1 - 2**62, which is no index."""
    if indices.dtype.kind != "f":
        return indices
    huge = ~(np.abs(indices.astype(np.float64)) < 2.0**62)
    return np.where(huge, -1 - 2**62, np.where(huge, 0, indices).astype(np.int64))


def _spread(places: Array, depth: Array, values: Array, axis: int) -> Array:
    check_shape("values", values, 2)
    rank = places.ndim + 1
    axis = axis_in(axis, rank)
    length = int(as_number("depth", depth))
    shape = allotted([*places.shape[:axis], length, *places.shape[axis:]], values.dtype, places.size)
    y: Array = np.empty(shape, values.dtype)
    if not y.size:
        return y  # its depth may be any number
    row = np.arange(length).reshape([-1 if i == axis else 1 for i in range(rank)])
    y[...] = values[:1]
    np.copyto(y, values[1:], where=np.expand_dims(places, axis) == row)
    return y


@v9.lower
def lower_from_front(
    indices: Expression, depth: Expression, values: Expression, /, *, axis: int, call: Lowering
) -> Expression:
    return _lowered(indices, depth, values, axis, call, wraps=False)


@v11.lower
def lower(
    indices: Expression, depth: Expression, values: Expression, /, *, axis: int, call: Lowering
) -> Expression:
    return _lowered(indices, depth, values, axis, call, wraps=not indices.element.startswith("uint"))


def _lowered(
    indices: Expression, depth: Expression, values: Expression, axis: int, call: Lowering, *, wraps: bool
) -> Expression:
    """Compare the indices, as integers or in double, with all places."""
    if as_dim(kernels.content_of(depth)) is None:
        raise NotLowered("`depth` is computed at run time")
    if not loops.same_shape(values.shape, (2,)):
        raise NotLowered("whether there are two values is known at run time only")
    shape, axis = call.shape(), axis_in(axis, indices.rank + 1)
    wide = "double" if indices.is_float else "int64"
    places = loops.cast(indices, wide)
    places = loops.apply("trunc", places) if indices.is_float else places
    if wraps:
        turned = loops.apply("add", places, loops.sized(wide, shape[axis]))
        places = loops.where(loops.apply("lt", places, 0), turned, places)
    places = loops.reshape(places, [1 if i == axis else d for i, d in enumerate(shape)])
    row = loops.cast(loops.count([d if i == axis else 1 for i, d in enumerate(shape)], axis), wide)
    off, on = (loops.reshape(loops.narrow(values, 0, i, 1), ()) for i in range(2))
    return loops.where(loops.apply("eq", places, row), on, off)


def _are_nonnegative(indices: Value) -> bool:
    """Return whether no index is negative, as far as is known."""
    kind = indices.type
    known = contents.ints(kind.known) if isinstance(kind, TensorType) else None
    unsigned = isinstance(kind, TensorType) and kind.element.is_integer and not kind.element.is_signed
    return unsigned or (known is not None and all(i >= 0 for i in known))


@v11.downgrade
def count_from_front(b: Builder, places: Value, depth: Value, values: Value, /, *, axis: int) -> Value:
    """Negative indices, which OneHot:9 ignores, are counted from the front."""
    axis = axis if axis == -1 else from_front([axis], places, more=1)[0]
    return b.OneHot(wrapped(b, places, b.Cast(depth, to=INT64.number)), depth, values, axis=axis)


@v11.upgrade
def keep_negative_off(b: Builder, indices: Value, depth: Value, values: Value, /, *, axis: int) -> Value:
    """Move negative indices, which OneHot:11 counts from the back, behind the last place."""
    if not _are_nonnegative(indices):
        places = typed(b, indices, INT64)
        count = b.Reshape(b.Cast(depth, to=INT64.number), b.initializer("scalar", np.zeros(0, np.int64)))
        indices = b.Where(b.Less(places, b.initializer("zero", np.array(0, np.int64))), count, places)
    return b.OneHot(indices, depth, values, axis=axis)


@v9.downgrade
def compare(b: Builder, places: Value, depth: Value, values: Value, /, *, axis: int) -> Value:
    """Compare the indices with all places, and take one of the two values for each answer."""
    rank = len(shape_of("indices", places)) + 1
    axis = axis_in(axis, rank)
    count = b.Reshape(b.Cast(depth, to=INT64.number), as_input(b, "row", [1]))
    row = unsqueezed(b, indices(b, count), range(1, rank - axis))
    found = b.Equal(unsqueezed(b, b.Cast(places, to=INT64.number), [axis]), row)
    return b.Gather(values, b.Cast(found, to=INT64.number), axis=0)


@v11.gradient
def gradient(
    g: Gradient, indices: Value, depth: Value, values: Value, /, *, axis: int
) -> tuple[None, None, Value]:
    kind = element_of(values).dtype
    off, on = (
        g.ReduceSum(g.Mul(g.dy, g.OneHot(indices, depth, np.array(chosen, kind), axis=axis)), keepdims=0)
        for chosen in ([1, 0], [0, 1])
    )
    return None, None, g.Concat(g.Unsqueeze(off, [0]), g.Unsqueeze(on, [0]), axis=0)


@one_hot.examples
def examples() -> Iterator[Example]:
    off_on = np.array([2, 5], np.float32)
    rows = np.array([[2, 5, 2], [2, 2, 5], [2, 2, 2]], np.float32)
    for opset in (9, 11, 28):
        yield Example(opset, [1, 2, 3], 3, off_on, expect=[rows])
        yield Example(opset, np.array([1, 2, 3], np.uint8), np.array([3.0]), off_on, axis=0, expect=[rows.T])
        yield Example(opset, np.array(1.9), np.int32(2), ["a", "b"], expect=[["a", "b"]])
    yield Example(9, [-1, 1], 2, off_on, expect=[[[2, 2], [2, 5]]])
    for axis in (1, -3, -1):
        table = np.array([[-1, -4], [3, 0]])
        hot = {-1: [0, 0, 1], -4: [0, 0, 0], 3: [0, 0, 0], 0: [1, 0, 0]}
        last = np.array([[hot[i] for i in row] for row in table.tolist()])
        yield Example(11, table, 3, [0, 1], axis=axis, expect=[np.moveaxis(last, -1, axis)])
    wild = np.array([np.nan, np.inf, -1e30, -0.5])
    yield Example(11, wild, 2, off_on, expect=[[[2, 2]] * 3 + [[5, 2]]])
    yield Example(11, np.array([2**64 - 1], np.uint64), 1, off_on, expect=[[[2]]])
    yield Example(11, np.zeros((0, 2), np.int64), 3, off_on, expect=[np.zeros((0, 2, 3), np.float32)])
    yield Example(11, [0], 0, off_on, expect=[np.zeros((1, 0), np.float32)])
