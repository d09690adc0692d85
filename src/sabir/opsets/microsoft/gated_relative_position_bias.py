"""GatedRelativePositionBias: the bias of attention scores in WavLM, scaled by a gate of each query."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value, exact_quotient
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attentions, packing, ports
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

gated_relative_position_bias = Operator(
    "GatedRelativePositionBias",
    domain="com.microsoft",
    summary="`rel_pos (u (r eco_a - 1) + 2)`; the gates `u` and `r` are sigmoids of sums of a projection of "
    "each query.",
    body_opset=18,
)

T, M = Constraint("T", tensors("float", "float16")), Constraint("M", tensors("int32"))

v1 = gated_relative_position_bias.first(
    1,
    inputs=[
        Input("query_layer", T, "(batch, queries, heads * size)."),
        Input("query_bias", T, "(heads * size): added to the queries."),
        Input("rel_pos", T, "(1, heads, queries, queries): the bias without gates."),
        Input("weight", T, "(size, columns): the projection; each half of the columns is one gate."),
        Input("bias", T, "(columns): added to the projection."),
        Input("eco_a", T, "(1, heads, 1, 1)."),
        Input("token_offset", M, "(batch, queries): the places of queries without padding.", optional=True),
    ],
    outputs=[Output("output", T, "(batch, heads, queries, queries).")],
    attributes=[ports.num_heads()],
)


@v1.infer
def infer(
    queries: TensorType, query_bias: TensorType, distances: TensorType, weight: TensorType, bias: TensorType,
    eco_a: TensorType, offsets: TensorType | None = None, /, *, num_heads: int,
) -> TensorType:  # fmt: skip
    check_rank("query_layer", queries, 3 if offsets is None else 2)
    if offsets is not None:
        packing.check_places(offsets, queries.shape[0] if queries.shape else None)
    batch, steps, width = (
        (None,) * 3
        if queries.shape is None
        else queries.shape
        if offsets is None
        else (*(offsets.shape or (None, None)), queries.shape[1])
    )
    if isinstance(width, int) and width % num_heads:
        raise InferenceError(f"a dimension of {width} cannot be split into {num_heads} heads")
    check_shape("query_bias", query_bias, width)
    check_shape("rel_pos", distances, 1, num_heads, steps, steps)
    check_shape("weight", weight, exact_quotient(width, num_heads), None)
    columns = weight.shape[1] if weight.shape is not None else None
    if isinstance(columns, int) and columns % 2:
        raise InferenceError(f"`weight` must have an even number of columns, and has {columns}")
    check_shape("bias", bias, columns)
    check_shape("eco_a", eco_a, 1, num_heads, 1, 1)
    return queries.with_shape(batch, num_heads, steps, steps)


@v1.evaluate
def evaluate(
    queries: Array, query_bias: Array, distances: Array, weight: Array, bias: Array, eco_a: Array,
    offsets: Array | None = None, /, *, num_heads: int,
) -> Array:  # fmt: skip
    inputs = (queries, query_bias, distances, weight, bias, eco_a)
    hold(infer, *inputs, offsets, num_heads=num_heads)
    q, added, places, columns, constant, a = map(widened, inputs)
    q = q if offsets is None else packing.restored(q, offsets)
    gates = _gates(np.matmul(attentions.split(q + added, num_heads), columns) + constant)
    y = (gates[..., :1] * (gates[..., 1:] * a - 1) + 2) * places
    return y.astype(queries.dtype, copy=False)


def _gates(projected: Array) -> Array:
    """Return the sigmoid of the sum of each half of the columns."""
    sums = projected.reshape(*projected.shape[:3], 2, projected.shape[3] // 2).sum(axis=-1)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-sums))


@v1.body
def body(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    b: Builder, queries: Value, query_bias: Value, distances: Value, weight: Value, bias: Value,
    eco_a: Value, offsets: Value | None = None, /, *, num_heads: int,
) -> Value:  # fmt: skip
    inputs = (queries, query_bias, distances, weight, bias, eco_a)
    q, added, places, columns, constant, a = (calls.typed(b, x, FLOAT) for x in inputs)
    q = q if offsets is None else packing.emitted_restored(b, q, offsets)
    projected = b.Add(b.MatMul(graphs.split(b, b.Add(q, added), num_heads), columns), constant)
    half = b.Div(graphs.size(b, columns, 1), ints(b, 2))
    parts = graphs.reshaped(b, projected, b.Shape(projected, end=3), ints(b, 2), half)
    gates = b.Sigmoid(b.ReduceSum(parts, ints(b, -1), keepdims=0))
    u, r = b.Split(gates, num_outputs=2, axis=-1, outputs=2)
    numbers = Numbers(b, FLOAT)
    gate = numbers.op("Add", b.Mul(u, numbers.op("Sub", b.Mul(r, a), 1)), 2)
    return calls.typed(b, b.Mul(gate, places), element_of(queries))


@gated_relative_position_bias.examples
def by_hand() -> Iterator[Example]:
    """Gates of 1/2 give `(a / 2 - 1) / 2 + 2`."""
    places = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    a = np.array([2, 4], np.float32).reshape(1, 2, 1, 1)
    zeros = [np.zeros(shape, np.float32) for shape in ((1, 2, 4), (4,), (2, 6), (6,))]
    y = places * np.array([2, 2.5], np.float32).reshape(1, 2, 1, 1)
    for kind in (np.float32, np.float16):
        q, added, columns, constant, *rest = (x.astype(kind) for x in (*zeros, places, a, y))
        call = [added, rest[0], columns, constant, rest[1]]
        yield Example(1, q, *call, num_heads=2, expect=[rest[2]])
        yield Example(1, q[0, :1], *call, np.array([[0, 1]], np.int32), num_heads=2, expect=[rest[2]])


@gated_relative_position_bias.examples
def by_numpy() -> Iterator[Example]:
    """In double precision, of random numbers."""
    draw = np.random.default_rng(0)
    shapes = (2, 2, 4), (4,), (1, 2, 2, 2), (2, 6), (6,), (1, 2, 1, 1)
    single = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
    x, added, places, columns, constant, a = (t.astype(np.float64) for t in single)
    heads = (x + added).reshape(2, 2, 2, 2).swapaxes(1, 2)
    gates = 1 / (1 + np.exp(-(heads @ columns + constant).reshape(2, 2, 2, 2, 3).sum(-1)))
    y = (gates[..., :1] * (gates[..., 1:] * a - 1) + 2) * places
    yield Example(1, *single, num_heads=2, expect=[y.astype(np.float32)])
    order = np.array([[1, 2], [0, 3]], np.int32)  # the first three rows of the batch, and one of padding
    packed = single[0].reshape(4, 4)[[1, 2, 0, 3]]
    yield Example(1, packed, *single[1:], order, num_heads=2, expect=[y.astype(np.float32)])
