"""The history of Attention."""

from sabir.opsets.families.attentions import PRECISIONS
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
    summary="Sums of values, weighted by how well their keys match each query: in each head "
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
        Input("V", T2, "As K, with a size of its own."),
        Input(
            "attn_mask",
            U,
            "True where a query may see a key, or what is added to their score; broadcasts to (batch, heads, "
            "queries, keys), what it lacks of the keys is hidden.",
            optional=True,
        ),
        Input("past_key", T1, "(batch, kv heads, past keys, size), put before K.", optional=True),
        Input("past_value", T2, "Given with `past_key`, put before V.", optional=True),
    ],
    outputs=[
        Output("Y", T1, "(batch, heads, queries, value size), or heads side by side as in Q."),
        Output("present_key", T1, "All keys, (batch, kv heads, keys, size).", optional=True),
        Output("present_value", T2, "All values, (batch, kv heads, keys, value size).", optional=True),
        Output("qk_matmul_output", T1, "The scores, (batch, heads, queries, keys).", optional=True),
    ],
    attributes=[
        Attribute(
            "qk_matmul_output_mode",
            "int",
            "Which scores are given: 0 the scaled products, 1 capped, 2 with the masks, 3 the probabilities.",
            default=0,
            values=one_of(0, 1, 2, 3),
        ),
        Attribute("softcap", "float", "Scores become `softcap tanh(score / softcap)`; 0: not.", default=0.0),
        Attribute(
            "softmax_precision",
            "int",
            "The element type of the softmax; that of Q by default.",
            values=PRECISIONS,
        ),
        Attribute(
            "kv_num_heads", "int", "The heads of K and V, where these are of rank 3.", values=at_least(0)
        ),
        Attribute(
            "q_num_heads",
            "int",
            "The heads of Q where it is of rank 3, a multiple of K's.",
            values=at_least(0),
        ),
        Attribute("scale", "float", "Factor of the products; 1 / sqrt(size) by default."),
        Attribute("is_causal", "int", "1: a query does not see the keys that come after it.", default=0),
    ],
)
v24 = v23.extend(
    24,
    "`nonpad_kv_seqlen` tells how far a cache kept outside is filled; a mask may end before the keys.",
    inputs=[
        Input(
            "nonpad_kv_seqlen",
            "tensor(int64)",
            "(batch): how many of the keys count; the queries belong to the last of them.",
            optional=True,
        )
    ],
)
v25 = v24.extend(
    25,
    "A window limits how far each query sees; heads are not told twice. (Added after opset 27 was out.)",
    attributes=[
        Attribute(
            "right_window_size",
            "int",
            "How many keys after its own a query sees; -1: all.",
            default=-1,
            values=at_least(-1),
        ),
        Attribute(
            "left_window_size",
            "int",
            "How many keys before its own a query sees; -1: all.",
            default=-1,
            values=at_least(-1),
        ),
    ],
)

PACKED, APART = 3, 4  # the ranks of Q, K and V
PADDED_MASKS = 24  # since when a mask may end before the keys
ONE_TELLS_HEADS = 25  # since when rank 4 excludes the attributes
