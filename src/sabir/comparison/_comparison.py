"""The result of a comparison: the changes, and the increment of the version that they require."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import counted
from sabir.comparison._policy import BUMPS, POLICY
from sabir.comparison._versions import is_enough, least_version, version_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.comparison._changes import Change
    from sabir.comparison._policy import Bump

_MOST_SHOWN = 5  # changes of one kind


class Declared(NamedTuple):
    """The `model_version` of the two models.

    >>> print(Declared(7, 0x0001_0002_0000_0159))
    7, then 1.2.345
    """

    old: int
    new: int

    def __str__(self) -> str:
        return f"{version_text(self.old)}, then {version_text(self.new)}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two models differ.

    `changes` are ordered by what they require. `declared` are the versions of the models.
    The text is a report that lists at most five changes of a kind; `report` returns it with all of them.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> comparison = compare(model, model.clone())
    >>> comparison.changes, comparison.required, comparison.is_enough
    ((), None, True)
    """

    changes: tuple[Change, ...]
    declared: Declared

    @property
    def required(self) -> Bump | None:
        """The largest increment that a change requires: "major", "minor", "patch", or None."""
        bumps = {change.bump for change in self.changes}
        return next((bump for bump in BUMPS if bump in bumps), None)

    @property
    def reasons(self) -> tuple[Change, ...]:
        """The changes that require this increment."""
        required = self.required
        return tuple(c for c in self.changes if required is not None and c.bump == required)

    @property
    def is_enough(self) -> bool:
        """Whether the declared version of the new model has the required increment."""
        return is_enough(*self.declared, self.required)

    def report(self, *, most: int | None = None) -> Iterator[str]:
        """Yield the lines of a report, with at most this many changes of a kind."""
        counts, listed = Counter(c.kind for c in self.changes), Counter[str]()
        for change in self.changes:
            listed[change.kind] += 1
            if most is None or listed[change.kind] <= most:
                yield f"{change.bump or 'none':5}  {change}"
            elif listed[change.kind] == counts[change.kind]:
                more = counted(counts[change.kind] - most, "more change")
                yield f"{change.bump or 'none':5}  {more} of this kind: {POLICY[change.kind].change}"
        yield self._conclusion()

    def _conclusion(self) -> str:
        required = self.required
        if required is None:
            what = "the models differ in nothing that" if self.changes else "no change; nothing"
            return f"{what} requires another version (declared: {self.declared})"
        if self.is_enough:
            return f"the version must increase {required.upper()}, and does: {self.declared}"
        least = least_version(self.declared.old, required)
        advice = "no version is large enough" if least is None else f"declare {version_text(least)} or later"
        return f"the version must increase {required.upper()}, and does not: {self.declared}; {advice}"

    def __str__(self) -> str:
        return "\n".join(self.report(most=_MOST_SHOWN))

    def _repr_html_(self) -> str:
        from sabir.drawing import fragment, note, table  # ruff: ignore[import-outside-top-level]  for notebooks alone

        rows = ((c.bump or "none", c.kind, str(c.location), c.message) for c in self.changes)
        return fragment(note(self._conclusion()), table(["requires", "change", "location", "what"], rows))
