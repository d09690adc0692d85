"""RelativePositionBias: the bias of attention scores in T5, by buckets of distances."""

from collections.abc import Iterator

import numpy as np

from sabir.base import EvaluationError, InferenceError, check_elements
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.numbers.arithmetic import as_dim
from sabir.opsets.families.shapes.ranks import check_one, check_rank, hold
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import (
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    tensors,
)

relative_position_bias = Operator(
    "RelativePositionBias",
    domain="com.microsoft",
    summary="For each head, query and key the bias of the bucket of their distance: near distances have a "
    "bucket each, others share buckets that grow with the distance.",
    body_opset=18,
)

T, U = Constraint("T", tensors("float", "float16")), Constraint("U", tensors("int64"))

v1 = relative_position_bias.first(
    1,
    inputs=[
        Input(
            "bias_table", T, "(buckets, heads), in the order of columns: all buckets of a head are adjacent."
        ),
        Input("query_length", U, "The number of queries, one element."),
        Input("key_length", U, "The number of keys, one element."),
    ],
    outputs=[Output("output", T, "(1, heads, queries, keys).")],
    attributes=[
        Attribute(
            "max_distance",
            "int",
            "Distances from this on have the last bucket.",
            required=True,
            values=at_least(1),
        ),
        Attribute(
            "is_bidirectional",
            "int",
            "1: keys after the query have the second half of the buckets.",
            default=0,
        ),
    ],
)


@v1.infer
def infer(
    table: TensorType, queries: TensorType, keys: TensorType, /, *, max_distance: int, is_bidirectional: int
) -> TensorType:
    check_rank("bias_table", table, 2)
    buckets, heads = table.shape or (None, None)
    if isinstance(buckets, int):
        check_buckets(buckets, max_distance, is_bidirectional)
    lengths = (_length("query_length", queries), _length("key_length", keys))
    return table.with_shape(1, heads, *lengths)


def _length(name: str, x: TensorType) -> Dim:
    check_one(name, x)
    length = as_dim(x.known[0]) if x.known else None
    if isinstance(length, int) and length < 0:
        raise InferenceError(f"`{name}` must be 0 or more, and is {length}")
    return length


def check_buckets(buckets: int, max_distance: int, is_bidirectional: int) -> int:
    """Return the number of distances with a bucket each; raises InferenceError where it is no division."""
    near = buckets // (4 if is_bidirectional else 2)
    if not 0 < near < max_distance:
        raise InferenceError(f"{buckets} buckets do not divide distances up to {max_distance}")
    return near


def by_distance(buckets: int, max_distance: int, is_bidirectional: int) -> Array:
    """Return the bucket of each distance up to `max_distance`, which is that of all greater ones."""
    near = check_buckets(buckets, max_distance, is_bidirectional)
    count = buckets // 2 if is_bidirectional else buckets
    check_elements(max_distance + 1, what="the buckets of all distances", width=8)
    distances = np.arange(max_distance + 1)
    far = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(near))
    steps = far / np.float32(np.log(max_distance / near)) * np.float32(count - near)
    return np.where(distances < near, distances, np.minimum(near + steps.astype(np.int64), count - 1))


@v1.evaluate
def evaluate(
    table: Array, queries: Array, keys: Array, /, *, max_distance: int, is_bidirectional: int
) -> Array:
    hold(infer, table, queries, keys, max_distance=max_distance, is_bidirectional=is_bidirectional)
    buckets, heads = table.shape
    rows, columns = int(queries.item()), int(keys.item())
    if min(rows, columns) < 0:
        raise EvaluationError(f"`query_length` and `key_length` must be 0 or more: {rows}, {columns}")
    allotted((1, heads, rows, columns), table.dtype)
    distances = np.arange(columns) - np.arange(rows)[:, None]
    lookup = by_distance(buckets, max_distance, is_bidirectional)
    away = np.abs(distances) if is_bidirectional else np.maximum(-distances, 0)
    chosen = lookup[np.minimum(away, max_distance)]
    if is_bidirectional:
        chosen += np.where(distances > 0, buckets // 2, 0)
    return table.reshape(heads, buckets)[:, chosen][None]


@v1.body
def body(
    b: Builder, table: Value, queries: Value, keys: Value, /, *, max_distance: int, is_bidirectional: int
) -> Value:
    shape = table.type.shape if isinstance(table.type, TensorType) else None
    buckets, heads = (None, None) if shape is None else shape
    if not isinstance(buckets, int) or not isinstance(heads, int):
        raise Unconvertible("the numbers of buckets and heads are unknown, and the buckets depend on them")
    if not all(isinstance(x.type, TensorType) and x.type.known for x in (queries, keys)):
        raise Unconvertible("a length that is no known size may be negative, which no operator here refuses")
    rows, columns = (graphs.indices(b, b.Reshape(x, ints(b, 1))) for x in (queries, keys))
    distances = b.Sub(columns, b.Unsqueeze(rows, ints(b, 1)))
    away = b.Abs(distances) if is_bidirectional else b.Max(b.Neg(distances), ints(b, 0))
    lookup = b.initializer("buckets", by_distance(buckets, max_distance, is_bidirectional))
    chosen = b.Gather(lookup, b.Min(away, ints(b, max_distance)))
    if is_bidirectional:
        after = b.Where(b.Greater(distances, ints(b, 0)), ints(b, buckets // 2), ints(b, 0))
        chosen = b.Add(chosen, after)
    y = b.Gather(b.Reshape(table, ints(b, heads, buckets)), chosen, axis=1)
    return b.Unsqueeze(y, ints(b, 0))


@relative_position_bias.examples
def examples() -> Iterator[Example]:
    """Tables of bucket numbers, so that the output is the buckets; by transformers' T5Attention."""
    for kind in (np.float32, np.float16):
        table = np.array([np.arange(8), 10 + np.arange(8)], kind).reshape(8, 2)
        before = np.array(
            [[0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [2, 1, 0, 0, 0, 0], [3, 2, 1, 0, 0, 0]], kind
        )
        lengths = np.array([4]), np.array([6])
        expected = np.stack([before, before + kind(10)])[None]
        yield Example(1, table, *lengths, max_distance=12, expect=[expected])
        far = np.array([[0], [1], [2], [3], [4], [4], [5], [6], [6], [6], [7], [7], [7], [7]], kind)
        expected = np.stack([far, far + kind(10)])[None]
        yield Example(1, table, np.array(14), np.array(1), max_distance=12, expect=[expected])
        both = np.array([[0, 5, 6, 6, 6, 7, 7], [1, 0, 5, 6, 6, 6, 7], [2, 1, 0, 5, 6, 6, 6]], kind)
        expected = np.stack([both, both + kind(10)])[None]
        yield Example(1, table, [3], [7], max_distance=12, is_bidirectional=1, expect=[expected])
    table, none = np.zeros((8, 2), np.float32), np.zeros((1, 2, 0, 3), np.float32)
    yield Example(1, table, [0], [3], max_distance=12, expect=[none])
