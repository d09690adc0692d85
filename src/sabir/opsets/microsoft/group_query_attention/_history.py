"""The signature of GroupQueryAttention, its operands and its attributes."""

from typing import Generic, NamedTuple, TypeVar

from sabir.opsets.families.attention import ports
from sabir.schema import BFLOAT16, Attribute, Constraint, Input, Operator, Output, at_least, one_of, tensors

group_query_attention = Operator(
    "GroupQueryAttention",
    domain="com.microsoft",
    summary="Attention to a cache of keys and values, to which the new ones are added; several heads of "
    "queries share one of keys.",
    body_opset=18,
    lacks=("`qk_output` with `sliding_window_cache`: onnxruntime's CPU provider refuses it too.",),
)

T = Constraint("T", tensors("float", "float16"), BFLOAT16)
T_CACHE = Constraint("T_CACHE", tensors("float", "float16", "uint8", "int8", "float8e4m3fn"), BFLOAT16)
T_KV_SCALE = Constraint("T_KV_SCALE", tensors("float"))
M = Constraint("M", tensors("int32"))

v1 = group_query_attention.first(
    1,
    inputs=[
        Input(
            "query",
            T,
            "(batch, queries, heads * size); without `key` and `value` they follow in each row: (batch, "
            "queries, (heads + 2 * kv heads) * size).",
        ),
        Input(
            "key",
            T,
            "(batch, queries, kv heads * size), or (batch, 0, kv heads * size) to read the cache only.",
            optional=True,
        ),
        Input("value", T, "The shape of `key`.", optional=True),
        Input(
            "past_key",
            T_CACHE,
            "(batch, kv heads, capacity, size). The capacity is `total_sequence_length` or more, or that "
            "less the new keys.",
            optional=True,
        ),
        Input("past_value", T_CACHE, "The shape of `past_key`.", optional=True),
        Input("seqlens_k", M, "(batch): the number of keys of each item with the new ones, less 1."),
        Input("total_sequence_length", M, "The largest number of keys of an item, a scalar."),
        Input("cos_cache", T, "(positions, pairs): cosines of the rotation.", optional=True),
        Input("sin_cache", T, "The shape of `cos_cache`: sines.", optional=True),
        Input(
            "position_ids",
            "tensor(int64)",
            "(batch, queries): rows of the caches of the rotation, by default the places of the keys. Where "
            "all keys are new, only the first counts: it is the position of the first query of each item.",
            optional=True,
        ),
        ports.attention_bias(T),
        Input(
            "head_sink", T, "(heads): the score of a further key without a value in each head.", optional=True
        ),
        Input(
            "k_scale",
            T_KV_SCALE,
            "The step of quantised keys: one, or one for each kv head and element.",
            optional=True,
        ),
        Input("v_scale", T_KV_SCALE, "The step of quantised values, as for keys.", optional=True),
        Input(
            "q_norm_weight",
            T,
            "(size): each head of the queries is divided by its root mean square and multiplied by this.",
            optional=True,
        ),
        Input("k_norm_weight", T, "(size): the same for the keys; both or none.", optional=True),
        Input(
            "query_seqlens",
            M,
            "(batch): the number of queries of each item. Those after it are padding, and their output is 0. "
            "The first position is `seqlens_k` + 1 less this number. The cache has room for all rows.",
            optional=True,
        ),
    ],
    outputs=[
        Output("output", T, "(batch, queries, heads * size)."),
        Output(
            "present_key",
            T_CACHE,
            "(batch, kv heads, capacity, size), with at least `total_sequence_length` rows; rows after the "
            "last key of an item are unspecified.",
            optional=True,
        ),
        Output("present_value", T_CACHE, "The shape of `present_key`.", optional=True),
        Output(
            "output_qk",
            T,
            "(batch, heads, queries, total): the scores that `qk_output` selects; 0 for keys that a query "
            "does not attend to.",
            optional=True,
        ),
    ],
    attributes=[
        Attribute(
            "kv_cache_bit_width", "int", "The bits of a number of a quantised cache.", values=one_of(0, 4, 8)
        ),
        Attribute("num_heads", "int", "The number of heads of queries.", required=True, values=at_least(1)),
        Attribute(
            "softcap", "float", "Scores become `softcap tanh(score / softcap)`; 0, the default: no cap."
        ),
        Attribute(
            "kv_num_heads",
            "int",
            "The number of heads of keys, of which that of queries is a multiple.",
            required=True,
            values=at_least(1),
        ),
        Attribute(
            "sliding_window_cache",
            "int",
            "1: the cache drops keys before the window, and has the others in its first rows.",
            default=0,
            values=one_of(0, 1),
        ),
        Attribute("do_rotary", "int", "1: queries and new keys are rotated by their positions."),
        Attribute(
            "causal",
            "int",
            "1: a query does not attend to the keys after it.",
            default=1,
            values=one_of(0, 1),
        ),
        Attribute("scale", "float", "The factor of the products; 0 or absent: 1 / sqrt(size)."),
        Attribute(
            "local_window_size",
            "int",
            "A query attends to this many keys, of which its own is the last; -1: all.",
            default=-1,
            values=at_least(-1),
        ),
        Attribute(
            "rotary_interleaved", "int", "1: neighbours are pairs; else elements of the two halves are."
        ),
        Attribute(
            "qk_output",
            "int",
            "What `output_qk` is: 0 absent, 1 the scores, 2 the probabilities.",
            default=0,
            values=one_of(0, 1, 2),
        ),
        Attribute(
            "qk_norm_epsilon", "float", "Added to the mean square of a head.", default=9.999999974752427e-07
        ),
        Attribute("q_norm_epsilon", "float", "For heads of queries; `qk_norm_epsilon` by default."),
        Attribute("k_norm_epsilon", "float", "For heads of keys; `qk_norm_epsilon` by default."),
        Attribute(
            "v_quant_type",
            "string",
            "How the values of the cache are quantised.",
            default="NONE",
            values=one_of("NONE", "PER_TENSOR", "PER_CHANNEL"),
        ),
        Attribute(
            "smooth_softmax",
            "int",
            "1: the sum of the softmax has a further term, exp(0), unless `head_sink` has one.",
            default=-1,
        ),
        Attribute(
            "k_quant_type",
            "string",
            "How the keys of the cache are quantised.",
            default="NONE",
            values=one_of("NONE", "PER_TENSOR", "PER_CHANNEL"),
        ),
    ],
)


