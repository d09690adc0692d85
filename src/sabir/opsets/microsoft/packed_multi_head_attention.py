"""PackedMultiHeadAttention: attention in a batch without padding, of queries, keys and values."""

from collections.abc import Iterator
from itertools import starmap
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value, add, mul
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import packing, ports
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

packed_multi_head_attention = Operator(
    "PackedMultiHeadAttention",
    domain="com.microsoft",
    summary="In each head and item of a batch without padding `softmax(Q K^T scale + bias) V`.",
    body_opset=18,
)

T, M = Constraint("T", tensors("float", "float16")), Constraint("M", tensors("int32"))

v1 = packed_multi_head_attention.first(
    1,
    inputs=[
        Input("query", T, "(rows, heads * size), or with keys and values (rows, heads, 3, size)."),
        Input("key", T, "(rows, heads * size).", optional=True),
        Input("value", T, "(rows, heads * value size).", optional=True),
        Input("bias", T, "(heads * (2 * size + value size)): added to all three.", optional=True),
        *ports.packed(M),
        ports.attention_bias(T),
    ],
    outputs=[Output("output", T, "(rows, heads * value size).")],
    attributes=[ports.num_heads(), ports.mask_filter_value(), ports.scale()],
)

TOGETHER = 4  # the rank of queries with keys and values


@v1.infer
def infer(
    q: TensorType, k: TensorType | None, v: TensorType | None, bias: TensorType | None, offsets: TensorType,
    sums: TensorType, attention_bias: TensorType | None = None, /, *, num_heads: int,
) -> TensorType:  # fmt: skip
    if (k is None) != (v is None):
        raise InferenceError("`key` and `value` must be present or absent together")
    packing.check(offsets, sums, attention_bias, q.shape[0] if q.shape else None, num_heads)
    if k is None or v is None:
        check_shape("query", q, None, num_heads, 3, None)
        rows, size = (None, None) if q.shape is None else (q.shape[0], q.shape[3])
        check_shape("bias", bias, mul(mul(size, num_heads), 3))
        return q.with_shape(rows, mul(size, num_heads))
    for name, x in (("query", q), ("key", k), ("value", v)):
        check_rank(name, x, 2)
        if x.shape is not None and isinstance(x.shape[1], int) and x.shape[1] % num_heads:
            raise InferenceError(f"a dimension of {x.shape[1]} of `{name}` cannot be split into heads")
    rows, width = q.shape or (None, None)
    check_shape("key", k, rows, width)
    check_shape("value", v, rows, None)
    columns = v.shape[1] if v.shape is not None else None
    check_shape("bias", bias, add(mul(width, 2), columns))
    return q.with_shape(rows, columns)


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-arguments]  the operator's signature
    q: Array, k: Array | None, v: Array | None, bias: Array | None, offsets: Array, sums: Array,
    attention_bias: Array | None = None, /, *, num_heads: int, scale: float | None,
    mask_filter_value: float | None,
) -> Array:  # fmt: skip
    del mask_filter_value  # there is no padding
    hold(infer, q, k, v, bias, offsets, sums, attention_bias, num_heads=num_heads)
    parts = [q, k, v]
    if k is None or v is None:
        parts = [q[:, :, i].reshape(len(q), num_heads * q.shape[3]) for i in range(3)]
    wide = [widened(x) for x in parts if x is not None]
    if bias is not None:
        added = np.split(widened(bias), np.cumsum([x.shape[1] for x in wide])[:2])
        wide = [x + y for x, y in zip(wide, added, strict=True)]
    y = packing.attend((wide[0], wide[1], wide[2]), offsets, sums, attention_bias, num_heads, scale)
    return y.astype(q.dtype, copy=False)


@v1.body
def body(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    b: Builder, q: Value, k: Value | None, v: Value | None, bias: Value | None, offsets: Value, sums: Value,
    attention_bias: Value | None = None, /, *, num_heads: int, scale: float | None,
) -> Value:  # fmt: skip
    if k is None or v is None:
        each = b.Split(calls.typed(b, q, FLOAT), num_outputs=3, axis=2, outputs=3)
        parts = [b.Flatten(t, axis=1) for t in each]
    else:
        parts = [calls.typed(b, t, FLOAT) for t in (q, k, v)]
    if bias is not None:
        widths = b.Concat(*(graphs.size(b, t, 1) for t in parts), axis=0)
        added = b.Split(calls.typed(b, bias, FLOAT), widths, axis=0, outputs=3)
        parts = list(starmap(b.Add, zip(parts, added, strict=True)))
    y = packing.emitted(b, (parts[0], parts[1], parts[2]), offsets, sums, attention_bias, num_heads, scale)
    return calls.typed(b, y, element_of(q))


@packed_multi_head_attention.examples
def examples() -> Iterator[Example]:
    """Two heads, the second with negative values; equal scores average the values of an item."""
    v = np.array([[2, -2], [4, -4], [8, -8]], np.float32)  # one row in the first item, two in the second
    zeros = np.zeros((3, 2), np.float32)
    offsets, sums = np.array([[0, 2], [3, 1]], np.int32), np.array([0, 1, 3], np.int32)
    bias = np.array([[[[np.log(3), 0], [0, 0]]]], np.float32)
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 4e-3)):
        named: dict[str, Any] = {"num_heads": 2, "tolerance": tolerance}
        parts: list[Any] = [x.astype(kind) for x in (zeros, zeros, v)]
        even = np.array([[2, -2], [6, -6], [6, -6]], kind)
        uneven = np.array([[2, -2], [5, -5], [6, -6]], kind)
        yield Example(1, *parts, None, offsets, sums, **named, expect=[even])
        yield Example(1, *parts, None, offsets, sums, bias.astype(kind), **named, scale=2.0, expect=[uneven])
        together = np.stack(parts, axis=2)[..., None]
        yield Example(1, together, None, None, None, offsets, sums, **named, expect=[even])
        added = np.array([0, 0, 0, 0, 1, 2], kind)
        moved = even + added[4:]
        yield Example(1, *parts, added, offsets, sums, **named, expect=[moved])
        yield Example(1, together, None, None, added, offsets, sums, **named, expect=[moved])
