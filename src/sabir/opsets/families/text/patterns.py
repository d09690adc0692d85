"""Regular expressions in RE2's syntax: compiled with bounded memory, and run in counted time."""

from __future__ import annotations

import functools
from typing import Any

import re2  # pyright: ignore[reportMissingTypeStubs] - it has none

from sabir.base import check_time, spend_work

_MEMORY = 8 << 20  # bytes that RE2 may use for one pattern: its program and the cached states
_CACHED = 16  # patterns
_WORK = 8  # bytes that numpy writes in the time of one RE2 instruction on one byte
_UNCOUNTED = 1 << 22


@functools.lru_cache(_CACHED)
def compiled(pattern: str, *, groups: bool = False, longest: bool = False) -> Any:
    """Return the program of a pattern; raises ValueError for an invalid or too large one.

    `groups` lets matches tell their groups. With `longest` the longest match counts, otherwise the first
    alternative that matches.
    """
    library: Any = re2
    options = library.Options()
    options.log_errors = False  # the exception reports it; standard error belongs to the caller
    options.never_capture = not groups  # the memory for groups grows with the square of their number
    options.longest_match = longest
    options.max_mem = _MEMORY
    try:
        program = library.compile(pattern, options)
    except library.error as error:
        message = error.args[0] if error.args else error
        reason = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        if "too large" in reason:
            reason = f"a pattern of {len(pattern):,} characters takes more than the {_MEMORY >> 20} MiB that"
            raise ValueError(f"{reason} RE2 may use; write it with fewer or smaller repetitions") from error
        raise ValueError(f"the pattern is not RE2's syntax: {reason}") from error
    library.purge()  # its cache would keep 128 programs, each with up to the maximum of memory
    return program


def as_bytes(word: object) -> bytes:
    """Return an element of a tensor of strings in UTF-8."""
    return word if isinstance(word, bytes) else str(word).encode()


class Work:
    """The work of matching programs on texts, counted in large steps."""

    def __init__(self) -> None:
        self._pending = 0

    def count(self, program: Any, length: int) -> None:
        """Count a match on a text of `length` bytes; raises LimitError past the limits."""
        self._pending += _WORK * program.programsize * (length + 1)
        if self._pending > _UNCOUNTED:
            check_time()
            spend_work(self._pending)
            self._pending = 0
