"""NGramHashMapping: hashes of the n-grams that end at each token."""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.families.text import hashed_ngrams
from sabir.opsets.families.text.hashed_ngrams import Operands, Packed
from sabir.opsets.typing import Array
from sabir.schema import Call, Constraint, Example, Input, Operator, Output, tensors

n_gram_hash_mapping = Operator(
    "NGramHashMapping",
    domain="com.microsoft",
    summary="The last n tokens times their multipliers, combined by exclusive or, modulo a size.",
    body_opset=18,
)

M = Constraint("M", tensors("int32", "int64"))

v1 = n_gram_hash_mapping.first(
    1,
    inputs=[
        Input("input_ids", M, "Tokens, [batch, sequence]."),
        Input(
            "multipliers", M, "Of the token at each distance from the current one, `max_ngram_size` or more."
        ),
        Input("vocab_sizes", M, "The modulus of each column, above 0."),
        Input(
            "past_ids",
            M,
            "[batch, max_ngram_size - 1]: the tokens before; by default `eos_token_id`, or else `pad_id`.",
            optional=True,
        ),
        Input("head_offsets", M, "A number for each column, added to the hash.", optional=True),
        Input("eos_token_id", M, "A scalar: a token that is in place of missing ones.", optional=True),
        Input(
            "segment_ids",
            "tensor(int32)",
            "[batch, sequence]: an n-gram has tokens of one segment; the tokens before are of the first one.",
            optional=True,
        ),
    ],
    outputs=[
        Output(
            "hash_ids",
            M,
            "[batch, sequence, (max_ngram_size - 1) * n_head_per_ngram]: heads of n = 2, then of n = 3, ...",
        ),
        Output("present_ids", M, "The `past_ids` of the next call.", optional=True),
    ],
    attributes=hashed_ngrams.ATTRIBUTES,
)

v1.absent("gradient", "the results are integers")

_END = np.iinfo(np.int64).max


@v1.infer
def infer(*inputs: TensorType, max_ngram_size: int, reset_on_eos: int, **attributes: Any) -> Any:
    del reset_on_eos
    x = Operands(*inputs)
    columns = hashed_ngrams.check_operands(x, max_ngram_size=max_ngram_size, **attributes)
    check_rank("input_ids", x.ids, 2)
    batch, sequence = x.ids.shape or (None, None)
    check_shape("past_ids", x.past, batch, max_ngram_size - 1)
    check_shape("segment_ids", x.segments, batch, sequence)
    return x.ids.with_shape(batch, sequence, columns), x.ids.with_shape(batch, max_ngram_size - 1)


@v1.evaluate
def evaluate(*inputs: Array, max_ngram_size: int, **attributes: Any) -> tuple[Array, Array]:
    hold(infer, *inputs, max_ngram_size=max_ngram_size, **attributes)
    x = Operands(*inputs)
    batch, sequence = x.ids.shape
    parts = x.segments.reshape(-1) if x.segments is not None and sequence else None
    flat = x._replace(ids=x.ids.reshape(-1), segments=parts)
    packed = Packed.of(np.arange(len(x.ids) + 1) * sequence, max_ngram_size - 1)
    found = hashed_ngrams.hashed(flat, packed, max_ngram_size=max_ngram_size, **attributes)
    return found.hashes.reshape(batch, sequence, len(x.moduli)), packed.last(found.tokens)


