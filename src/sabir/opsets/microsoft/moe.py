"""MoE: a mixture of experts, of which a router chooses some for each token."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.products import experts
from sabir.opsets.families.products.expert_graphs import LayerValue, mixed_value
from sabir.opsets.families.products.experts import Layer, Mixture, Sizes, mixed
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

moe = Operator(
    "MoE",
    domain="com.microsoft",
    summary="The weighted sum of the outputs of the k experts that a router prefers, for each token.",
    body_opset=18,
    lacks=(experts.GATED,),
)

T = Constraint("T", tensors("float", "float16", "bfloat16"))

v1 = moe.first(
    1,
    inputs=[
        Input("input", T, "(tokens, hidden), or (batch, sequence, hidden)."),
        Input("router_probs", T, "The logits of the router, (tokens, experts)."),
        Input("fc1_experts_weights", T, "(experts, inner, hidden); fused SwiGLU: twice `inner`."),
        Input("fc1_experts_bias", T, "(experts, inner), as the weights.", optional=True),
        Input("fc2_experts_weights", T, "(experts, hidden, inner)."),
        Input("fc2_experts_bias", T, "(experts, hidden).", optional=True),
        Input("fc3_experts_weights", T, "(experts, inner, hidden), for SwiGLU.", optional=True),
        Input("fc3_experts_bias", T, "(experts, inner).", optional=True),
    ],
    outputs=[Output("output", T, "The input's shape.")],
    attributes=list(experts.ATTRIBUTES),
)


@v1.infer
def infer(
    x: TensorType, logits: TensorType, first: TensorType, bias: TensorType | None, second: TensorType,
    /, *more: TensorType | None, **attributes: Any,
) -> TensorType:  # fmt: skip
    mixture, (second_bias, third, third_bias) = Mixture.of(attributes), _three(more)
    mixture.check_third(third)
    check_rank("fc2_experts_weights", second, 3)
    sizes = Sizes.of(x, logits, None if second.shape is None else second.shape[2], mixture)
    count, hidden, inner = sizes
    check_shape("fc1_experts_weights", first, count, sizes.first(mixture), hidden)
    check_shape("fc1_experts_bias", bias, count, sizes.first(mixture))
    check_shape("fc2_experts_weights", second, count, hidden, None)
    check_shape("fc2_experts_bias", second_bias, count, hidden)
    check_shape("fc3_experts_weights", third, count, inner, hidden)
    check_shape("fc3_experts_bias", third_bias, count, inner)
    return TensorType(x.element, x.shape)


def _three(more: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return the last three inputs, None for those that are left out."""
    second_bias, third, third_bias = (*more, *(None,) * (3 - len(more)))
    return second_bias, third, third_bias


@v1.evaluate
def evaluate(
    x: Array, logits: Array, first: Array, bias: Array | None, second: Array,
    /, *more: Array | None, **attributes: Any,
) -> Array:  # fmt: skip
    hold(infer, x, logits, first, bias, second, *more, **attributes)
    second_bias, third, third_bias = _three(more)
    layers = _layer(first, bias), _layer(second, second_bias), third is not None and _layer(third, third_bias)
    return mixed(Mixture.of(attributes), x, logits, [layer or None for layer in layers])


def _layer(weights: Array, bias: Array | None) -> Layer:
    def of_expert(expert: int) -> Array:
        return np.asarray(weights[expert], np.float32)

    return Layer(of_expert, bias)


@v1.body
def body(
    b: Builder, x: Value, logits: Value, first: Value, bias: Value | None, second: Value,
    /, *more: Value | None, **attributes: Any,
) -> Value:  # fmt: skip
    second_bias, third, third_bias = _three(more)
    layers = [LayerValue(typed(b, w, FLOAT), c) for w, c in ((first, bias), (second, second_bias))]
    last = None if third is None else LayerValue(typed(b, third, FLOAT), third_bias)
    return mixed_value(b, Mixture.of(attributes), x, logits, [*layers, last])


