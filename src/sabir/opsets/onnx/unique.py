"""Unique: the elements or parts of a tensor, without duplicates."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.loops import ROWS_OF_DISTINCT
from sabir.opsets.families.indexing import duplicates
from sabir.opsets.families.indexing.places import check_has_kernels
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    INTERNAL,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
)

unique = Operator(
    "Unique",
    summary="The unique elements of `X`, or parts along `axis`, with their first indices, inverse indices and"
    " counts; NaN equals NaN and is last.",
)

_FEW = 64  # columns, for each of which numpy makes an array

T = Constraint("T", CLASSIC)


def _places(name: str, doc: str) -> Output:
    return Output(name, "tensor(int64)", doc, optional=True, differentiable=False)


v11 = unique.first(
    11,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=False)],
    outputs=[
        Output("Y", T, "The unique elements as a vector, or the unique parts.", differentiable=False),
        _places("indices", "The first index in `X` of each element, or part, of `Y`."),
        _places("inverse_indices", "The index in `Y` of each element, or part, of `X`."),
        _places("counts", "The number of occurrences in `X` of each element, or part, of `Y`."),
    ],
    attributes=[
        Attribute("axis", "int", "Compare the parts along this axis; without it, the elements of `X`."),
        Attribute("sorted", "int", "1: ascending; 0: by first index.", default=1, values=one_of(0, 1)),
    ],
)
v28 = v11.widen(28, T=BFLOAT16)

v11.absent("lower", "the shape of the result depends on the contents of the operands")
v11.absent("downgrade", "no older operator finds equal elements")
v11.absent("gradient", "equal elements share one result, so it has no derivative by one of them")


@v11.infer
def infer(x: TensorType, /, *, axis: int | None, sorted: int) -> tuple[TensorType, ...]:  # ruff: ignore[builtin-argument-shadowing]  the attribute's name
    if axis is None:
        count = 1 if x.size == 1 else 0 if x.size == 0 else None
        found, length = TensorType(x.element, (count,)), x.size
    elif x.shape is None:
        count, found, length = None, TensorType(x.element), None
    else:
        axis = axis_in(axis, len(x.shape))
        length = x.shape[axis]
        count = length if length in {0, 1} else None
        found = TensorType(x.element, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    some = TensorType(INT64, (count,))
    return found, some, TensorType(INT64, (length,)), some


@v11.evaluate
def evaluate(x: Array, /, *, axis: int | None, sorted: int) -> tuple[Array, ...]:  # ruff: ignore[builtin-argument-shadowing]  the attribute's name
    duplicates.check_search(x)
    if axis is None:
        first, inverse, counts = duplicates.of_elements(x)
    else:
        axis = axis_in(axis, x.ndim)
        first, inverse, counts = _of_parts(np.moveaxis(x, axis, 0))
    if not sorted:
        first, inverse, counts = duplicates.by_first_index(first, inverse, counts)
    kept = x.ravel()[first] if axis is None else np.take(x, first, axis)
    return kept, *(a.astype(np.int64, copy=False) for a in (first, inverse, counts))


@v11.parts
def parts(b: Builder, x: Value, /, *, axis: int | None, sorted: int) -> tuple[Value, ...]:  # ruff: ignore[builtin-argument-shadowing]  the attribute's name
    """Find the elements in one kernel, whose result has room for all; take them where they are first."""
    check_has_kernels(x)
    if axis is not None or (isinstance(x.type, TensorType) and x.type.size == 0):
        raise Unconvertible("parts are compared by the interpreter, and no elements need no kernel")
    flat = b.Reshape(x, b.initializer("row", np.array([-1])))
    found = b.op("Distinct", flat, domain=INTERNAL, sorted=sorted)
    first, counts = (b.op("Counted", found, domain=INTERNAL, rows=ROWS_OF_DISTINCT, row=n) for n in (0, 2))
    one, end = b.initializer("one", np.array([1])), b.initializer("end", np.array([np.iinfo(np.int64).max]))
    rows = b.Reshape(b.Slice(found, one, end), b.initializer("rows", np.array([ROWS_OF_DISTINCT, -1])))
    inverse = b.Gather(rows, b.initializer("second", np.array(1)), axis=0)
    return b.Gather(flat, first, axis=0), first, inverse, counts


def _of_parts(parts: Array) -> tuple[Array, Array, Array]:
    """Compare parts by the ranks of their elements, which are integers for every type."""
    count = parts.shape[0]
    if count == 0 or parts.size == 0:
        if count and parts.ndim < 1:
            raise InferenceError("a scalar has no parts")
        return np.zeros(min(count, 1), np.int64), np.zeros(count, np.int64), np.full(min(count, 1), count)
    ranks = duplicates.of_elements(parts)[1].reshape(count, -1)
    order = _order(ranks)
    ordered = ranks[order]
    starts = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    inverse = np.empty(count, np.int64)
    inverse[order] = np.cumsum(starts) - 1
    return order[starts], inverse, np.diff(np.append(np.flatnonzero(starts), count))


def _order(rows: Array) -> Array:
    """Return the stable lexicographic order of rows of non-negative integers."""
    if rows.shape[1] <= _FEW:
        return np.lexsort(rows.T[::-1])
    keys = rows.astype(">u8")  # big-endian bytes compare as the numbers do
    return np.argsort(keys.view(np.dtype((np.void, keys.itemsize * rows.shape[1]))).ravel(), kind="stable")


@unique.examples
def examples() -> Iterator[Example]:
    x = np.array([2, 1, 1, 3, 4, 3], np.float32)
    for opset in (11, 28):
        yield Example(
            opset, x, outputs=4, expect=[[1, 2, 3, 4], [1, 0, 3, 4], [1, 0, 0, 2, 3, 2], [2, 1, 2, 1]]
        )
        yield Example(
            opset,
            x,
            sorted=0,
            outputs=4,
            expect=[[2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]],
        )
    rows = np.array([[2, 0, 0], [1, 5, 0], [2, 0, 0], [1, -5, 0]])
    yield Example(
        11,
        rows,
        axis=0,
        outputs=4,
        expect=[[[1, -5, 0], [1, 5, 0], [2, 0, 0]], [3, 1, 0], [2, 1, 2, 0], [1, 1, 2]],
    )
    yield Example(11, rows, axis=-2, sorted=0, outputs=3, expect=[rows[[0, 1, 3]], [0, 1, 3], [0, 1, 0, 2]])
    yield Example(11, rows, axis=1, outputs=2, expect=[rows[:, [2, 1, 0]], [2, 1, 0]])
    holes = np.array([np.nan, -0.0, 0.0, np.nan])
    yield Example(11, holes, outputs=4, expect=[[-0.0, np.nan], [1, 0], [1, 0, 0, 1], [2, 2]])
    yield Example(11, np.array([[np.nan, 1], [np.nan, 1]]), axis=0, expect=[[[np.nan, 1]]])
    words = [["b", "a"], ["b", "a"]]
    yield Example(11, words, outputs=2, expect=[["a", "b"], [1, 0]])
    yield Example(11, words, axis=0, outputs=2, expect=[words[:1], [0]])
    brain = np.array([2, -1, 2], ml_dtypes.bfloat16)
    yield Example(28, brain, expect=[[-1, 2]])
    yield Example(11, 3, outputs=4, expect=[[3], *([n] for n in (0, 0, 1))])
    none = np.zeros(0, np.int64)
    yield Example(11, np.zeros((0, 2)), outputs=4, expect=[np.zeros(0), none, none, none])
    yield Example(11, np.zeros((3, 0)), axis=0, outputs=4, expect=[np.zeros((1, 0)), [0], [0, 0, 0], [3]])
