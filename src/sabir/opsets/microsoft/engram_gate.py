"""EngramGate: values from a memory of n-grams, gated by how alike their keys and the queries are."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.normalization.normalization import normalized_by_squares
from sabir.opsets.families.normalization.normalization_graphs import by_root_mean_square
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_alike, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Attribute, Call, Constraint, Example, Input, Operator, Output, tensors

engram_gate = Operator(
    "EngramGate",
    domain="com.microsoft",
    summary="`sigmoid(sign(d) * sqrt(max(abs(d), 1e-6))) * value`, where `d` is the product of "
    "the normalised key and query over `sqrt(hidden)`.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))

v1 = engram_gate.first(
    1,
    inputs=[
        Input("key", T, "(batch, sequence, streams, hidden).", differentiable=True),
        Input("query", T, "The shape of `key`.", differentiable=True),
        Input("value", T, "(batch, sequence, hidden).", differentiable=True),
        Input("key_norm_scale", T, "(streams, hidden): the scale of normalised keys.", differentiable=True),
        Input("query_norm_scale", T, "(streams, hidden).", differentiable=True),
        Input(
            "conv_norm_scale",
            T,
            "(streams, hidden); needed for `gated_value_normed`.",
            optional=True,
            differentiable=True,
        ),
    ],
    outputs=[
        Output("output", T, "The gated values, in the shape of `key`.", differentiable=True),
        Output(
            "gated_value_normed",
            T,
            "The output divided by its root mean square, and scaled.",
            optional=True,
            differentiable=True,
        ),
    ],
    attributes=[
        Attribute("epsilon", "float", "Added to the mean squares, so that they are not 0.", default=1e-5)
    ],
)

_RANK = 4  # of keys
_LEAST = 1e-6  # the least magnitude whose root is taken


@v1.infer
def infer(
    key: TensorType, query: TensorType, value: TensorType, key_scale: TensorType, query_scale: TensorType,
    conv_scale: TensorType | None = None, /, *, call: Call,
) -> tuple[TensorType, TensorType]:  # fmt: skip
    if conv_scale is None and call.wants(1):
        raise InferenceError("the output `gated_value_normed` needs the input `conv_norm_scale`")
    check_rank("key", key, _RANK)
    check_rank("query", query, _RANK)
    check_alike(["key", "query"], [key, query])
    batch, sequence, streams, hidden = key.shape or query.shape or (None,) * _RANK
    check_shape("value", value, batch, sequence, hidden)
    scales = {"key": key_scale, "query": query_scale, "conv": conv_scale}
    for name, scale in scales.items():
        check_shape(f"{name}_norm_scale", scale, streams, hidden)
    result = TensorType(key.element, key.shape or query.shape)
    return result, result


@v1.evaluate
def evaluate(
    key: Array, query: Array, value: Array, key_scale: Array, query_scale: Array,
    conv_scale: Array | None = None, /, *, epsilon: float, call: Call,
) -> tuple[Array, Array | None]:  # fmt: skip
    hold(infer, key, query, value, key_scale, query_scale, conv_scale, call=call)
    if not key.size:
        return key, key
    product = _normal(key, key_scale, epsilon) * _normal(query, query_scale, epsilon)
    alike = product.sum(axis=-1, keepdims=True) / np.sqrt(np.float32(key.shape[-1]))
    with np.errstate(over="ignore"):
        gate = sigmoid(np.sign(alike) * np.sqrt(np.maximum(np.abs(alike), np.float32(_LEAST))))
    y = (gate * widened(value)[:, :, None]).astype(key.dtype, copy=False)
    if conv_scale is None:
        return y, None
    return y, _normal(y, conv_scale, epsilon).astype(key.dtype, copy=False)


def _normal(x: Array, scale: Array, epsilon: float) -> Array:
    """Return `x` divided by its root mean square over the last axis, and scaled, in float."""
    rows = normalized_by_squares(widened(x).reshape(x.size // x.shape[-1], x.shape[-1]), epsilon).rows
    return rows.reshape(x.shape) * widened(scale)


@v1.body
def body(
    b: Builder, key: Value, query: Value, value: Value, key_scale: Value, query_scale: Value,
    conv_scale: Value | None = None, /, *, epsilon: float, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    product = b.Mul(_emit_normal(b, key, key_scale, epsilon), _emit_normal(b, query, query_scale, epsilon))
    hidden = b.Cast(b.Shape(key, start=-1), to=FLOAT.number)
    alike = b.Div(reductions.call(b, "ReduceSum", product, [-1]), b.Sqrt(hidden))
    least = Numbers(b, FLOAT)(_LEAST)
    gate = b.Sigmoid(b.Mul(b.Sign(alike), b.Sqrt(b.Max(b.Abs(alike), least))))
    y = b.Mul(gate, b.Unsqueeze(halves.widened(b, value), as_input(b, "axes", [2])))
    y = halves.rounded(b, y, key)
    if conv_scale is None or not call.wants(1):
        return (y,)
    return y, halves.rounded(b, _emit_normal(b, y, conv_scale, epsilon), key)


def _emit_normal(b: Builder, x: Value, scale: Value, epsilon: float) -> Value:
    normal = by_root_mean_square(b, halves.widened(b, x), [-1], epsilon)
    return b.Mul(normal.y, halves.widened(b, scale))


@engram_gate.examples
def examples() -> Iterator[Example]:
    f = np.float32
    # by hand: mean squares 25 and 12.5, so d = (7 + 7) / 25 / sqrt(2) and (-12 - 12) / 12.5 / sqrt(2)
    key, query = np.array([[[[1, 7], [3, -4]]]]), np.array([[[[7, 1], [-4, 3]]]])
    value, ones = np.array([[[2, -14]]]), np.ones((2, 2))
    root = np.sqrt(np.array([14 / 25, 24 / 12.5]) / np.sqrt(2)) * [1, -1]
    y = (1 / (1 + np.exp(-root)))[:, None] * value[:, :, None]
    scale = np.array([[1, 1], [10, 5]])
    normal = np.array([0.2, -1.4]) * scale
    for kind, rough in ((f, 1e-5), (np.float16, 4e-3), (ml_dtypes.bfloat16, 3e-2)):
        inputs = [t.astype(kind) for t in (key, query, value, ones, ones, scale)]
        results = [t.astype(kind) for t in (y, normal.reshape(1, 1, 2, 2))]
        options: dict[str, Any] = {"epsilon": 1e-6, "tolerance": rough}
        yield Example(1, *inputs, outputs=2, **options, expect=results)
        yield Example(1, *inputs[:5], **options, expect=results[:1])
    draw = np.random.default_rng(0)
    big = [draw.standard_normal((2, 3, 2, 4)).astype(f) for _ in range(2)]
    big += [draw.standard_normal((2, 3, 4)).astype(f)]
    big += [draw.standard_normal((2, 4)).astype(f) for _ in range(3)]
    yield Example(1, *big)
    yield Example(1, *big, outputs=2, epsilon=0.5)
    yield Example(1, np.zeros_like(big[0]), *big[1:], outputs=2)
    yield Example(
        1, big[0][:1, :1, :1, :1], big[1][:1, :1, :1, :1], big[2][:1, :1, :1], *[ones[:1, :1].astype(f)] * 2
    )
    empty = np.zeros((2, 0, 2, 4), f)
    yield Example(1, empty, empty, np.zeros((2, 0, 4), f), *big[3:], outputs=2, expect=[empty, empty])
