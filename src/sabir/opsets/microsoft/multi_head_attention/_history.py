"""The signature of MultiHeadAttention and its operands."""

from typing import Generic, NamedTuple, TypeVar

from sabir.opsets.families.attention import ports
from sabir.schema import BFLOAT16, Constraint, Input, Operator, Output, tensors

multi_head_attention = Operator(
    "MultiHeadAttention",
    domain="com.microsoft",
    summary="In each head `softmax(Q K^T scale + mask + bias) V`, with the bias of the projections before.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"), BFLOAT16)
QK = Constraint("QK", tensors("float", "float16"), BFLOAT16)
M = Constraint("M", tensors("int32"))

v1 = multi_head_attention.first(
    1,
    inputs=[
        Input(
            "query",
            T,
            "(batch, queries, heads * size), or with keys and values (batch, queries, heads, 3, size).",
        ),
        Input(
            "key",
            T,
            "(batch, keys, heads * size), with values (batch, keys, heads, 2, size), or (batch, heads, keys, "
            "size).",
            optional=True,
        ),
        Input(
            "value",
            T,
            "(batch, keys, heads * value size), or (batch, heads, keys, value size).",
            optional=True,
        ),
        Input(
            "bias",
            T,
            "(heads * (2 * size + value size)): added to queries, keys and values; not to those of rank 4.",
            optional=True,
        ),
        Input(
            "key_padding_mask",
            M,
            "Which keys are no padding: (batch) or (3 * batch + 2) that starts with the numbers of keys; "
            "positive for keys: (batch, total) or (batch, queries, total).",
            optional=True,
        ),
        ports.attention_bias(T),
        Input("past_key", T, "(batch, heads, past keys, size): before the keys.", optional=True),
        Input("past_value", T, "(batch, heads, past keys, value size): before the values.", optional=True),
        ports.past_sequence_length(M),
        Input(
            "cache_indirection",
            M,
            "(batch / beams, beams, longest): the beam whose buffer has the past key of each position. It "
            "needs one query in each item, and `past_sequence_length`.",
            optional=True,
        ),
    ],
    outputs=[
        Output("output", T, "(batch, queries, heads * value size)."),
        Output("present_key", T, "(batch, heads, total, size), or the buffer.", optional=True),
        Output("present_value", T, "(batch, heads, total, value size), or the buffer.", optional=True),
        Output("qk", QK, "(batch, heads, queries, total): the scores before the softmax.", optional=True),
    ],
    attributes=[
        ports.unidirectional(),
        ports.scale(),
        ports.mask_filter_value(),
        ports.num_heads(),
    ],
)

X = TypeVar("X")


class Operands(NamedTuple, Generic[X]):
    """The operands of a call: types, arrays, values or expressions."""

    query: X
    key: X | None = None
    value: X | None = None
    bias: X | None = None
    mask: X | None = None
    attention_bias: X | None = None
    past_key: X | None = None
    past_value: X | None = None
    filled: X | None = None
    beams: X | None = None


WITH_KEYS, APART, PACKED = 5, 4, 3  # the ranks of queries, keys and values
