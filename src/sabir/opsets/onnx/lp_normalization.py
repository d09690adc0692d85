"""LpNormalization: division by the norm along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import flattening
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.reduction import reduction_kernels
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, one_of

lp_normalization = Operator(
    "LpNormalization",
    summary="Each element divided by the L1 or L2 norm along `axis`; 0 where the norm is 0.",
)

T = Constraint("T", FLOATS)

ABSOLUTE, EUCLIDEAN = 1, 2

v1 = lp_normalization.first(
    1,
    inputs=[Input("input", T, "A tensor of rank 1 or more.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape.", differentiable=True)],
    attributes=[
        Attribute(
            "p",
            "int",
            "1: the sum of absolute values; 2: the root of the sum of squares.",
            default=2,
            values=one_of(ABSOLUTE, EUCLIDEAN),
        ),
        Attribute("axis", "int", "The axis along which the norms are 1.", default=-1),
    ],
)
v22 = v1.widen(22, T=BFLOAT16)


@v1.infer
def infer(x: TensorType, /, *, axis: int) -> TensorType:
    return flattening.infer_axis(x, axis=axis)


@v1.evaluate
def evaluate(x: Array, /, *, axis: int, p: int) -> Array:
    axis = axis_in(axis, x.ndim)
    wide = widened(x)
    parts = np.abs(wide) if p == ABSOLUTE else np.square(wide)
    norm = summed(parts, axis, keepdims=True)
    if p == EUCLIDEAN:
        norm = np.sqrt(norm)
    return np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0).astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /, *, axis: int, p: int) -> Expression:
    formula = reduction_kernels.absolute_sum if p == ABSOLUTE else reduction_kernels.euclidean
    norm = formula(x, (axis_in(axis, x.rank),))
    return loops.where(loops.apply("ne", norm, 0), loops.apply("div", x, norm), 0)


@v1.gradient
def gradient(g: Gradient, x: Value, /, *, axis: int, p: int) -> Value:
    """At a norm of 0 it is 0."""
    norm = g.ReduceL1(x, [axis]) if p == ABSOLUTE else g.ReduceL2(x, [axis])
    zero = g.Equal(norm, 0)
    along = g.ReduceSum(g.Mul(g.dy, g.y()), [axis])
    slope = g.Sign(x) if p == ABSOLUTE else g.y()
    d = g.Div(g.Sub(g.dy, g.Mul(slope, along)), g.Where(zero, 1, norm))
    return g.Where(zero, 0, d)


@lp_normalization.examples
def examples() -> Iterator[Example]:
    x = np.array([[3, -4], [0, 0], [-5, 12]], np.float32)
    euclidean = np.array([[3 / 5, -4 / 5], [0, 0], [-5 / 13, 12 / 13]], np.float32)
    absolute = [[3 / 7, -4 / 7], [0, 0], [-5 / 17, 12 / 17]]
    for opset in (1, 22):
        yield Example(opset, x, expect=[euclidean])
        yield Example(opset, x, p=1, expect=[absolute])
        yield Example(opset, x.T, axis=0, expect=[euclidean.T])
        parts = np.array([[0.25, 0.5], [0.75, 0.5]], np.float32)
        yield Example(opset, parts * 4, axis=-2, p=1, expect=[parts])
        yield Example(opset, np.array([np.nan, 1, np.inf]), expect=[np.full(3, np.nan)])
        yield Example(opset, np.array([1, np.inf]), p=1, expect=[[0, np.nan]])
        yield Example(opset, np.zeros((2, 0), np.float32), expect=[np.zeros((2, 0), np.float32)])
        large = np.array([3072, 4096], np.float16)  # the squares exceed float16
        yield Example(opset, large, expect=[[0.6, 0.8]])
    yield Example(22, x.astype(ml_dtypes.bfloat16), expect=[euclidean.astype(ml_dtypes.bfloat16)])
