"""The text of a generation, piece by piece: whole characters, and nothing of a stop string."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # what tokenizers write for the bytes of an unfinished character


class Decoding(Protocol):
    """A tokenizer, as far as text is made of tokens."""

    def decode(self, ids: Sequence[int], /) -> str:
        """Return the text of tokens."""
        ...


class TextPieces:
    """Turns tokens into pieces of text as they come.

    A piece never ends within a character. Text that a stop string may begin with is kept back until it is
    decided. `is_stopped` says whether a stop string has come; nothing is returned after it.

    >>> class Letters:
    ...     def decode(self, ids):
    ...         return ''.join(map(chr, ids))
    >>> pieces = TextPieces(Letters(), stop=['END'])
    >>> [pieces.push(ord(letter)) for letter in 'aEbEND!'], pieces.rest()
    (['a', '', 'Eb', '', '', '', ''], '')
    >>> pieces.is_stopped
    True
    """

    def __init__(self, tokenizer: Decoding, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop = tokenizer, tuple(stop)
        self._ids: list[int] = []
        # the text of ids[_start:_read] is known; a token's text depends on those before
        self._start = self._read = 0
        self._pending = ""
        self.is_stopped = False

    def push(self, token: int) -> str:
        """Return the text that this token completes, often that of the token alone."""
        self._ids.append(token)
        known = self._tokenizer.decode(self._ids[self._start : self._read])
        text = self._tokenizer.decode(self._ids[self._start :])
        if text.endswith(_INCOMPLETE):
            return ""
        self._start, self._read = self._read, len(self._ids)
        return self._released(text[len(known) :])

    def rest(self) -> str:
        """Return what was kept back; the generation has ended."""
        known = self._tokenizer.decode(self._ids[self._start : self._read])
        text = self._pending + self._tokenizer.decode(self._ids[self._start :])[len(known) :]
        self._start = self._read = len(self._ids)
        self._pending = ""
        if self.is_stopped:
            return ""
        found = _first_stop(text, self._stop)
        self.is_stopped = found is not None
        return text[:found]

    def _released(self, text: str) -> str:
        if self.is_stopped:
            return ""
        text = self._pending + text
        found = _first_stop(text, self._stop)
        if found is not None:
            self.is_stopped, self._pending = True, ""
            return text[:found]
        kept = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._pending = text[len(text) - kept :]
        return text[: len(text) - kept]


def _first_stop(text: str, stop: Sequence[str]) -> int | None:
    return min((at for at in map(text.find, stop) if at >= 0), default=None)


def _overlap(text: str, stop: str) -> int:
    """Return how many characters at the end of the text a stop string may begin with."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((n for n in lengths if text.endswith(stop[:n])), 0)
