"""PackedAttention: attention in a batch without padding, with projections of its rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.attention import packing, ports, projections
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

packed_attention = Operator(
    "PackedAttention",
    domain="com.microsoft",
    summary="The rows of a batch without padding are projected to queries, keys and values; in each head "
    "and item `softmax(Q K^T scale + bias) V`.",
    body_opset=18,
)

T, M = Constraint("T", tensors("float", "float16")), Constraint("M", tensors("int32"))

v1 = packed_attention.first(
    1,
    inputs=[
        Input("input", T, "(rows, width)."),
        Input("weights", T, "(width, q + k + v columns)."),
        Input("bias", T, "(q + k + v columns): added to the projections."),
        *ports.packed(M),
        ports.attention_bias(T),
    ],
    outputs=[Output("output", T, "(rows, v columns).")],
    attributes=[
        ports.num_heads(),
        Attribute("qkv_hidden_sizes", "ints", "The columns of queries, keys and values; a third by default."),
        ports.scale(),
    ],
)


@v1.infer
def infer(
    x: TensorType, weights: TensorType, bias: TensorType, offsets: TensorType, sums: TensorType,
    attention_bias: TensorType | None = None, /, *, num_heads: int, qkv_hidden_sizes: list[int] | None,
) -> TensorType:  # fmt: skip
    check_rank("input", x, 2)
    check_rank("weights", weights, 2)
    rows, width = x.shape or (None, None)
    check_shape("weights", weights, width, None)
    columns = weights.shape[1] if weights.shape is not None else None
    _, _, v = projections.widths(columns, qkv_hidden_sizes, num_heads)
    check_shape("bias", bias, columns)
    packing.check(offsets, sums, attention_bias, rows, num_heads)
    return x.with_shape(rows, v)


@v1.evaluate
def evaluate(
    x: Array, weights: Array, bias: Array, offsets: Array, sums: Array, attention_bias: Array | None = None,
    /, *, num_heads: int, qkv_hidden_sizes: list[int] | None, scale: float | None,
) -> Array:  # fmt: skip
    named: dict[str, Any] = {"num_heads": num_heads, "qkv_hidden_sizes": qkv_hidden_sizes}
    hold(infer, x, weights, bias, offsets, sums, attention_bias, **named)
    products = projections.projected(x, weights, bias)
    third = products.shape[1] // 3
    q, k, v = np.split(products, np.cumsum(qkv_hidden_sizes or [third] * 3)[:2], axis=1)
    y = packing.attend((q, k, v), offsets, sums, attention_bias, num_heads, scale)
    return y.astype(x.dtype, copy=False)


@v1.body
def body(  # ruff: ignore[too-many-arguments]  the operator's signature
    b: Builder, x: Value, weights: Value, bias: Value, offsets: Value, sums: Value,
    attention_bias: Value | None = None, /, *, num_heads: int, qkv_hidden_sizes: list[int] | None,
    scale: float | None,
) -> Value:  # fmt: skip
    products = projections.emitted(b, x, weights, bias)
    if qkv_hidden_sizes is None:
        q, k, v = b.Split(products, num_outputs=3, axis=1, outputs=3)
    else:
        q, k, v = b.Split(products, ints(b, *qkv_hidden_sizes), axis=1, outputs=3)
    y = packing.emitted(b, (q, k, v), offsets, sums, attention_bias, num_heads, scale)
    return calls.typed(b, y, element_of(x))


@packed_attention.examples
def examples() -> Iterator[Example]:
    """Equal scores average the values of the item; scores of a bias log 3 and 0 have the weights 3/4, 1/4."""
    rows = np.array([[2], [4], [8]], np.float32)  # one row in the first item, two in the second
    offsets, sums = np.array([[0, 2], [3, 1]], np.int32), np.array([0, 1, 3], np.int32)
    bias = np.array([[[[np.log(3), 0], [0, 0]]]], np.float32)
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 2e-3)):
        weights, zeros = np.array([[0, 0, 1]], kind), np.zeros(3, kind)
        call = [rows.astype(kind), weights, zeros, offsets, sums]
        even, uneven = (np.array(y, kind) for y in ([[2], [6], [6]], [[2], [5], [6]]))
        named: dict[str, Any] = {"num_heads": 1, "tolerance": tolerance}
        yield Example(1, *call, **named, expect=[even])
        yield Example(1, *call, bias.astype(kind), **named, qkv_hidden_sizes=[1, 1, 1], expect=[uneven])
    wide = np.array([[0, 0, 1, -1]], np.float32)
    call = [rows, wide, np.zeros(4, np.float32), offsets, sums]
    both = np.array([[2, -2], [6, -6], [6, -6]], np.float32)
    yield Example(1, *call, num_heads=1, scale=2.0, qkv_hidden_sizes=[1, 1, 2], expect=[both])
