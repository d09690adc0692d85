"""From the logits of one position to a token: bounds on what may come, then the most probable or a draw."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sabir.generation._settings import Settings

    Scores: TypeAlias = npt.NDArray[np.float32]  # one for each token of the vocabulary

_NEVER = np.float32(-np.inf)


def constrained(scores: Scores, settings: Settings, history: Sequence[int], new: int) -> Scores:
    """Return the scores with all constraints that do not depend on sampling.

    `history` is the prompt with the tokens generated so far, of which `new` are new.
    """
    if settings.forced_first is not None and new == 0:
        return _only(settings.forced_first, scores)
    if settings.forced_last is not None and new + 1 == settings.max_new_tokens:
        return _only(settings.forced_last, scores)
    scores = np.array(scores, np.float32)
    if settings.repetition_penalty != 1:
        seen = np.unique(np.asarray(history, np.int64))
        penalty = np.float32(settings.repetition_penalty)
        scores[seen] = np.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    banned = [*settings.suppressed, *(settings.suppressed_first if new == 0 else ())]
    banned += _repeating(history, settings.no_repeat_ngram_size)
    if new < settings.min_new_tokens:
        banned += settings.stop_ids
    scores[[token for token in banned if token < scores.size]] = _NEVER
    return scores


def _only(token: int, scores: Scores) -> Scores:
    result = np.full_like(scores, _NEVER)
    result[token] = 0
    return result


def _repeating(history: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would complete a run of `size` tokens that is in the history already."""
    if size == 0 or len(history) + 1 < size:
        return []
    start = tuple(history[len(history) - size + 1 :])
    return [
        history[i + size - 1]
        for i in range(len(history) - size + 1)
        if tuple(history[i : i + size - 1]) == start
    ]


def probabilities(scores: Scores, settings: Settings) -> npt.NDArray[np.float64]:
    """Return the probability of each token after temperature, `top_k`, `top_p`, `min_p`, in this order."""
    scaled = scores.astype(np.float64) / settings.temperature
    if 0 < settings.top_k < scaled.size:
        least = np.partition(scaled, -settings.top_k)[-settings.top_k]
        scaled[scaled < least] = -np.inf
    weights = _softmax(scaled)
    if settings.top_p < 1:
        order = np.argsort(-weights, kind="stable")
        before = np.cumsum(weights[order]) - weights[order]
        weights[order[before >= settings.top_p]] = 0  # the first one always stays
    if settings.min_p > 0:
        weights[weights < settings.min_p * weights.max()] = 0
    return weights / weights.sum()


def _softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def log_softmax(logits: Scores) -> Scores:
    """Return the logarithms of the probabilities along the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class Chooser:
    """Chooses the next token of one row; a seed and the number of the row determine all draws.

    So a row of a batch gets the same tokens whatever the other rows are.
    """

    def __init__(self, settings: Settings, row: int) -> None:
        self._settings = settings
        self._random = np.random.default_rng(None if settings.seed is None else [settings.seed, row])

    def choose(self, logits: Scores, history: Sequence[int], new: int) -> int:
        """Return a token for `logits`; see `constrained` for `history` and `new`."""
        scores = constrained(logits, self._settings, history, new)
        if not self._settings.sample:
            return int(scores.argmax())
        ends = np.cumsum(probabilities(scores, self._settings))
        total = float(ends[-1])
        drawn = min(self._random.random() * total, math.nextafter(total, 0))
        return int(np.searchsorted(ends, drawn, side="right"))
