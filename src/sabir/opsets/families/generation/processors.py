"""Changes of the scores of tokens before one is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError
from sabir.opsets.families.shapes.ranks import as_number
from sabir.opsets.families.text.ngrams import repeated

if TYPE_CHECKING:
    from sabir.opsets.families.generation.ports import Prompts
    from sabir.opsets.families.generation.timestamps import Timestamps
    from sabir.opsets.typing import Array

_LOWEST = np.finfo(np.float32).min  # of tokens that are not chosen unless there is no other


@dataclass(frozen=True, slots=True)
class Processors:
    """What changes scores [rows, vocabulary]; the masks of `allowed_first` are [rows, vocabulary]."""

    end: int
    shortest: int = 0
    penalty: float = 1.0
    ngram: int = 0
    allowed: Array | None = None
    allowed_first: Array | None = None
    temperature: float = 1.0
    presence: Array | None = None
    timestamps: Timestamps | None = None

    def applied(self, scores: Array, tokens: Array, *, first: bool) -> Array:
        """Return changed scores of the tokens after sequences `tokens`, [rows, length]."""
        y = scores.copy()
        if self.penalty != 1:
            _check_tokens(tokens, y.shape[1])
            found, factor = np.take_along_axis(y, tokens, axis=1), np.float32(self.penalty)
            np.put_along_axis(y, tokens, np.where(found < 0, found * factor, found / factor), axis=1)
        if self.ngram:
            rows, ids = repeated(tokens, self.ngram)
            _check_tokens(ids, y.shape[1])
            y[rows, ids] = _LOWEST
        for mask in (self.allowed, self.allowed_first if first else None):
            if mask is not None:
                y[np.broadcast_to(mask == 0, y.shape)] = _LOWEST
        if tokens.shape[1] < self.shortest and 0 <= self.end < y.shape[1]:
            y[:, self.end] = _LOWEST
        if self.temperature > 0:
            y /= np.float32(self.temperature)
        if self.presence is not None:
            y -= self.presence
        return y if self.timestamps is None else self.timestamps.applied(y, tokens)


def of_prompts(prompts: Prompts[Array], *, end: int, ngram: int, copies: int = 1) -> Processors:
    """Return the processors that the inputs of a search name; each prompt has `copies`."""
    penalty, least, first = prompts.penalty, prompts.shortest, prompts.prefix_mask
    factor = 1.0 if penalty is None else float(as_number("repetition_penalty", penalty))
    if not factor > 0:
        raise ValueError(f"`repetition_penalty` must be above 0, and is {factor}")
    return Processors(
        end,
        0 if least is None else int(as_number("min_length", least)),
        factor,
        ngram,
        prompts.vocab_mask,
        None if first is None else np.repeat(first, copies, axis=0),
    )


def in_vocabulary(logits: Array, size: int, *masks: Array | None) -> Array:
    """Return the logits that count; raises EvaluationError for masks of other sizes."""
    y = logits[:, :size] if size > 0 else logits
    for mask in masks:
        if mask is not None and mask.shape[-1] != y.shape[1]:
            raise EvaluationError(f"a mask is for {mask.shape[-1]} tokens, and there are {y.shape[1]}")
    return y


def _check_tokens(ids: Array, count: int) -> None:
    outside = (ids < 0) | (ids >= count)
    if outside.any():
        raise EvaluationError(f"the token {ids[outside][0]} is outside [0, {count - 1}]")