@v1.body
def body(
    b: Builder, *inputs: Value, pad_id: int, n_head_per_ngram: int, max_ngram_size: int, reset_on_eos: int,
    call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    x = Operands(*inputs)
    missing = Numbers.like(b, x.ids)(pad_id) if x.eos is None else x.eos
    history = x.past
    if history is None:
        count = as_input(b, "count", [max_ngram_size - 1])
        history = b.Expand(missing, b.Concat(b.Shape(x.ids, end=1), count, axis=0))
    joined = b.Concat(history, x.ids, axis=1)
    windows = _Windows(b, joined, max_ngram_size - 1)
    eos = x.eos if reset_on_eos else None
    known = windows.known(eos, x.segments)
    mixed, columns = b.Mul(x.ids, _part(b, x.multipliers, 0, 1)), list[Value]()
    for distance in range(1, max_ngram_size):
        tokens = windows.at(joined, distance)
        if known:
            tokens = b.Where(known[distance - 1], tokens, missing)
        mixed = b.BitwiseXor(mixed, b.Mul(tokens, _part(b, x.multipliers, distance, 1)))
        moduli = _part(b, x.moduli, (distance - 1) * n_head_per_ngram, n_head_per_ngram)
        columns.append(b.Mod(b.Unsqueeze(mixed, as_input(b, "axes", [-1])), moduli))
    y = b.Concat(*columns, axis=-1)
    y = y if x.offsets is None else b.Add(y, x.offsets)
    return (y, _columns(b, joined, 1 - max_ngram_size, _END))[: len(call.outputs)]


class _Windows(NamedTuple):
    """The tokens at each distance before the current ones."""

    b: Builder
    joined: Value  # [batch, before + sequence]
    before: int

    def at(self, joined: Value, distance: int) -> Value:
        return _columns(self.b, joined, self.before - distance, -distance)

    def known(self, eos: Value | None, segments: Value | None) -> list[Value]:
        """Return for each distance which tokens count, or nothing if all do."""
        b, found = self.b, list[Value]()
        if segments is not None:
            pads = as_input(b, "pads", [0, self.before, 0, 0])
            segments = b.Pad(segments, pads, mode="edge")
        for distance in range(1, self.before + 1):
            conditions = found[-1:]
            if eos is not None:
                conditions.append(b.Not(b.Equal(self.at(self.joined, distance), eos)))
            if segments is not None:
                conditions.append(b.Equal(self.at(segments, distance), self.at(segments, distance - 1)))
            if conditions:
                found.append(functools.reduce(b.And, conditions))
        return found


def _part(b: Builder, x: Value, start: int, count: int) -> Value:
    return b.Slice(x, as_input(b, "start", [start]), as_input(b, "end", [start + count]))


def _columns(b: Builder, x: Value, start: int, end: int) -> Value:
    return b.Slice(x, *(as_input(b, "columns", [n]) for n in (start, end or _END, 1)))


@n_gram_hash_mapping.examples
def examples() -> Iterator[Example]:
    """The first by hand; the others are computed by onnxruntime."""
    ids, factors = np.array([[1, 2, 3]]), np.array([1, 10, 100])
    sizes = np.array([7, 1000, 5, 1000])
    # [1], [2], [3] after [9, 4]: 1 ^ 40 ^ 900, 2 ^ 10 ^ 400, 3 ^ 20 ^ 100
    y = np.array([[[41 % 7, 41, 941 % 5, 941], [8 % 7, 8, 408 % 5, 408], [23 % 7, 23, 115 % 5, 115]]])
    by_hand: dict[str, Any] = {"pad_id": 0, "n_head_per_ngram": 2, "max_ngram_size": 3}
    for kind in (np.int32, np.int64):
        call = [t.astype(kind) for t in (ids, factors, sizes, np.array([[9, 4]]))]
        results = [y.astype(kind), np.array([[2, 3]], kind)]
        yield Example(1, *call, outputs=2, **by_hand, expect=results)
    draw = np.random.default_rng(0)
    options: dict[str, Any] = {"pad_id": 1, "n_head_per_ngram": 2, "max_ngram_size": 3}
    for kind in (np.int32, np.int64):
        limits = np.iinfo(kind)
        ids, past = draw.integers(0, 6, (2, 7)).astype(kind), draw.integers(0, 6, (2, 2)).astype(kind)
        factors = draw.integers(limits.min, limits.max, 3, dtype=kind)
        sizes, offsets, eos = np.array([97, 89, 83, 101], kind), np.array([0, 97, 186, 269], kind), kind(3)
        parts = np.array([[0, 0, 1, 1, 1, 2, 2], [0, 0, 0, 0, 5, 5, 4]], np.int32)
        call = ids, factors, sizes
        yield Example(1, *call, outputs=2, **options)
        yield Example(1, *call, past, offsets, outputs=2, **options)
        yield Example(1, *call, None, None, eos, outputs=2, **options)
        for history in (None, past):
            yield Example(1, *call, history, None, eos, reset_on_eos=1, outputs=2, **options)
            yield Example(1, *call, history, offsets, None, parts, reset_on_eos=1, outputs=2, **options)
            yield Example(1, *call, history, None, eos, parts, reset_on_eos=1, outputs=2, **options)
        options = {"pad_id": -1, "n_head_per_ngram": 4, "max_ngram_size": 2}
        yield Example(1, *call, reset_on_eos=1, **options)
        yield Example(1, ids[:, :1], factors, sizes, past[:, :1], outputs=2, **options)
        yield Example(1, ids[:, :0], factors, sizes, past[:, :1], outputs=2, **options)
        yield Example(1, ids[:0], factors, sizes, **options)
        options = {"pad_id": 2, "n_head_per_ngram": 2, "max_ngram_size": 3}
