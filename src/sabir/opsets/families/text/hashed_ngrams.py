"""Hashes of the n-grams that end at each token of some sequences.

The sequences are packed, one after the other; each continues a history of `K = max_ngram_size - 1` tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.opsets.families.shapes.sizes import spend_operations
from sabir.schema import Attribute, at_least

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import TensorType, Value
    from sabir.opsets.typing import Array

ATTRIBUTES = (
    Attribute("pad_id", "int", "The token before the start of a sequence.", required=True),
    Attribute(
        "n_head_per_ngram",
        "int",
        "The number of hashes of an n-gram of each length.",
        required=True,
        values=at_least(1),
    ),
    Attribute(
        "max_ngram_size", "int", "The length of the longest n-grams.", required=True, values=at_least(2)
    ),
    Attribute(
        "reset_on_eos",
        "int",
        "Not 0: an n-gram has no tokens up to the last `eos_token_id` before the current token.",
        default=0,
    ),
)


Tensor = TypeVar("Tensor", "TensorType", "Array", "Value")


class Operands(NamedTuple, Generic[Tensor]):
    """The inputs of NGramHashMapping: types, arrays or values."""

    ids: Tensor
    multipliers: Tensor  # of the token at each distance from the current one
    moduli: Tensor  # of each column: there is one for each head of each length from 2 on
    past: Tensor | None = None
    offsets: Tensor | None = None  # of each column
    eos: Tensor | None = None
    segments: Tensor | None = None


def check_operands(
    x: Operands[TensorType], *, pad_id: int, n_head_per_ngram: int, max_ngram_size: int
) -> int:
    """Return the number of columns; raises InferenceError where inputs or attributes do not match."""
    columns = (max_ngram_size - 1) * n_head_per_ngram
    check_rank("multipliers", x.multipliers, 1)
    count = x.multipliers.shape[-1] if x.multipliers.shape else None
    if isinstance(count, int) and count < max_ngram_size:
        raise InferenceError(f"`multipliers` must be {max_ngram_size} or more, and are {count}")
    check_shape("vocab_sizes", x.moduli, columns)
    check_shape("head_offsets", x.offsets, columns)
    check_rank("eos_token_id", x.eos, 0)
    kind = x.ids.element
    if kind.number and not np.iinfo(kind.dtype).min <= pad_id <= np.iinfo(kind.dtype).max:
        raise InferenceError(f"`pad_id` {pad_id} is no {kind.name}")
    return columns


class Packed(NamedTuple):
    """Sequences that each follow their history of `before` tokens: indices of tokens, starts and ends."""

    places: Array
    starts: Array
    ends: Array
    firsts: Array  # the index of the first token of each sequence without the histories
    before: int

    @classmethod
    def of(cls, cumulative: Array, before: int) -> Packed:
        """Lay out sequences from the places of their starts and of the last end."""
        numbers = np.arange(1, len(cumulative)) * before
        shifts = np.repeat(numbers, np.diff(cumulative))
        return cls(
            np.arange(len(shifts)) + shifts,
            cumulative[:-1] + numbers,
            cumulative[1:] + numbers,
            cumulative[:-1],
            before,
        )

    def joined(self, history: Array, tokens: Array) -> Array:
        """Return the history (sequences, before) and the tokens of each sequence, one after the other."""
        joined: Array = np.empty(history.size + len(tokens), tokens.dtype)
        joined[self.places] = tokens
        joined[self._before(self.starts)] = history
        return joined

    def last(self, joined: Array) -> Array:
        """Return the last `before` tokens of each sequence: the history of its continuation."""
        return joined[self._before(self.ends)]

    def captured(self, joined: Array, counts: Array, capacity: int, missing: int) -> Array:
        """Return the histories after each of the first tokens, [sequences, capacity, before]."""
        steps = np.arange(1, capacity + 1)
        ends = self.starts[:, None] + steps
        found = steps <= np.minimum(counts, self.ends - self.starts)[:, None]
        states = joined[self._before(np.where(found, ends, self.ends[:, None]))]
        return np.where(found[..., None], states, joined.dtype.type(missing))

    def _before(self, places: Array) -> Array:
        """Return the indices of the `before` elements before each place."""
        return places[..., None] + np.arange(-self.before, 0)


class Hashed(NamedTuple):
    """Hashes [tokens, columns], and tokens and segments joined with their history."""

    hashes: Array
    tokens: Array
    segments: Array | None


def hashed(
    x: Operands[Array], packed: Packed, past_segments: Array | None = None, *, pad_id: int,
    max_ngram_size: int, reset_on_eos: int, **_: Any,
) -> Hashed:  # fmt: skip
    """Return the hashes of the n-grams of packed sequences; raises EvaluationError for moduli below 1."""
    if np.any(x.moduli <= 0):
        raise EvaluationError("`vocab_sizes` must be above 0")
    missing = x.ids.dtype.type(pad_id) if x.eos is None else x.eos
    history = (len(packed.starts), max_ngram_size - 1)
    tokens = packed.joined(np.full(history, missing) if x.past is None else x.past, x.ids)
    segments = None
    if x.segments is not None:
        if past_segments is None:
            past_segments = np.broadcast_to(x.segments[packed.firsts][:, None], history)
        segments = packed.joined(past_segments, x.segments)
    known = _known(packed, tokens, x.eos if reset_on_eos else None, segments)
    return Hashed(_hashes(x, packed, tokens, known, missing), tokens, segments)


def _known(packed: Packed, tokens: Array, eos: Array | None, segments: Array | None) -> list[Array]:
    """Return for each distance which tokens count: those after the last `eos`, and of the same segment."""
    known: Array = np.ones(len(packed.places), bool)
    found: list[Array] = []
    for distance in range(1, packed.before + 1):
        places = packed.places - distance
        if eos is not None:
            known = np.logical_and(known, tokens[places] != eos)
        if segments is not None:
            known = np.logical_and(known, segments[places] == segments[places + 1])
        found.append(known)
    return found


def _hashes(
    x: Operands[Array], packed: Packed, tokens: Array, known: Sequence[Array], missing: Array
) -> Array:
    y: Array = np.empty((len(packed.places), len(x.moduli)), tokens.dtype)
    spend_operations(8 * len(x.moduli) + 8 * packed.before)
    heads = len(x.moduli) // packed.before
    mixed = tokens[packed.places] * x.multipliers[0]
    for distance, counts in enumerate(known, 1):
        before = np.where(counts, tokens[packed.places - distance], missing)
        mixed ^= before * x.multipliers[distance]
        own = slice((distance - 1) * heads, distance * heads)
        y[:, own] = mixed[:, None] % x.moduli[own]
    if x.offsets is not None:
        y += x.offsets
    return y
