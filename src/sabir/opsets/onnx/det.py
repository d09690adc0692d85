"""Det: determinants of square matrices."""

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError, spend_work
from sabir.ir import TensorType, Value
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.products.products import MATRIX
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

det = Operator("Det", summary="The determinant of each square matrix in the last two dimensions.")

T = Constraint("T", FLOATS)

v11 = det.first(
    11,
    inputs=[Input("X", T, "Shape (..., M, M).", differentiable=True)],
    outputs=[Output("Y", T, "Shape (...), a scalar for one matrix.", differentiable=True)],
)
v22 = v11.widen(22, T=BFLOAT16)

_EXPANDED = 3  # rows
_PRODUCTS = 4  # multiplications in the time that numpy needs to write a byte

v11.absent("downgrade", "no older operator computes determinants")


@v11.infer
def infer(x: TensorType, /) -> TensorType:
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) < MATRIX:
        raise InferenceError(f"a determinant needs matrices, and the input is {x}")
    same_dim(x.shape[-2:], "the sides of a matrix with a determinant")
    return TensorType(x.element, x.shape[:-2])


@v11.evaluate
def evaluate(x: Array, /) -> Array:
    spend_work(x.size * math.prod(x.shape[-1:]) // _PRODUCTS)
    return np.asarray(np.linalg.det(widened(x))).astype(x.dtype, copy=False)


@v11.lower
def lower(x: Expression, /) -> Expression:
    """Expand small determinants along their first rows, in double."""
    side = loops.fixed(x.shape[-1]) if x.rank >= MATRIX else None
    if side is None or not loops.equal(x.shape[-2], side) or not 0 < side <= _EXPANDED:
        raise NotLowered(f"matrices with a side other than 1 to {_EXPANDED} are eliminated, with pivots")
    wide = loops.cast(x, "double")

    def element(row: int, column: int) -> Expression:
        part = loops.narrow(loops.narrow(wide, -2, row, 1), -1, column, 1)
        return loops.squeeze(part, [-2, -1])

    def expanded(columns: tuple[int, ...]) -> Expression:
        row = side - len(columns)
        if len(columns) == 1:
            return element(row, columns[0])
        total: Expression | None = None
        for place, column in enumerate(columns):
            minor = expanded((*columns[:place], *columns[place + 1 :]))
            term = loops.apply("mul", element(row, column), minor)
            total = term if total is None else loops.apply("sub" if place % 2 else "add", total, term)
        return element(row, columns[0]) if total is None else total

    return loops.cast(expanded(tuple(range(side))), x.element)


@v11.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    """Cofactors: determinants of the matrix with a unit row in the place of one; no inverse is needed."""
    indices = g.Range(0, g.Squeeze(g.Shape(x, start=-1), [0]), 1)
    unit = g.Equal(g.Unsqueeze(indices, [1]), indices)
    place, row = g.Unsqueeze(unit, [1, 3]), g.Unsqueeze(unit, [0, 2])  # the axes: i, j, row, column
    changed = g.Where(place, g.CastLike(row, x), g.Unsqueeze(x, [-3, -4]))
    return g.Mul(g.Unsqueeze(g.dy, [-1, -2]), g.Det(changed))


@det.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 2], [3, 4]], [[0, 1], [1, 0]], [[2, 4], [1, 2]]], np.float32)
    for opset in (11, 22):
        yield Example(opset, x, expect=[[-2, -1, 0]])
        yield Example(opset, x[0].astype(float), expect=[-2])
        yield Example(opset, np.diag([2.0, 3, 4]).reshape(1, 1, 3, 3), expect=[[[24.0]]])
    for kind in (np.float16, ml_dtypes.bfloat16):
        yield Example(22, x.astype(kind), expect=[[-2, -1, 0]])
    yield Example(11, np.zeros((0, 0), np.float32), expect=[1])
    yield Example(11, np.zeros((2, 0, 3, 3), np.float32), expect=[np.zeros((2, 0), np.float32)])
    yield Example(11, [[np.nan]], expect=[np.nan])
