"""Beam search: several sequences for each prompt, of which the most probable ones are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import EvaluationError
from sabir.opsets.families.generation.processors import in_vocabulary
from sabir.opsets.families.shapes.sizes import allotted

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from sabir.opsets.families.generation.decoders import Decoder
    from sabir.opsets.families.generation.encoders import EncoderDecoder
    from sabir.opsets.families.generation.processors import Processors
    from sabir.opsets.typing import Array

_WORSE = np.float32(-1e9)  # of the copies of a prompt, so that the first step continues only one of them


class Settings(NamedTuple):
    """How a search decides."""

    beams: int
    returned: int
    length_penalty: float
    early: bool
    pad: int
    vocabulary: int


class Found(NamedTuple):
    """The results: tokens [batch, returned, length], their scores, and those of all tokens in each step."""

    sequences: Array
    scores: Array
    steps: Array | None


@dataclass(slots=True)
class _Hypotheses:
    """The best complete sequences of a prompt, best first, each with its score."""

    settings: Settings
    kept: list[tuple[np.float32, Array]] = field(default_factory=list["tuple[np.float32, Array]"])
    done: bool = False

    def add(self, tokens: Array, total: np.float32) -> None:
        """Keep a sequence, whose logarithms of probabilities have this sum, if it is among the best."""
        score = self._score(total, len(tokens))
        self.kept = sorted([*self.kept, (score, tokens)], key=lambda pair: -pair[0])[: self.settings.beams]

    def settle(self, best: np.float32, length: int) -> None:
        """Note whether no sequence can be better any more, `best` being the greatest sum of this length."""
        full = len(self.kept) == self.settings.beams
        self.done = full and (self.settings.early or bool(self.kept[-1][0] >= self._score(best, length)))

    def _score(self, total: np.float32, length: int) -> np.float32:
        return total / np.float32(length**self.settings.length_penalty)


def searched(
    decoder: Decoder | EncoderDecoder,
    processors: Processors,
    settings: Settings,
    ids: Array,
    length: int,
    *,
    with_steps: bool,
) -> Found:
    """Search from prompts [batch, sequence]; the decoder has each of them `beams` times."""
    beams, batch = settings.beams, len(ids)
    tokens = np.repeat(ids, beams, axis=0)
    totals = np.tile(np.array([0, *[_WORSE] * (beams - 1)], np.float32), batch)
    hypotheses = [_Hypotheses(settings) for _ in range(batch)]
    steps: list[Array] = []
    logits = decoder.start()
    while True:
        logits = in_vocabulary(logits, settings.vocabulary, processors.allowed, processors.allowed_first)
        first = tokens.shape[1] == ids.shape[1]
        with np.errstate(over="ignore"):
            scores = processors.applied(_log_softmax(logits), tokens, first=first) + totals[:, None]
        if with_steps:
            steps.append(scores.reshape(batch, beams, -1))
        chosen = [
            _continued(h, scores[n * beams : (n + 1) * beams], tokens[n * beams :], processors.end)
            for n, h in enumerate(hypotheses)
        ]
        rows = _joined([rows + n * beams for n, (rows, _, _) in enumerate(chosen)], np.int64)
        new = _joined([ids for _, ids, _ in chosen], ids.dtype)
        totals = _joined([sums for _, _, sums in chosen], np.float32)
        tokens = np.concatenate([tokens[rows], new[:, None]], axis=1)
        if tokens.shape[1] == length or all(h.done for h in hypotheses):
            break
        decoder.reorder(rows)
        logits = decoder.step(new)
    for n, kept in enumerate(hypotheses):
        for beam in range(n * beams, (n + 1) * beams) if not kept.done else ():
            kept.add(tokens[beam], totals[beam])
    return _found(hypotheses, settings, ids, length, steps if with_steps else None)


def _continued(kept: _Hypotheses, scores: Array, tokens: Array, end: int) -> tuple[Array, Array, Array]:
    """Return the beams that go on, their new tokens and their sums; sequences that end are kept."""
    settings = kept.settings
    beams = settings.beams
    if kept.done:
        return np.zeros(beams, np.int64), np.full(beams, settings.pad), np.zeros(beams, np.float32)
    order = np.argsort(-scores.ravel(), kind="stable")[: 2 * beams]
    sums = scores.ravel()[order]
    rows, ids = np.divmod(order, scores.shape[1])
    for rank in np.flatnonzero(ids[:beams] == end):
        kept.add(tokens[rows[rank]], sums[rank])
    on = np.flatnonzero(ids != end)[:beams]
    if len(on) < beams:
        raise EvaluationError(f"{beams} beams need a vocabulary of {beams + 1} tokens or more")
    kept.settle(sums[0], tokens.shape[1])
    return rows[on], ids[on], sums[on]


def _joined(parts: list[Array], element: DTypeLike) -> Array:
    """Return the parts of the prompts as one array, which is empty where there is no prompt."""
    return np.concatenate([np.zeros(0, element), *parts]).astype(element, copy=False)


def _log_softmax(x: Array) -> Array:
    y = x - x.max(axis=1, keepdims=True)
    return y - np.log(np.exp(y).sum(axis=1, keepdims=True))


def _found(
    hypotheses: list[_Hypotheses], settings: Settings, ids: Array, length: int, steps: list[Array] | None
) -> Found:
    shape = (len(hypotheses), settings.returned, length)
    sequences = np.full(allotted(shape, ids.dtype, ids.size), settings.pad, ids.dtype)
    scores = np.zeros(shape[:2], np.float32)
    for n, found in enumerate(hypotheses):
        for place, (score, tokens) in enumerate(found.kept[: settings.returned]):
            sequences[n, place, : len(tokens)] = tokens
            scores[n, place] = score
    if steps is None:
        return Found(sequences, scores, None)
    count = length - ids.shape[1]
    every = np.zeros(allotted((count, *steps[0].shape), steps[0].dtype, steps[0].size), np.float32)
    every[: len(steps)] = steps
    return Found(sequences, scores, every)