@moe.examples
def by_hand() -> Iterator[Example]:
    """Experts that multiply by 1, 2 and 3, of which the last one has a bias; softmax is (1, 2, 5) / 8."""
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        x = np.array([[1, -2]], dtype)
        logits = np.log(np.array([[1, 2, 5]])).astype(dtype)
        first = np.stack([np.eye(2) * n for n in (1, 2, 3)]).astype(dtype)
        second = np.stack([np.eye(2)] * 3).astype(dtype)
        bias = np.array([[0, 0], [0, 0], [8, 8]], dtype)
        calls = first, None, second, bias
        one = np.array([[6.875, 1.25]], dtype)
        identity: dict[str, Any] = {"activation_type": "identity", "tolerance": 0.05}
        yield Example(1, x, logits, *calls, **identity, expect=[one])
        both = np.array([[(5 * 11 + 4) / 7, (5 * 2 - 8) / 7]], dtype)
        both_of: dict[str, Any] = {"k": 2, "normalize_routing_weights": 1}
        yield Example(1, x, logits, *calls, **both_of, **identity, expect=[both])


@moe.examples
def against_onnxruntime() -> Iterator[Example]:
    drawn = _drawn(1)
    x, logits, first, bias, second, second_bias = drawn[:6]
    for activation in ("relu", "gelu", "silu", "identity"):
        for k in (1, 3):
            attributes: dict[str, Any] = {
                "activation_type": activation,
                "k": k,
                "normalize_routing_weights": k - 1 and 1,
            }
            yield Example(1, *drawn[:6], **attributes)
    yield Example(1, x[None], logits, first, None, second, k=2, use_sparse_mixer=1)
    yield Example(1, x[:0], logits[:0], first, bias, second, second_bias, k=2)


@moe.examples
def of_swiglu() -> Iterator[Example]:  # ruff: ignore[too-many-locals]  operands of calls
    x, logits, first, bias, second, second_bias, third, third_bias = drawn = _drawn(1)
    gates: dict[str, Any] = {
        "activation_type": "swiglu",
        "k": 2,
        "activation_alpha": 1.7,
        "activation_beta": 1.0,
    }
    wide, wide_bias = (np.concatenate(pair, axis=1) for pair in ((first, third), (bias, third_bias)))
    order = np.arange(10).reshape(2, 5).T.reshape(-1)
    limited: list[dict[str, Any]] = [{}, {"swiglu_limit": 0.5}]
    for limits in limited:
        mixed_up = wide[:, order], wide_bias[:, order], second, second_bias
        yield Example(1, x, logits, *mixed_up, swiglu_fusion=1, **gates, **limits)
        y = [_swiglu_in_double(drawn, 0.5 if limits else np.inf).astype(np.float32)]
        fused = wide, wide_bias, second, second_bias
        yield Example(1, x, logits, *fused, swiglu_fusion=2, **gates, **limits, expect=y)
        yield Example(1, *drawn, **gates, **limits, expect=y)
    late = [_swiglu_in_double(drawn, 0.5, late=True).astype(np.float32)]
    yield Example(1, *drawn, **gates, swiglu_limit=0.5, swiglu_limit_after_activation=1, expect=late)


def _drawn(seed: int) -> tuple[Array, ...]:
    """Return four tokens of 6 numbers and 3 experts with 5 inner ones."""
    random = np.random.default_rng(seed)
    shapes = (4, 6), (4, 3), (3, 5, 6), (3, 5), (3, 6, 5), (3, 6), (3, 5, 6), (3, 5)
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def _swiglu_in_double(operands: tuple[Array, ...], limit: float, *, late: bool = False) -> Array:
    """Return the outputs of two experts a token, one token and expert at a time."""
    x, logits, first, bias, second, second_bias, third, third_bias = (o.astype(float) for o in operands)
    y = np.zeros_like(x)
    for token, row in enumerate(logits):
        odds = np.exp(row) / np.exp(row).sum()
        for expert in np.argsort(row)[-2:]:
            gate = first[expert] @ x[token] + bias[expert]
            gate = gate if late else np.minimum(gate, limit)
            linear = np.clip(third[expert] @ x[token] + third_bias[expert], -limit, limit)
            inner = np.minimum(gate / (1 + np.exp(-1.7 * gate)), limit if late else np.inf) * (linear + 1)
            y[token] += odds[expert] * (second[expert] @ inner + second_bias[expert])
    return y
