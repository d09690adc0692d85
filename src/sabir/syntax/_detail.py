"""How much of a model a text contains: everything, or what a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Graph

_LONGEST = 200  # characters of a text in a listing
_BEGINNING = 60  # characters of a text that is cut


class CutText(NamedTuple):
    """The beginning of a text that is too long for a listing, and the number of its characters."""

    beginning: str
    characters: int


class Detail(NamedTuple):
    """What a text leaves out: tensors and lists of more `elements`, texts of more `characters`, `metadata`.

    The metadata is that of graphs, functions, nodes, values and tensors; a model keeps its own.
    """

    elements: int | None = None
    metadata: bool = True
    characters: int | None = None

    @staticmethod
    def asked(elide: int | None, *, metadata: bool | None) -> Detail:
        """Return what the arguments of `text` ask for."""
        shown = elide is None if metadata is None else metadata
        return Detail(elide, shown, None if shown or elide is None else _LONGEST)

    def entries(self, metadata: dict[str, str] | None) -> dict[str, str] | None:
        """Return metadata where it is written, else None."""
        return metadata if self.metadata else None

    def text(self, text: str) -> str | CutText:
        """Return a text, cut where it is too long."""
        if self.characters is None or len(text) <= self.characters:
            return text
        return CutText(" ".join(text[:_BEGINNING].split()), len(text))


WHOLE = Detail()


def metadata_entries(graphs: Iterable[Graph]) -> int:
    """Return how many entries of metadata there are in graphs and those inside them.

    The metadata of a function is that of its graph.
    """
    count = 0
    for root in graphs:
        for graph in root.scopes():
            count += len(graph.metadata or ())
            count += sum(len(node.metadata or ()) for node in graph)
            count += sum(len(value.metadata or ()) for value in graph.defined())
    return count
