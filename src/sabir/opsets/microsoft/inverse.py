"""Inverse: the inverse of square matrices."""

import math
from collections.abc import Iterator

import numpy as np

from sabir.base import EvaluationError, spend_work
from sabir.ir import TensorType, Value
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.products.products import MATRIX
from sabir.opsets.families.shapes.ranks import check_least_rank, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array, Gradient
from sabir.schema import FLOATS, Constraint, Example, Input, Operator, Output

inverse = Operator(
    "Inverse",
    domain="com.microsoft",
    summary="The inverse of each square matrix in the last two dimensions.",
)

T = Constraint("T", FLOATS)

v1 = inverse.first(
    1,
    inputs=[Input("X", T, "Invertible matrices, (..., M, M).", differentiable=True)],
    outputs=[Output("Y", T, "The shape of X.", differentiable=True)],
)

_PRODUCTS = 2  # multiplications in the time that numpy needs to write a byte

v1.absent("lower", "matrices are eliminated, with pivots, which no kernel does")


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    check_least_rank("X", x, MATRIX)
    if x.shape is None:
        return TensorType(x.element)
    side = same_dim(x.shape[-2:], "the sides of a matrix with an inverse")
    return TensorType(x.element, (*x.shape[:-2], side, side))


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    """Raise EvaluationError for a matrix that has no inverse."""
    hold(infer, x)
    spend_work(x.size * math.prod(x.shape[-1:]) // _PRODUCTS)
    try:
        return np.asarray(np.linalg.inv(widened(x))).astype(x.dtype, copy=False)
    except np.linalg.LinAlgError as error:
        raise EvaluationError("a matrix is singular, and has no inverse") from error


@v1.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    rank = g.rank(x)
    turned = g.Transpose(g.y(), perm=[*range(rank - 2), rank - 1, rank - 2])
    return g.Neg(g.MatMul(turned, g.MatMul(g.dy, turned)))


@inverse.examples
def examples() -> Iterator[Example]:
    x = np.array([[[2, 1], [1, 1]], [[0, 4], [0.5, 0]]])
    y = np.array([[[1, -1], [-1, 2]], [[0, 2], [0.25, 0]]])
    for kind in (np.float32, np.float64, np.float16):
        yield Example(1, x.astype(kind), expect=[y.astype(kind)], tolerance=2e-3)
        yield Example(1, x[0].astype(kind), expect=[y[0].astype(kind)], tolerance=2e-3)
    yield Example(
        1, np.diag([1.0, 2, 4, 8]).reshape(1, 1, 4, 4), expect=[np.diag([1, 0.5, 0.25, 0.125])[None, None]]
    )
    yield Example(1, np.array([[-0.5]], np.float32), expect=[[[-2]]])
    for shape in ((0, 2, 2), (2, 0, 0)):
        yield Example(1, np.zeros(shape, np.float32), expect=[np.zeros(shape, np.float32)])
