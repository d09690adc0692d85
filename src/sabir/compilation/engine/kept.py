"""Compiled plans in memory, by the patterns of shapes that they are made for: a bounded number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.compilation.protocol import Runnable

MOST_GUARDED = 8  # plans of one pattern, each with other guards; the interpreter runs what fits none
MOST_PATTERNS = 64  # with a plan in memory: a model with six open sizes has 729 of 0, 1 and larger
_MOST_ASKED = 1024  # patterns that are remembered without a plan
_MOST_ARENAS = 8  # patterns whose plans keep memory for their next runs


class _Shelf:
    """The plans of one pattern, and when the last of them was used."""

    __slots__ = ("programs", "used")

    def __init__(self) -> None:
        self.programs: tuple[Runnable, ...] = ()
        self.used = 0


class KeptPlans:
    """The plans of a model or a subgraph; several threads may look for one, and one at a time adds one.

    Once as many patterns have plans as are kept, the first request of a new pattern is left to the
    interpreter: shapes that do not come again are not worth a plan, nor the removal of another. Patterns that
    come in turn would remove each other: the user makes a plan for one when runs without it took as long.
    """

    __slots__ = ("_asked", "_clock", "_refused", "_shelves")

    def __init__(self) -> None:
        self._shelves: dict[ShapePattern, _Shelf] = {}
        self._refused: dict[ShapePattern, str] = {}
        self._asked: dict[ShapePattern, None] = {}
        self._clock = 0

    def __iter__(self) -> Iterator[Runnable]:
        """Yield the plans."""
        return (program for shelf in list(self._shelves.values()) for program in shelf.programs)

    def find(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable | None:
        """Return a plan for the pattern whose guards hold for the sizes."""
        shelf = self._shelves.get(pattern)
        if shelf is None:
            return None
        self._clock = shelf.used = self._clock + 1
        return next((program for program in shelf.programs if program.fits(sizes)), None)

    def removes_one_for(self, pattern: ShapePattern) -> bool:
        """Return whether a plan for the pattern would remove the plans of another one."""
        return pattern not in self._shelves and len(self._shelves) >= MOST_PATTERNS

    def admits(self, pattern: ShapePattern, *, at_once: bool = False) -> bool:
        """Return whether to make a plan for the pattern now; `at_once` also at its first request."""
        if pattern in self._refused:
            return False
        shelf = self._shelves.get(pattern)
        if shelf is not None:
            return len(shelf.programs) < MOST_GUARDED
        if at_once or len(self._shelves) < MOST_PATTERNS or pattern in self._asked:
            return True
        _remember(self._asked, pattern, None)
        return False

    def add(self, pattern: ShapePattern, made: Runnable, instead_of: Runnable | None = None) -> None:
        """Keep a plan, `instead_of` another one of the pattern; the pattern used longest ago may leave."""
        shelf = self._shelves.setdefault(pattern, _Shelf())
        shelf.programs = (*(p for p in shelf.programs if p is not instead_of), made)
        self._clock = shelf.used = self._clock + 1
        self._asked.pop(pattern, None)
        by_age = sorted(self._shelves, key=lambda key: self._shelves[key].used, reverse=True)
        for key in by_age[MOST_PATTERNS:]:
            del self._shelves[key]
        for key in by_age[_MOST_ARENAS:MOST_PATTERNS]:
            for program in self._shelves[key].programs:
                program.release()

    def refuse(self, pattern: ShapePattern, reason: str) -> None:
        """Remember that no plan can be made for a pattern, and why."""
        _remember(self._refused, pattern, reason)

    def refusal(self, pattern: ShapePattern | None = None) -> str | None:
        """Return why no plan could be made for a pattern, or for the last one refused."""
        return next(reversed(self._refused.values()), None) if pattern is None else self._refused.get(pattern)


def _remember(notes: dict[ShapePattern, Any], pattern: ShapePattern, note: object) -> None:
    """Add a note of a pattern; the oldest one leaves when there are many."""
    if len(notes) >= _MOST_ASKED:
        notes.pop(next(iter(notes)))
    notes[pattern] = note