class Options(NamedTuple):
    """The attributes of a call."""

    num_heads: int
    kv_num_heads: int
    kv_cache_bit_width: int | None
    softcap: float | None
    sliding_window_cache: int
    do_rotary: int | None
    causal: int
    scale: float | None
    local_window_size: int
    rotary_interleaved: int | None
    qk_output: int
    qk_norm_epsilon: float
    q_norm_epsilon: float | None
    k_norm_epsilon: float | None
    v_quant_type: str
    smooth_softmax: int
    k_quant_type: str

    @property
    def epsilons(self) -> tuple[float, float]:
        """What is added to the mean squares of the heads of queries and of keys."""
        shared = self.qk_norm_epsilon
        query, key = self.q_norm_epsilon, self.k_norm_epsilon
        return shared if query is None else query, shared if key is None else key


X = TypeVar("X")


class Norm(NamedTuple, Generic[X]):
    """How heads are normalized: not at all without a weight."""

    weight: X | None
    epsilon: float


class Operands(NamedTuple, Generic[X]):
    """The operands of a call: types, arrays, values or expressions."""

    query: X
    key: X | None
    value: X | None
    past_key: X | None
    past_value: X | None
    seqlens_k: X
    total: X
    cos: X | None = None
    sin: X | None = None
    positions: X | None = None
    bias: X | None = None
    sink: X | None = None
    k_scale: X | None = None
    v_scale: X | None = None
    q_norm: X | None = None
    k_norm: X | None = None
    lengths: X | None = None

    def norms(self, options: Options) -> tuple[Norm[X], Norm[X]]:
        """Return how the heads of queries and of keys are normalized."""
        query, key = options.epsilons
        return Norm(self.q_norm, query), Norm(self.k_norm, key)
