"""Layers over a page: a number or a class for each node, which the page shows as colours with a legend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sabir.viewing._texts import DOCUMENT, TEXT, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_LINES = 200
_MOST_NOTES = 8  # lines of one node


@dataclass
class Layer:
    """Values of nodes by the numbers of a page, with sentences about the whole and about nodes.

    `values` has amounts, or indices of `classes` where there are any. A closed box shows the sum of the
    amounts inside it, or the largest. `groups` are nodes that belong together, such as those of one kernel.

    >>> Layer('time', 'Time of a run', unit='s', values={0: 0.5}).as_json()['values']
    {0: 0.5}
    """

    name: str
    title: str
    unit: str = ""
    combine: Literal["sum", "max"] = "sum"
    classes: Sequence[str] = ()
    values: dict[int, float] = field(default_factory=dict[int, float])
    notes: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    lines: list[str] = field(default_factory=list[str])
    groups: list[list[int]] = field(default_factory=list[list[int]])

    def note(self, node: int, line: str) -> None:
        """Add a sentence about a node; a node has few of them."""
        notes = self.notes.setdefault(node, [])
        if len(notes) < _MOST_NOTES:
            notes.append(shortened(line, TEXT))

    def as_json(self) -> dict[str, Any]:
        """Return the layer as a page has it; what is no finite number is left out."""
        values: Mapping[int, float] = {n: v for n, v in self.values.items() if np.isfinite(v)}
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "combine": self.combine,
            "classes": list(self.classes),
            "values": values,
            "notes": self.notes,
            "lines": [shortened(line, DOCUMENT) for line in self.lines[:_MOST_LINES]],
            "groups": self.groups,
        }
