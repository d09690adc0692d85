"""Beam search: the most probable continuations, several at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.generation._sampling import constrained, log_softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.generation._cache import Cache
    from sabir.generation._sampling import Scores
    from sabir.generation._settings import Settings

_NONE = np.float32(-1e9)  # a score that no beam has


class Beam(NamedTuple):
    """New tokens with the sum of the logarithms of their probabilities, or the score if they are finished."""

    score: np.float32
    ids: tuple[int, ...]


class BeamSearch:
    """A search from one prompt; `finished` has the best complete continuations so far, best first.

    Each step takes the best continuations of all beams, one more for each beam than stop ids could end. Those
    that end are finished: their score is divided by their number of tokens to the power `length_penalty`. The
    best of the others are the beams of the next step.
    """

    def __init__(
        self, settings: Settings, prompt: Sequence[int], ends: Callable[[Sequence[int]], bool]
    ) -> None:
        """Take the prompt, and what says whether new tokens end a continuation."""
        self._settings, self._prompt, self._ends = settings, list(prompt), ends
        self.running = [Beam(np.float32(0) if i == 0 else _NONE, ()) for i in range(settings.num_beams)]
        self.finished: list[Beam] = []
        self.is_done = False
        self._can_improve = True

    @property
    def best(self) -> Beam:
        """The best finished beam, or the best running one if none is finished."""
        return self.finished[0] if self.finished else self.running[0]

    @property
    def _is_full(self) -> bool:
        return len(self.finished) == self._settings.num_beams

    def advance(self, logits: Scores, cache: Cache) -> list[int]:
        """Choose the next tokens of all beams by their logits: [beams, vocabulary]; returns one for each.

        The rows of the cache become those of the beams that are continued.
        """
        candidates = self._candidates(logits)
        new = len(self.running[0].ids) + 1
        ending = [new == self._settings.max_new_tokens or self._ends(c.ids) for _, c in candidates]
        self._finish([
            c for (_, c), ends in zip(candidates[: len(self.running)], ending, strict=False) if ends
        ])
        going = [
            (i, c._replace(score=c.score + _NONE) if ends else c)
            for (i, c), ends in zip(candidates, ending, strict=True)
        ]
        going = sorted(going, key=lambda pair: -pair[1].score)[: len(self.running)]
        cache.select([i for i, _ in going])
        self.running = [c for _, c in going]
        self._can_improve = self._can_improve and self._may_improve(new)
        stops_early = self._is_full and self._settings.early_stopping is True
        self.is_done = stops_early or not self._can_improve or all(ending)
        return [beam.ids[-1] for beam in self.running]

    def _finish(self, ended: Sequence[Beam]) -> None:
        """Keep the best of the finished beams and of those that ended now."""
        if self._is_full and self._settings.early_stopping is True:
            return
        scored = [Beam(_normalized(c.score, len(c.ids), self._settings), c.ids) for c in ended]
        best = sorted([*self.finished, *scored], key=lambda beam: -beam.score)
        self.finished = best[: self._settings.num_beams]

    def _may_improve(self, length: int) -> bool:
        """Return whether a running beam may become better than the worst finished one."""
        if not self._is_full:
            return True
        if self._settings.early_stopping == "never" and self._settings.length_penalty > 0:
            length = self._settings.max_new_tokens
        return bool(_normalized(self.running[0].score, length, self._settings) > self.finished[-1].score)

    def _candidates(self, logits: Scores) -> list[tuple[int, Beam]]:
        """Return the best continuations with the numbers of the beams that they continue, best first."""
        scores = log_softmax(logits)
        rows = [
            constrained(s, self._settings, [*self._prompt, *b.ids], len(b.ids)) + b.score
            for s, b in zip(scores, self.running, strict=True)
        ]
        total = np.concatenate(rows)
        count = min(max(2, 1 + len(self._settings.stop_ids)) * self._settings.num_beams, total.size)
        best = np.argpartition(-total, count - 1)[:count]
        best = best[np.lexsort((best, -total[best]))]
        size = scores.shape[1]
        origins: list[int] = (best // size).tolist()
        tokens: list[int] = (best % size).tolist()
        return [
            (origin, Beam(np.float32(total[i]), (*self.running[origin].ids, token)))
            for i, origin, token in zip(best, origins, tokens, strict=True)
        ]


def _normalized(score: np.float32, length: int, settings: Settings) -> np.float32:
    return np.float32(score / np.float32(length**settings.length_penalty))
