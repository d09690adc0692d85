"""NonZero: the indices of the elements that are not zero."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import BOOL as BOOL_ELEMENT
from sabir.elements import INT64
from sabir.ir import Builder, Dim, Expr, Item, TensorType, Value, lower_bound
from sabir.opsets.families.indexing.places import check_has_kernels, true_places
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.sizes import allotted, passed_over
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output, Unconvertible

non_zero = Operator(
    "NonZero",
    summary="The indices of the elements of `X` that are not zero, one column for each, row by row.",
)

T = Constraint("T", CLASSIC)

v9 = non_zero.first(
    9,
    inputs=[Input("X", T, "A tensor of any shape; an empty string counts as zero.", differentiable=False)],
    outputs=[
        Output(
            "Y",
            "tensor(int64)",
            "One row for each dimension of `X` (none for a scalar), one column for each element found.",
            differentiable=False,
        )
    ],
)
v13 = v9.widen(13, T=BFLOAT16)

v9.absent("lower", "the shape of the result depends on the contents of the operands")
v9.absent("downgrade", "no older operator finds the places of elements")


@v9.infer
def infer(x: TensorType, /) -> TensorType:
    if x.shape is None:
        return TensorType(INT64, (None, None))
    kind = TensorType(INT64, (len(x.shape), _count(x)))
    return contents.moved(kind, lambda known: _found(known != 0), x) if kind.is_static else kind


def _count(x: TensorType) -> Dim:
    """Return the number of elements that are not zero; None where one of them is unknown."""
    nonzero = None if x.known is None else [_is_nonzero(item) for item in x.known]
    if nonzero is None or None in nonzero:
        return 0 if x.size == 0 else None
    return sum(map(bool, nonzero))


def _is_nonzero(item: Item) -> bool | None:
    if item is None:
        return None
    if isinstance(item, Expr):
        low = lower_bound(item)
        return True if low is not None and low > 0 else None
    return bool(item)


@v9.evaluate
def evaluate(x: Array, /) -> Array:
    passed_over(x)
    return _found(x.astype(bool) if x.dtype != object else np.not_equal(x, ""))


@v9.parts
def parts(b: Builder, x: Value, /) -> Value:
    """Find the places in one kernel, whose result has room for all; compute the indices from these."""
    kind = x.type
    check_has_kernels(x)
    if not isinstance(kind, TensorType) or not kind.shape:
        raise Unconvertible("the rank is unknown, or the operand is a scalar")
    row = b.initializer("row", np.array([-1]))
    marks = b.Reshape(b.Cast(x, to=BOOL_ELEMENT.number), row)
    rest = true_places(b, marks)
    line, indices = b.initializer("line", np.array([1, -1])), list[Value]()
    for axis in range(len(kind.shape) - 1, 0, -1):
        size = b.Gather(b.Shape(x), b.initializer("axis", np.array(axis)))
        before = b.Div(rest, size)
        indices.append(b.Sub(rest, b.Mul(before, size)))
        rest = before
    rows = [b.Reshape(index, line) for index in (rest, *reversed(indices))]
    return b.Concat(*rows, axis=0) if len(rows) > 1 else rows[0]


def _found(mask: Array) -> Array:
    if mask.ndim == 0:
        return np.zeros((0, int(bool(mask))), np.int64)  # numpy treats a scalar as a vector of one element
    copies = 1 if mask.ndim == 1 else 2  # separate, and stacked
    allotted((mask.ndim, copies, int(np.count_nonzero(mask))), np.dtype(np.int64), mask.size)
    if copies == 1:
        return np.flatnonzero(mask)[None]
    return np.stack(np.nonzero(mask)).astype(np.int64, copy=False)


@non_zero.examples
def examples() -> Iterator[Example]:
    x = [[1, 0, np.nan], [-0.0, -3, 0]]
    for opset in (9, 13):
        yield Example(opset, x, expect=[[[0, 0, 1], [0, 2, 1]]])
        yield Example(opset, [0, 7, 0, 9], expect=[[[1, 3]]])
        yield Example(opset, 5, expect=[np.zeros((0, 1), np.int64)])
        yield Example(opset, np.bool_(0), expect=[np.zeros((0, 0), np.int64)])
    yield Example(13, np.array([0, 1, 0.5], ml_dtypes.bfloat16), expect=[[[1, 2]]])
    yield Example(13, ["", "0"], expect=[[[1]]])
    yield Example(13, np.array([1j, 0], np.complex64), expect=[[[0]]])
    yield Example(13, np.zeros((2, 0, 3), np.int8), expect=[np.zeros((3, 0), np.int64)])
