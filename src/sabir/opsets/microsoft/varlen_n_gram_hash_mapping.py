"""VarlenNGramHashMapping: hashes of the n-grams that end at each token of packed sequences."""

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.sequences import packed_places
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.families.text import hashed_ngrams
from sabir.opsets.families.text.hashed_ngrams import Operands, Packed, Tensor
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Call, Constraint, Example, Input, Operator, Output, one_of, tensors

varlen_n_gram_hash_mapping = Operator(
    "VarlenNGramHashMapping",
    domain="com.microsoft",
    summary="NGramHashMapping of sequences of several lengths, packed one after the other.",
)

M = Constraint("M", tensors("int32", "int64"))
S = Constraint("S", tensors("int32"))

v1 = varlen_n_gram_hash_mapping.first(
    1,
    inputs=[
        Input("input_ids", M, "The tokens of all sequences, [tokens]."),
        Input(
            "multipliers", M, "Of the token at each distance from the current one, `max_ngram_size` or more."
        ),
        Input("vocab_sizes", M, "The modulus of each column, above 0."),
        Input("cumulative_sequence_length", S, "[batch + 1]: the start of each sequence, and the last end."),
        Input(
            "past_ids",
            M,
            "[batch, max_ngram_size - 1]: the tokens before; by default `eos_token_id`, or else `pad_id`.",
            optional=True,
        ),
        Input(
            "head_offsets", M, "A number for each column, added to the hash; integers wrap.", optional=True
        ),
        Input("eos_token_id", M, "A scalar: a token that is in place of missing ones.", optional=True),
        Input(
            "segment_ids", "tensor(int32)", "[tokens]: an n-gram has tokens of one segment.", optional=True
        ),
        Input(
            "past_segment_ids",
            S,
            "[batch, max_ngram_size - 1]: the segments of the tokens before; by default the first one.",
            optional=True,
        ),
        Input(
            "capture_count",
            S,
            "[batch]: the number of states to return of each sequence; with `state_update_capacity` alone.",
            optional=True,
        ),
    ],
    outputs=[
        Output(
            "hash_ids",
            M,
            "[tokens, (max_ngram_size - 1) * n_head_per_ngram]: heads of n = 2, then of n = 3, and so on.",
        ),
        Output("present_ids", M, "The `past_ids` of the next call.", optional=True),
        Output(
            "present_segment_ids",
            S,
            "The `past_segment_ids` of the next call; needs `segment_ids`.",
            optional=True,
        ),
        Output(
            "state_update",
            M,
            "[batch, state_update_capacity, max_ngram_size - 1]: the `past_ids` after each of the first "
            "tokens; `pad_id` elsewhere.",
            optional=True,
        ),
    ],
    attributes=[
        *hashed_ngrams.ATTRIBUTES,
        Attribute(
            "state_update_capacity",
            "int",
            "The most states to return of a sequence.",
            default=0,
            values=one_of(*range(9)),
        ),
    ],
)

_PLACES = "cumulative_sequence_length"

v1.absent("gradient", "the results are integers")
v1.absent("lower", "each token's sequence is found by a search, which is evaluated")


class _Inputs(NamedTuple, Generic[Tensor]):
    """The inputs of a call: those of NGramHashMapping, and those of packed sequences alone."""

    of_ngrams: Operands[Tensor]
    cumulative: Tensor
    past_segments: Tensor | None = None
    counts: Tensor | None = None


def _split(*inputs: Tensor) -> _Inputs[Tensor]:
    return _Inputs(Operands(*inputs[:3], *inputs[4:8]), inputs[3], *inputs[8:])


