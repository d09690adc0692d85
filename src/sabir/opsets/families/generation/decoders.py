"""A decoder as GPT-2's: a subgraph that continues sequences with the keys and values of earlier tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError
from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.opsets.typing import Array, Subgraph

_TOKEN_INPUTS = 3  # tokens, positions, mask; the past of the layers follows
_PAST_RANK = 4  # [batch, heads, past, size]
_JOINED = (2,)  # keys and values are one tensor, in front
_LOGITS_RANK = 3


class Decoder:
    """Sequences that a subgraph continues token by token.

    `ids` and `mask` are [rows, sequence]; padding has no position. The positions count the tokens that are no
    padding, whether or not the mask lets them count.
    """

    def __init__(
        self,
        graph: Subgraph[Array],
        first: Subgraph[Array] | None,
        ids: Array,
        mask: Array | None,
        pad: int,
    ) -> None:
        real = (ids != pad).astype(np.int32)
        self._graph, self._first = graph, first or graph
        self._ids = ids
        self._mask = real if mask is None else mask
        self._positions = np.where(real == 0, 0, np.cumsum(real, axis=1, dtype=np.int32) - 1).astype(np.int32)
        self._next = real.sum(axis=1, dtype=np.int32)[:, None]
        self._past: tuple[Array, ...] = ()

    def start(self) -> Array:
        """Return the logits of the tokens after the prompts, [rows, vocabulary]."""
        past = [nothing(kind, len(self._ids), _JOINED) for kind in self._first.inputs[_TOKEN_INPUTS:]]
        return self._run(self._first, self._ids, self._positions, past)

    def step(self, tokens: Array) -> Array:
        """Append a token to each sequence, and return the logits of the tokens after it."""
        ones = np.ones((len(tokens), 1), np.int32)
        self._mask = np.concatenate([self._mask, ones], axis=1)
        positions = self._next
        self._next = positions + ones
        return self._run(self._graph, tokens[:, None], positions, self._past)

    def reorder(self, rows: Array) -> None:
        """Replace each sequence by the one with a number; the prompts of these must be the same."""
        self._past = tuple(np.take(past, rows, axis=1) for past in self._past)

    def _run(
        self, graph: Subgraph[Array], ids: Array, positions: Array, past: list[Array] | tuple[Array, ...]
    ) -> Array:
        results = graph(ids.astype(np.int32), positions, self._mask.astype(np.int32), *past)
        if len(results) != len(past) + 1 or results[0].ndim != _LOGITS_RANK:
            raise EvaluationError(
                f"a decoder must return logits [batch, sequence, vocabulary] and {len(past)} tensors of keys "
                f"and values, and it returns {len(results)} tensors"
            )
        self._past = results[1:]
        return results[0][:, -1].astype(np.float32)


def nothing(kind: object, rows: int, lead: tuple[int, ...]) -> Array:
    """Return keys and values of no tokens, [*lead, rows, heads, 0, size], of a declared type."""
    shape = kind.shape if isinstance(kind, TensorType) else None
    if not isinstance(kind, TensorType) or shape is None or len(shape) != len(lead) + _PAST_RANK:
        axes = [*map(str, lead), "batch", "heads", "past", "size"]
        raise EvaluationError(f"a decoder must declare its past as [{', '.join(axes)}]")
    _, heads, _, size = shape[len(lead) :]
    if not isinstance(heads, int) or not isinstance(size, int):
        raise EvaluationError("a decoder must declare the number and the size of the heads of its past")
    return np.zeros((*lead, rows, heads, 0, size), kind.element.dtype)
