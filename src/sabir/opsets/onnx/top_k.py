"""TopK: the largest or smallest elements along an axis, and their indices."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import Builder, Dim, TensorType, Value, product
from sabir.loops import Expression, NotLowered, Size
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.axes import as_input, as_ints
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import passed_over, set_aside, sizes_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

top_k = Operator(
    "TopK",
    summary="The `K` largest (or smallest) elements along `axis` in order, equal ones by index, and their"
    " indices; NaN counts as larger than any number.",
)

T = Constraint("T", FLOATS)
Places = Constraint("I", tensors("int64"))

v1 = top_k.first(
    1,
    inputs=[Input("X", T, "A tensor of rank 1 or more.", differentiable=True)],
    outputs=[
        Output("Values", T, "The elements found, `K` along `axis`.", differentiable=True),
        Output("Indices", Places, "Their indices along `axis`, in the same shape.", differentiable=False),
    ],
    attributes=[
        Attribute("axis", "int", "The dimension to search, counted from the back if negative.", default=-1),
        Attribute("k", "int", "The number of elements to find.", required=True),
    ],
)
v10 = v1.evolve(
    10,
    "`k` moves from attribute to input.",
    inputs=[
        Input("X", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("K", "tensor(int64)", "One number: the number of elements to find.", differentiable=False),
    ],
    drop=["k"],
)
v11 = v10.extend(
    11,
    "`largest` selects the smallest elements, `sorted` any order; all numbers are admitted.",
    attributes=[
        Attribute("sorted", "int", "0: any order (they are sorted all the same).", default=1),
        Attribute("largest", "int", "1 finds the largest elements, 0 the smallest.", default=1),
    ],
    widen={"T": NUMBERS},
)
v24 = v11.widen(24, T=BFLOAT16)

_SORTED = 8  # the time to sort elements by the time to read them
_ORDERED = 28  # bytes, about, of an element during the search
_LARGE, _MANY_TIMES_K = 256, 4  # from here on it is faster to select the elements before sorting


@v1.infer
def infer_attribute(x: TensorType, /, *, axis: int, k: int) -> tuple[TensorType, TensorType]:
    return _found(x, axis, k)


@v10.infer
def infer(x: TensorType, k: TensorType, /, *, axis: int) -> tuple[TensorType, TensorType]:
    check_shape("K", k, 1)
    counts = sizes_in("K", k)
    return _found(x, axis, counts[0] if counts else None)


def _found(x: TensorType, axis: int, k: Dim) -> tuple[TensorType, TensorType]:
    if x.shape is None:
        return TensorType(x.element), TensorType(INT64)
    axis = axis_in(axis, len(x.shape))
    size = x.shape[axis]
    if isinstance(k, int) and (k < 0 or (isinstance(size, int) and k > size)):
        raise InferenceError(f"{k} elements cannot be found in a dimension of {size}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return TensorType(x.element, shape), TensorType(INT64, shape)


@v1.evaluate
def evaluate_attribute(x: Array, /, *, axis: int, k: int) -> tuple[Array, Array]:
    return _picked(x, k, axis, largest=True)


@v10.evaluate
def evaluate_largest(x: Array, k: Array, /, *, axis: int) -> tuple[Array, Array]:
    return _picked(x, _number(k), axis, largest=True)


@v11.evaluate
def evaluate(x: Array, k: Array, /, *, axis: int, sorted: int, largest: int) -> tuple[Array, Array]:  # ruff: ignore[builtin-argument-shadowing]  the attribute's name
    return _picked(x, _number(k), axis, largest=bool(largest))


def _number(k: Array) -> int:
    """Return the number of elements to find; the text requires a 1-D tensor of one element."""
    check_shape("K", k, 1)
    return int(k[0])


def _picked(x: Array, k: int, axis: int, *, largest: bool) -> tuple[Array, Array]:
    axis = axis_in(axis, x.ndim)
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"{k} elements cannot be found in a dimension of {n}")
    passed_over(x, _SORTED)
    set_aside(x.size, _ORDERED, "the order of the elements")
    rows = np.moveaxis(x, axis, -1)
    keys = widened(rows)
    if n >= _LARGE and k * _MANY_TIMES_K <= n and k > 0 and not np.isnan(keys).any():
        candidates = _candidates(keys, k, largest=largest)
        order = _order(np.take_along_axis(keys, candidates, -1), largest=largest)
        places = np.take_along_axis(candidates, order, -1)
    else:
        places = _order(keys, largest=largest)[..., :k]
    values = np.take_along_axis(rows, places, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis).astype(np.int64, copy=False)


def _order(keys: Array, *, largest: bool) -> Array:
    """Return the stable order; for the largest, the reversed order of the reversed rows."""
    if not largest:
        return np.argsort(keys, axis=-1, kind="stable")
    return keys.shape[-1] - 1 - np.argsort(keys[..., ::-1], axis=-1, kind="stable")[..., ::-1]


def _candidates(keys: Array, k: int, *, largest: bool) -> Array:
    """Return the indices of the k best in each row: all beyond the k-th, then the first that equal it."""
    place = keys.shape[-1] - k if largest else k - 1
    limit = np.partition(keys, place, axis=-1)[..., place, None]
    beyond = keys > limit if largest else keys < limit
    equal = keys == limit
    missing = k - np.count_nonzero(beyond, axis=-1)[..., None]
    chosen = beyond | (equal & (np.cumsum(equal, axis=-1) <= missing))
    return np.nonzero(chosen)[-1].reshape(*keys.shape[:-1], k)


@v1.lower
def lower_attribute(x: Expression, /, *, axis: int, k: int) -> tuple[Expression, Expression]:
    return _lowered(x, k, axis, largest=True)


@v10.lower
def lower_largest(x: Expression, k: Expression, /, *, axis: int) -> tuple[Expression, Expression]:
    return _lowered(x, _size(k), axis, largest=True)


@v11.lower
def lower(x: Expression, k: Expression, /, *, axis: int, largest: int) -> tuple[Expression, Expression]:
    return _lowered(x, _size(k), axis, largest=bool(largest))


def _size(k: Expression) -> Size:
    """Return the number of elements to find, which may follow from sizes."""
    found = kernels.sizes_of(k, "`K`")
    if k.rank != 1 or len(found) != 1:
        raise NotLowered("`K` is not one number")
    return found[0]


def _lowered(x: Expression, k: Size, axis: int, *, largest: bool) -> tuple[Expression, Expression]:
    """Select the indices; take the values from a single row of all."""
    axis = axis_in(axis, x.rank)
    places = loops.best(x, axis, k, largest=largest)
    if x.rank == 1:
        return loops.take(x, places, 0), places
    indices = [places if i == axis else loops.count(places.shape, i) for i in range(x.rank)]
    row = loops.reshape(x, (product(x.shape) or 0,))
    return loops.take(row, kernels.numbered(indices, x.shape), 0), places


@v10.upgrade
def k_becomes_an_input(b: Builder, x: Value, /, *, axis: int, k: int) -> tuple[Value, ...]:
    return b.TopK(x, as_input(b, "K", [k]), outputs=2, axis=axis)


@v10.downgrade
def k_becomes_an_attribute(b: Builder, x: Value, k: Value, /, *, axis: int) -> tuple[Value, ...]:
    known = as_ints("K", k)
    if len(known) != 1:
        raise Unconvertible(f"`K` must be one number, and is {list(known)}")
    return b.TopK(x, outputs=2, axis=axis, k=known[0])


@v11.gradient
def gradient(g: Gradient, x: Value, k: Value, /, *, axis: int) -> tuple[Value, None]:
    return g.ScatterElements(g.zeros(x), g.y(1), g.dy, axis=axis), None


@top_k.examples
def examples() -> Iterator[Example]:
    x = np.array([[0, 3, 1, 3], [4, -5, 4, 4], [8, 9, -np.inf, np.inf]], np.float32)
    best = [[[3, 3], [4, 4], [np.inf, 9]], [[1, 3], [0, 2], [3, 1]]]
    columns = [[[8, 9, 4, np.inf]], [[2, 2, 1, 2]]]
    yield Example(1, x, k=2, outputs=2, expect=best)
    yield Example(1, x, k=1, axis=0, outputs=2, expect=columns)
    for opset in (10, 11, 24):
        yield Example(opset, x, [2], outputs=2, expect=best)
        yield Example(opset, x, [1], axis=-2, outputs=2, expect=columns)
    least = [[[0, 1], [-5, 4], [-np.inf, 8]], [[0, 2], [1, 0], [2, 0]]]
    yield Example(11, x, [2], largest=0, outputs=2, expect=least)
    for kind in (np.float32, np.float16):
        holes = np.array([1, np.nan, 2, np.nan], kind)
        yield Example(11, holes, [3], outputs=2, expect=[[np.nan, np.nan, 2], [1, 3, 2]])
        yield Example(11, holes, [3], largest=0, outputs=2, expect=[[1, 2, np.nan], [0, 2, 1]])
    whole = np.array([0, 255, 7], np.uint8)
    yield Example(11, whole, [2], outputs=2, expect=[[255, 7], [1, 2]])
    yield Example(11, [-(2**63), 5], [1], largest=0, sorted=0, outputs=2, expect=[[-(2**63)], [0]])
    yield Example(24, np.array([1, 3, 2], ml_dtypes.bfloat16), [1], outputs=2, expect=[[3], [1]])
    yield Example(11, x, [0], outputs=2, expect=[x[:, :0], np.zeros((3, 0), np.int64)])
    long = (np.arange(600) * 7 % 50).astype(np.float32).reshape(2, 300)  # 49 at 7, 57 ... and 0 at 0, 50 ...
    yield Example(11, long, [3], outputs=2, expect=[np.full((2, 3), 49, np.float32), [[7, 57, 107]] * 2])
    columns = [np.zeros((3, 2), np.float32), np.array([[0, 50, 100]] * 2).T]
    yield Example(11, long.T, [3], axis=0, largest=0, outputs=2, expect=columns)
