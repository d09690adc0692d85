"""The loop of a generation: prompts are computed, then one token of each row at a time."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.generation._beams import BeamSearch
from sabir.generation._prompts import Computed, compute_prompts
from sabir.generation._results import Generation
from sabir.generation._sampling import Chooser
from sabir.generation._text_pieces import TextPieces

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from sabir.generation._cache import Cache, Padding
    from sabir.generation._decoder import Decoder
    from sabir.generation._results import FinishReason
    from sabir.generation._sampling import Scores
    from sabir.generation._settings import Settings
    from sabir.generation._text_pieces import Decoding
    from sabir.ir import Array


class Row:
    """One prompt of a run with its new tokens."""

    def __init__(
        self, number: int, prompt: Sequence[int], settings: Settings, room: int | None, text: Decoding | None
    ) -> None:
        """Take the number of the row, its settings, and how many tokens can follow the prompt."""
        self._full: FinishReason = "length"
        if room is not None and room < settings.max_new_tokens:
            self._full, settings = "context", replace(settings, max_new_tokens=room)
        self.number, self.prompt, self.settings, self._text = number, list(prompt), settings, text
        self.history = list(prompt)
        self.prompt_tokens = len(prompt)  # of what the caller passed: an encoder may read it
        self.ids: list[int] = []
        self.reused, self.first = 0, 0.0
        self.score: float | None = None
        self.reason: FinishReason | None = self._full if settings.max_new_tokens == 0 else None
        self._chooser = Chooser(settings, number)
        self._pieces = self._new_pieces()
        self._before_stop = ""  # the text, as far as pieces are made for stop strings

    def choose(self, logits: Scores) -> int:
        """Choose the next token by its logits, and decide whether it is the last."""
        token = self._chooser.choose(logits, self.history, len(self.ids))
        self.add(token)
        return token

    def add(self, token: int) -> None:
        """Add a token, and decide whether it is the last."""
        self.history.append(token)
        self.ids.append(token)
        if self._pieces is not None:
            self._before_stop += self._pieces.push(token)
        if token in self.settings.stop_ids or (self._pieces is not None and self._pieces.is_stopped):
            self.reason = "stop"
        elif len(self.ids) >= self.settings.max_new_tokens:
            self.reason = self._full

    def ends(self, ids: Sequence[int]) -> bool:
        """Return whether the last of these new tokens ends the row."""
        if ids[-1] in self.settings.stop_ids:
            return True
        pieces = self._new_pieces()
        if pieces is None:
            return False
        for token in ids:
            pieces.push(token)
        return pieces.is_stopped

    def result(self, seconds: float) -> Generation:
        """Return what was generated; a row that has not ended was interrupted."""
        return Generation(
            self._result_text(),
            list(self.ids),
            self.reason or "interrupted",
            self.prompt_tokens,
            self.reused,
            seconds,
            self.first,
            self.score,
        )

    def _new_pieces(self) -> TextPieces | None:
        strings = self.settings.stop_strings
        return TextPieces(self._text, strings) if self._text is not None and strings else None

    def _result_text(self) -> str | None:
        if self._text is None:
            return None
        if self._pieces is not None and self._pieces.is_stopped:
            return self._before_stop
        ends = bool(self.ids) and self.ids[-1] in self.settings.stop_ids
        return self._text.decode(self.ids[:-1] if ends else self.ids)


class Run:
    """The generation for the prompts of one call.

    `kept` has the caches of earlier calls, one row each: positions that a prompt begins with are not computed
    again. After the run it has the caches of this one.
    """

    def __init__(
        self,
        decoder: Decoder,
        rows: Sequence[Row],
        kept: list[Cache],
        padding: Padding | None,
        context: Mapping[str, Array] | None,
    ) -> None:
        """Take the rows; `padding` is None where the rows of a batch must have the same length."""
        self.rows = list(rows)
        self._decoder, self._kept, self._context = decoder, kept, context
        self._padding: Padding | None = padding
        self._started = time.perf_counter()

    def tokens(self) -> Generator[tuple[int, int]]:
        """Generate: yields the number of a row and its next token until all rows have ended."""
        caches: list[Cache] = []
        try:
            for group in self._groups():
                yield from self._advance(group, caches)
        finally:
            self._keep(caches)

    def search(self) -> Generator[tuple[int, int]]:
        """Generate by beam search: yields the tokens of each row when its search has ended."""
        caches: list[Cache] = []
        try:
            for row in self.rows:
                if row.reason is None:
                    self._search(row, caches)
                    yield from ((row.number, token) for token in row.ids)
        finally:
            self._keep(caches)

    def logits(self) -> list[Scores]:
        """Return the logits after the last token of each prompt."""
        caches: list[Cache] = []
        found: dict[int, Scores] = {}
        for group in self._groups():
            cache, logits, _ = self._computed(group)
            caches += [cache.row(i) for i in range(cache.rows)]
            found |= {row.number: scores for row, scores in zip(group, logits, strict=True)}
        self._keep(caches)
        return [found[row.number] for row in self.rows]

    def results(self) -> list[Generation]:
        """Return what was generated for each row until now."""
        seconds = time.perf_counter() - self._started
        return [row.result(seconds) for row in self.rows]

    def _keep(self, caches: list[Cache]) -> None:
        if caches and self._context is None:
            self._kept[:] = caches

    def _groups(self) -> list[list[Row]]:
        """Return the rows that run as one batch."""
        rows = [row for row in self.rows if row.reason is None]
        if self._padding is not None or self._context is not None:
            return [rows] if rows else []
        by_length: dict[int, list[Row]] = {}
        for row in rows:
            by_length.setdefault(len(row.prompt), []).append(row)
        return list(by_length.values())

    def _computed(self, rows: Sequence[Row], context: Mapping[str, Array] | None = None) -> Computed:
        context = self._context if context is None else context
        prompts = [row.prompt for row in rows]
        computed = compute_prompts(self._decoder, prompts, self._kept, self._padding, context)
        for row, reused in zip(rows, computed.reused, strict=True):
            row.reused = reused
        return computed

    def _advance(self, rows: list[Row], caches: list[Cache]) -> Iterator[tuple[int, int]]:
        """Generate for the rows of a batch, and add their caches to `caches` when they end."""
        cache, logits, _ = self._computed(rows)
        try:
            while True:
                for row, scores in zip(rows, logits, strict=True):
                    token = row.choose(scores)
                    row.first = row.first or time.perf_counter() - self._started
                    yield row.number, token
                going = [i for i, row in enumerate(rows) if row.reason is None]
                if not going:
                    return
                if len(going) < len(rows):
                    caches += [cache.row(i) for i, row in enumerate(rows) if row.reason is not None]
                    rows = [rows[i] for i in going]
                    cache.select(going)
                logits = self._decoder.step(cache, [[row.ids[-1]] for row in rows])
        finally:
            caches += [cache.row(i) for i in range(cache.rows)]

    def _search(self, row: Row, caches: list[Cache]) -> None:
        """Search for one row, and add the cache of its prompt and of a beam to `caches`."""
        context = self._context
        if context is not None:
            context = {name: array[[row.number]] for name, array in context.items()}
        cache, logits, _ = self._computed([row], context)
        search = BeamSearch(row.settings, row.prompt, row.ends)
        beams = [0] * row.settings.num_beams
        cache.select(beams)
        logits = logits[beams]
        try:
            while True:
                tokens = search.advance(logits, cache)
                row.first = row.first or time.perf_counter() - self._started
                if search.is_done:
                    break
                logits = self._decoder.step(cache, [[token] for token in tokens])
        finally:
            for token in search.best.ids:
                row.add(token)
            row.score = float(search.best.score) if search.is_done else None
            caches.append(cache.row(0))
