"""The compiled plans in memory, by shape pattern: a bounded number, least recently used patterns go first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.compilation.protocol import Runnable

MOST_GUARDED = 8  # plans of one pattern, with different guards; the interpreter runs feeds that satisfy none
MOST_PATTERNS = 64  # with a plan in memory: a model with six symbolic sizes has 3**6 patterns
_MOST_ASKED = 1024  # patterns without a plan that are remembered
_MOST_ARENAS = 8  # patterns whose plans keep their arenas for later runs


class _Shelf:
    """The plans of one pattern, and when one of them was last used."""

    __slots__ = ("programs", "used")

    def __init__(self) -> None:
        self.programs: tuple[Runnable, ...] = ()
        self.used = 0


class KeptPlans:
    """The plans of a model or a subgraph; several threads may read, one at a time may add a plan.

    When the maximum number of patterns have plans, the interpreter runs the first request of a new pattern:
    shapes that occur once are not worth a plan, nor the removal of another. Patterns that alternate would
    remove each other: the caller compiles a plan only after interpreted runs have taken as long.
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
        """Return a plan for the pattern whose guards the sizes satisfy; None without one."""
        shelf = self._shelves.get(pattern)
        if shelf is None:
            return None
        self._clock = shelf.used = self._clock + 1
        return next((program for program in shelf.programs if program.fits(sizes)), None)

    def removes_one_for(self, pattern: ShapePattern) -> bool:
        """Return whether a plan for the pattern would remove the plans of another one."""
        return pattern not in self._shelves and len(self._shelves) >= MOST_PATTERNS

    def admits(self, pattern: ShapePattern, *, at_once: bool = False) -> bool:
        """Return whether to compile a plan for the pattern now; with `at_once` also on its first request."""
        if pattern in self._refused:
            return False
        shelf = self._shelves.get(pattern)
        if shelf is not None:
            return len(shelf.programs) < MOST_GUARDED
        if at_once or len(self._shelves) < MOST_PATTERNS or pattern in self._asked:
            return True
        _remember(self._asked, pattern, None)
        return False

    def add(self, pattern: ShapePattern, program: Runnable, instead_of: Runnable | None = None) -> None:
        """Add a plan, `instead_of` another one of the pattern; removes the least recently used pattern."""
        shelf = self._shelves.setdefault(pattern, _Shelf())
        shelf.programs = (*(p for p in shelf.programs if p is not instead_of), program)
        self._clock = shelf.used = self._clock + 1
        self._asked.pop(pattern, None)
        by_age = sorted(self._shelves, key=lambda key: self._shelves[key].used, reverse=True)
        for key in by_age[MOST_PATTERNS:]:
            del self._shelves[key]
        for key in by_age[_MOST_ARENAS:MOST_PATTERNS]:
            for old in self._shelves[key].programs:
                old.release()

    def refuse(self, pattern: ShapePattern, reason: str) -> None:
        """Record that no plan can be compiled for a pattern, and why."""
        _remember(self._refused, pattern, reason)

    def refusal(self, pattern: ShapePattern | None = None) -> str | None:
        """Return why no plan could be compiled for a pattern, by default for the last one refused."""
        return next(reversed(self._refused.values()), None) if pattern is None else self._refused.get(pattern)


def _remember(notes: dict[ShapePattern, Any], pattern: ShapePattern, note: object) -> None:
    """Add a note about a pattern; removes the oldest note when there are too many."""
    if len(notes) >= _MOST_ASKED:
        notes.pop(next(iter(notes)))
    notes[pattern] = note
