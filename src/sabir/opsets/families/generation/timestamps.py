"""The rules of Whisper for tokens that are times."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

_LOWEST = np.finfo(np.float32).min
_LATEST = 50  # the first time is at most that many tokens after the least one


class Timestamps(NamedTuple):
    """Tokens of Whisper; those from `first` on are times, in increasing order."""

    end: int
    start: int
    translate: int
    transcribe: int
    start_of_lm: int
    none: int
    first: int

    def applied(self, scores: Array, tokens: Array) -> Array:
        """Return scores [rows, vocabulary] without the tokens that cannot follow `tokens`, [rows, length]."""
        y = scores.copy()
        for row, sequence in zip(y, tokens, strict=True):
            self._forbid(row, sequence)
        return y

    def _forbid(self, row: Array, sequence: Array) -> None:
        times = np.flatnonzero(sequence >= self.first)
        begin = int(times[0]) + 1 if len(times) else len(sequence)
        started = len(sequence) > begin
        for token in (self.none, self.start_of_lm):
            _never(row, token, token + 1)
        for token in (self.start, self.translate, self.transcribe) if started else ():
            _never(row, token, token + 1)
        last = sequence[-1] >= self.first
        pair = not started or sequence[-2] >= self.first
        if last and pair:
            _never(row, self.first, len(row))
        elif last:
            _never(row, 0, self.end)
        if len(times):
            _never(row, self.first, int(sequence[times[-1]]) + (0 if last and not pair else 1))
        if not started:
            _never(row, self.first + _LATEST + 1, len(row))
        if _sum(row[self.first :]) > row[: self.first].max(initial=_LOWEST):
            _never(row, 0, self.first)


def _sum(logarithms: Array) -> np.float32:
    """Return the logarithm of the sum of numbers that have these logarithms."""
    if not len(logarithms):
        return _LOWEST
    top = logarithms.max()
    return top + np.log(np.exp(logarithms - top).sum())


def _never(row: Array, start: int, stop: int) -> None:
    row[max(start, 0) : max(stop, 0)] = _LOWEST
