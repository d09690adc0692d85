"""The history of Attention."""

from sabir.opsets.families.attention.attentions import PRECISIONS
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOATS,
    NUMBERS,
    Attribute,
    Constraint,
    Input,
    Operator,
    Output,
    at_least,
    one_of,
)

attention = Operator(
    "Attention",
    summary="Sums of values, weighted by the similarity of their keys to each query: in each head "
    "`softmax(Q K^T scale + mask) V`.",
)

T1 = Constraint("T1", FLOATS, BFLOAT16)
T2 = Constraint("T2", FLOATS, BFLOAT16)
U = Constraint("U", NUMBERS, BFLOAT16, BOOL)

v23 = attention.first(
    23,
    inputs=[
        Input("Q", T1, "(batch, heads, queries, size), or (batch, queries, heads * size)."),
        Input("K", T1, "(batch, kv heads, new keys, size), or (batch, new keys, kv heads * size)."),
        Input("V", T2, "As K; its size may differ."),
        Input(
            "attn_mask",
            U,
            "True where a query attends to a key, or a bias to add to the scores; broadcasts to (batch, "
            "heads, queries, keys); keys after its end are excluded.",
            optional=True,
        ),
        Input("past_key", T1, "(batch, kv heads, past keys, size), concatenated before K.", optional=True),
        Input("past_value", T2, "Present with `past_key`, concatenated before V.", optional=True),
    ],
    outputs=[
        Output("Y", T1, "(batch, heads, queries, value size), or (batch, queries, heads * value size) as Q."),
        Output("present_key", T1, "All keys, (batch, kv heads, keys, size).", optional=True),
        Output("present_value", T2, "All values, (batch, kv heads, keys, value size).", optional=True),
        Output("qk_matmul_output", T1, "The scores, (batch, heads, queries, keys).", optional=True),
    ],
    attributes=[
        Attribute(
            "qk_matmul_output_mode",
            "int",
            "The scores to output: 0 the scaled products, 1 capped, 2 masked, 3 the probabilities.",
            default=0,
            values=one_of(0, 1, 2, 3),
        ),
        Attribute(
            "softcap", "float", "Scores become `softcap tanh(score / softcap)`; 0: no cap.", default=0.0
        ),
        Attribute(
            "softmax_precision",
            "int",
            "The element type of the softmax; that of Q by default.",
            values=PRECISIONS,
        ),
        Attribute("kv_num_heads", "int", "The number of heads of K and V of rank 3.", values=at_least(0)),
        Attribute(
            "q_num_heads",
            "int",
            "The number of heads of Q of rank 3, a multiple of that of K.",
            values=at_least(0),
        ),
        Attribute("scale", "float", "The factor of the products; 1 / sqrt(size) by default."),
        Attribute("is_causal", "int", "1: a query does not attend to the keys after it.", default=0),
    ],
)
v24 = v23.extend(
    24,
    "`nonpad_kv_seqlen` is the end of an external cache; a mask may end before the keys.",
    inputs=[
        Input(
            "nonpad_kv_seqlen",
            "tensor(int64)",
            "(batch): the number of valid keys; the queries are at the last of them.",
            optional=True,
        )
    ],
)
v25 = v24.extend(
    25,
    "A window limits the keys of each query; rank 4 excludes the numbers of heads. (Added after opset 27 was "
    "released.)",
    attributes=[
        Attribute(
            "right_window_size",
            "int",
            "The number of keys after its own that a query attends to; -1: all.",
            default=-1,
            values=at_least(-1),
        ),
        Attribute(
            "left_window_size",
            "int",
            "The number of keys before its own that a query attends to; -1: all.",
            default=-1,
            values=at_least(-1),
        ),
    ],
)

PACKED, APART = 3, 4  # the ranks of Q, K and V
PADDED_MASKS = 24  # the opset since which a mask may end before the keys
HEADS_ONCE = 25  # the opset since which rank 4 excludes the attributes
