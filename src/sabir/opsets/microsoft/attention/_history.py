"""The signature of onnxruntime's Attention and its operands."""

from typing import Generic, NamedTuple, TypeVar

from sabir.opsets.families.attention import ports
from sabir.schema import BFLOAT16, Attribute, Constraint, Input, Operator, Output, one_of, tensors

attention = Operator(
    "Attention",
    domain="com.microsoft",
    summary="The input is projected to queries, keys and values; in each head `softmax(Q K^T scale + mask + "
    "bias) V`.",
    body_opset=18,
    lacks=("A rotation of queries and keys (`do_rotary`) is refused, as by onnxruntime's CPU kernel.",),
)

T = Constraint("T", tensors("float", "float16"), BFLOAT16)
M = Constraint("M", tensors("int32"))

v1 = attention.first(
    1,
    inputs=[
        Input("input", T, "(batch, queries, width)."),
        Input("weights", T, "(width, q + k + v columns)."),
        Input("bias", T, "(q + k + v columns): added to the projections.", optional=True),
        Input(
            "mask_index",
            M,
            "Which keys are no padding: (batch) or (3 * batch + 2) that starts with the numbers of keys; "
            "(2 * batch) with their ends, then their starts; positive for keys: (batch, total), "
            "(batch, queries, total), or by position (batch, 1, longest, longest).",
            optional=True,
        ),
        Input("past", T, "(2, batch, heads, past keys, size): keys and values before.", optional=True),
        ports.attention_bias(T),
        ports.past_sequence_length(M),
    ],
    outputs=[
        Output("output", T, "(batch, queries, v columns)."),
        Output(
            "present", T, "(2, batch, heads, total, size): all keys and values, or the buffer.", optional=True
        ),
    ],
    attributes=[
        ports.scale(),
        ports.mask_filter_value(),
        Attribute("do_rotary", "int", "1: queries and keys are rotated by their positions."),
        Attribute(
            "past_present_share_buffer",
            "int",
            "1: `past` is a buffer, in which the new keys follow the past ones.",
            values=one_of(0, 1),
        ),
        Attribute("qkv_hidden_sizes", "ints", "The columns of queries, keys and values; a third by default."),
        ports.unidirectional(),
        Attribute("rotary_embedding_dim", "int", "The number of elements of a head to rotate."),
        ports.num_heads(),
    ],
)

X = TypeVar("X")


class Operands(NamedTuple, Generic[X]):
    """The operands of a call: types, arrays, values or expressions."""

    x: X
    weights: X
    bias: X | None = None
    mask: X | None = None
    past: X | None = None
    attention_bias: X | None = None
    filled: X | None = None


class Options(NamedTuple):
    """The attributes of a call."""

    num_heads: int
    scale: float | None
    mask_filter_value: float | None
    do_rotary: int | None
    past_present_share_buffer: int | None
    qkv_hidden_sizes: list[int] | None
    unidirectional: int
    rotary_embedding_dim: int | None