@v1.infer
def infer(
    *inputs: TensorType, max_ngram_size: int, reset_on_eos: int, state_update_capacity: int, call: Call,
    **attributes: Any,
) -> tuple[TensorType, ...]:  # fmt: skip
    del reset_on_eos
    x, cumulative, past_segments, counts = _split(*inputs)
    columns = hashed_ngrams.check_operands(x, max_ngram_size=max_ngram_size, **attributes)
    if x.segments is None and (past_segments is not None or call.wants(2)):
        raise InferenceError("`past_segment_ids` and `present_segment_ids` need `segment_ids`")
    if (counts is None) != (not state_update_capacity):
        raise InferenceError("`capture_count` is needed exactly if `state_update_capacity` is above 0")
    check_rank("input_ids", x.ids, 1)
    tokens = x.ids.shape[-1] if x.ids.shape else None
    batch, before = packed_places.batch_of(_PLACES, cumulative, tokens), max_ngram_size - 1
    for name, history in (("past_ids", x.past), ("past_segment_ids", past_segments)):
        check_shape(name, history, batch, before)
    check_shape("segment_ids", x.segments, *(x.ids.shape or (None,)))
    check_shape("capture_count", counts, batch)
    return (
        x.ids.with_shape(*(x.ids.shape or (None,)), columns),
        x.ids.with_shape(batch, before),
        cumulative.with_shape(batch, before),
        x.ids.with_shape(batch, state_update_capacity, before),
    )


@v1.evaluate
def evaluate(
    *inputs: Array, max_ngram_size: int, state_update_capacity: int, call: Call, **attributes: Any
) -> tuple[Array | None, ...]:
    attributes["max_ngram_size"] = max_ngram_size
    hold(infer, *inputs, state_update_capacity=state_update_capacity, call=call, **attributes)
    x, cumulative, past_segments, counts = _split(*inputs)
    packed_places.check_places(_PLACES, cumulative.tolist(), len(x.ids))
    packed = Packed.of(cumulative.astype(np.int64), max_ngram_size - 1)
    found = hashed_ngrams.hashed(x, packed, past_segments, **attributes)
    if counts is None:
        counts = np.zeros(len(packed.starts), np.int32)
    return (
        found.hashes,
        packed.last(found.tokens),
        None if found.segments is None else packed.last(found.segments),
        packed.captured(found.tokens, counts, state_update_capacity, attributes["pad_id"]),
    )


@varlen_n_gram_hash_mapping.examples
def examples() -> Iterator[Example]:
    """The first by hand; the others are computed by onnxruntime."""
    # [1], [2] after [9, 4], and [3] after [0, 0]: 1 ^ 40 ^ 900, 2 ^ 10 ^ 400, 3
    y = np.array([[41 % 7, 41, 941 % 5, 941], [8 % 7, 8, 408 % 5, 408], [3, 3, 3, 3]])
    numbers = [1, 2, 3], [1, 10, 100], [7, 1000, 5, 1000]
    options: dict[str, Any] = {"n_head_per_ngram": 2, "max_ngram_size": 3}
    for kind in (np.int32, np.int64):
        call = [np.array(values, kind) for values in numbers]
        past, last = (np.array(rows, kind) for rows in ([[9, 4], [0, 0]], [[1, 2], [0, 3]]))
        results = [y.astype(kind), last]
        places = np.array([0, 2, 3], np.int32)
        yield Example(1, *call, places, past, outputs=2, pad_id=0, **options, expect=results)
        yield from _computed(kind, pad_id=1, **options)


def _computed(kind: type[np.integer[Any]], **options: Any) -> Iterator[Example]:
    draw, limits = np.random.default_rng(0), np.iinfo(kind)
    tokens, past = draw.integers(0, 6, 9).astype(kind), draw.integers(0, 6, (3, 2)).astype(kind)
    factors = draw.integers(limits.min, limits.max, 3, dtype=kind)
    sizes, offsets = np.array([97, 89, 83, 101], kind), np.array([0, 97, 186, 269], kind)
    call = tokens, factors, sizes, np.array([0, 4, 5, 9], np.int32)
    parts = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3], np.int32)
    rest = kind(3), parts, np.array([[0, 0], [1, 0], [2, 1]], np.int32), np.array([2, 5, -1], np.int32)
    captured: dict[str, Any] = {"reset_on_eos": 1, "state_update_capacity": 3, "outputs": 4, **options}
    yield Example(1, *call, outputs=2, **options)
    yield Example(1, *call, past, np.full(4, limits.max, kind), **options)
    for history in (None, past):
        yield Example(1, *call, history, offsets, kind(3), reset_on_eos=1, outputs=2, **options)
        yield Example(1, *call, history, None, None, parts, outputs=3, **options)
        yield Example(1, *call, history, None, *rest, **captured)
    yield Example(1, tokens[:1], factors, sizes, np.array([0, 1], np.int32), outputs=2, **options)
