"""LogSoftmax: logarithms of normalised exponentials along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.losses import loss_kernels, losses
from sabir.opsets.families.normalization import flattening
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

log_softmax = Operator(
    "LogSoftmax", summary="The logarithms of Softmax along `axis`: `x - log(sum(exp(x)))`."
)

T = Constraint("T", FLOATS)

v1 = log_softmax.first(
    1,
    inputs=[Input("input", T, "A tensor of any rank.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; no value exceeds 0.", differentiable=True)],
    attributes=[flattening.SPLIT],
)
v11 = v1.restate(11, "A negative `axis` counts from the end.")
v13 = v11.evolve(
    13,
    "`axis` is the dimension to normalise; the input is no longer flattened.",
    add=[Attribute("axis", "int", "The dimension along which the exponentials sum to one.", default=-1)],
    widen={"T": BFLOAT16},
)


@v13.evaluate
def evaluate(x: Array, /, *, axis: int) -> Array:
    return losses.log_softmax(widened(x), axis_in(axis, x.ndim)).astype(x.dtype, copy=False)


@v13.lower
def lower(x: Expression, /, *, axis: int) -> Expression:
    return loss_kernels.log_softmax(x, axis)


@v13.body
def body(b: Builder, x: Value, /, *, axis: int) -> Value:
    return losses.emit_log_softmax(b, x, axis)


flattening.split_before(v13)


@v13.gradient
def gradient(g: Gradient, x: Value, /, *, axis: int) -> Value:
    return g.Sub(g.dy, g.Mul(g.Exp(g.y()), g.ReduceSum(g.dy, [axis], keepdims=1)))


@log_softmax.examples
def examples() -> Iterator[Example]:
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
    for axis in (0, 1, 2):
        for opset in (1, 11, 13):
            yield Example(opset, x, axis=axis)
    # by hand: the logarithms of 1 and 3 minus that of their sum; the old version sums over two dimensions
    rows = np.log(np.array([[[1, 3], [4, 4]]], np.float32))
    parts = np.array([[[0.25, 0.75], [0.5, 0.5]]], np.float32)
    yield Example(13, rows, axis=2, expect=[np.log(parts)])
    for opset in (1, 11):
        yield Example(opset, rows, axis=1, expect=[np.log(np.array([[[1, 3], [4, 4]]], np.float32) / 12)])
        yield Example(opset, rows, axis=2, expect=[np.log(parts)])
    for kind in (np.float16, np.float32, np.float64):
        yield Example(13, np.array([[1000, 0]], kind), expect=[[[0, -1000]]])
    brain = ml_dtypes.bfloat16
    yield Example(13, np.array([[1000, 0]], brain), axis=1, expect=[[[0, -1000]]])
    yield Example(13, np.array([1, np.nan]), expect=[np.full(2, np.nan)])
    yield Example(13, np.array([0, -np.inf]), expect=[[0, -np.inf]])
    yield Example(
        13, np.zeros(40000, np.float16), tolerance=1e-3, expect=[np.full(40000, -np.log(40000), np.float16)]
    )
    yield Example(13, np.zeros((2, 0), np.float32), axis=1, expect=[np.zeros((2, 0), np.float32)])
