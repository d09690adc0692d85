"""SwiGLU: one tensor, gated by the Swish of another."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import TOLERANCES, sigmoid
from sabir.opsets.families.numbers.variadic import infer_one_shape
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

swiglu = Operator("SwiGLU", summary="`A * sigmoid(alpha * A) * B`, for two tensors of one shape.")

T = Constraint("T", FLOATS, BFLOAT16)

v28 = swiglu.first(
    28,
    inputs=[
        Input("A", T, "The gate.", differentiable=True),
        Input("B", T, "The gated values, of the same shape.", differentiable=True),
    ],
    outputs=[Output("Y", T, "The shape of the inputs.", differentiable=True)],
    attributes=[Attribute("alpha", "float", "The steepness of the logistic function.", default=1.0)],
)

v28.infer(infer_one_shape)


@v28.evaluate
def evaluate(a: Array, b: Array, /, *, alpha: float) -> Array:
    if a.shape != b.shape:
        raise ValueError(f"A and B must be of one shape, and are {list(a.shape)} and {list(b.shape)}")
    gate = widened(a)
    return (gate * sigmoid(alpha * gate) * widened(b)).astype(a.dtype, copy=False)


@v28.lower
def lower(a: Expression, b: Expression, /, *, alpha: float) -> Expression:
    if not loops.same_shape(a.shape, b.shape):
        raise NotLowered("whether A and B are of one shape is known at run time only")
    return loops.apply("mul", kernels.swish(a, alpha), b)


@v28.body
def body(b: Builder, gate: Value, value: Value, /, *, alpha: float) -> Value:
    return b.Mul(b.Swish(gate, alpha=alpha), value)


@v28.gradient
def gradient(g: Gradient, gate: Value, value: Value, /, *, alpha: float) -> tuple[Value, Value]:
    step = g.Sigmoid(g.Mul(gate, alpha))
    swish = g.Mul(gate, step)
    slope = g.Add(step, g.Mul(g.Mul(swish, alpha), g.Sub(1, step)))
    return g.Mul(g.dy, g.Mul(slope, value)), g.Mul(g.dy, swish)


@swiglu.examples
def examples() -> Iterator[Example]:
    # the logistic function of ln 3 is 3/4, of -ln 3 1/4
    log3 = np.log(3)
    a, b = np.array([[log3, -log3, 0], [100, np.inf, np.nan]]), np.array([[4, 8, 5], [-2, -2, 1]])
    y = np.array([[3 * log3, -2 * log3, 0], [-200, -np.inf, np.nan]])
    for kind, tolerance in TOLERANCES.items():
        gate, value = a.astype(kind), b.astype(kind)
        yield Example(28, gate, value, expect=[y.astype(kind)], tolerance=tolerance)
        half = (a / 2).astype(kind)
        yield Example(28, half, value, alpha=2.0, expect=[(y / 2).astype(kind)], tolerance=tolerance)
    yield Example(28, 0.0, 7, expect=[0])
    yield Example(28, np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32))
