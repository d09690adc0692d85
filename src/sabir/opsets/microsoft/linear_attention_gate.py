"""LinearAttentionGate: the decay and the update rate of linear attention, from their projections."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.shapes.ranks import check_alike, check_least_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Call, Constraint, Example, Input, Operator, Output, tensors

linear_attention_gate = Operator(
    "LinearAttentionGate",
    domain="com.microsoft",
    summary="`decay = decay_scale * softplus(a + dt_bias)` and `beta = sigmoid(b)`, computed in float.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
TF = Constraint("TF", tensors("float"))

v1 = linear_attention_gate.first(
    1,
    inputs=[
        Input("a", T, "(..., heads), usually (batch, sequence, heads).", differentiable=True),
        Input("dt_bias", TF, "(heads): added to `a`.", differentiable=True),
        Input("decay_scale", TF, "(heads): the factor of the decay.", differentiable=True),
        Input("b", T, "The shape of `a`; needed for `beta`.", optional=True, differentiable=True),
    ],
    outputs=[
        Output("decay", T, "The shape of `a`.", differentiable=True),
        Output("beta", T, "The shape of `a`.", optional=True, differentiable=True),
    ],
)


@v1.infer
def infer(
    a: TensorType, bias: TensorType, scale: TensorType, b: TensorType | None = None, /, *, call: Call
) -> tuple[TensorType, TensorType]:
    if b is None and call.wants(1):
        raise InferenceError("the output `beta` needs the input `b`")
    check_least_rank("a", a, 1)
    heads = None if a.shape is None else a.shape[-1]
    check_shape("dt_bias", bias, heads)
    check_shape("decay_scale", scale, heads)
    check_alike(["dt_bias", "decay_scale"], [bias, scale])
    if b is not None:
        check_alike(["a", "b"], [a, b])
    return TensorType(a.element, a.shape), TensorType(a.element, a.shape)


@v1.evaluate
def evaluate(
    a: Array, bias: Array, scale: Array, b: Array | None = None, /, *, call: Call
) -> tuple[Array, Array | None]:
    hold(infer, a, bias, scale, b, call=call)
    decay = scale * np.logaddexp(widened(a) + bias, np.float32(0))
    with np.errstate(over="ignore"):
        beta = None if b is None else sigmoid(widened(b)).astype(a.dtype, copy=False)
    return decay.astype(a.dtype, copy=False), beta


@v1.body
def body(
    g: Builder, a: Value, bias: Value, scale: Value, b: Value | None = None, /, *, call: Call
) -> tuple[Value, ...]:
    decay = g.Mul(scale, g.Softplus(g.Add(typed(g, a, FLOAT), bias)))
    decay = halves.rounded(g, decay, a)
    if b is None or not call.wants(1):
        return (decay,)
    return decay, halves.rounded(g, g.Sigmoid(typed(g, b, FLOAT)), a)


@linear_attention_gate.examples
def examples() -> Iterator[Example]:
    f = np.float32
    log3 = np.log(3)  # softplus(log 3) is log 4, and the logistic function of log 3 is 3/4
    a, bias = np.array([[[0, 1], [-1, 2]]]), np.array([log3, log3 - 1], f)
    scale, b = np.array([-1, 2], f), np.array([[[0, log3], [-log3, 0]]])
    decay = np.array([[
        [-np.log(4), 2 * np.log(4)],
        [-np.log1p(3 / np.e), 2 * np.log1p(3 * np.e)],
    ]])  # fmt: skip
    beta = np.array([[[0.5, 0.75], [0.25, 0.5]]])
    for kind, rough in ((f, 1e-6), (np.float16, 2e-3), (ml_dtypes.bfloat16, 1e-2)):
        typed_a, typed_b, *results = (t.astype(kind) for t in (a, b, decay, beta))
        yield Example(1, typed_a, bias, scale, typed_b, outputs=2, tolerance=rough, expect=results)
        yield Example(1, typed_a, bias, scale, tolerance=rough, expect=results[:1])
    yield Example(1, a[0].astype(f), bias, scale, b[0].astype(f), tolerance=1e-6, expect=[decay[0].astype(f)])
    large = np.array([[[-200, 200]]], f)
    yield Example(1, large, bias, scale, large, outputs=2)
    yield Example(1, large[..., :1], bias[:1], scale[:1])
    empty = np.zeros((2, 0, 2), f)
    yield Example(1, empty, bias, scale, empty, outputs=2, expect=[empty, empty])
