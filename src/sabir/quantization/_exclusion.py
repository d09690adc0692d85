"""Nodes that stay wide because a caller or a budget says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import NotFoundError, quote, suggest
from sabir.ir import Node, places

if TYPE_CHECKING:
    from collections.abc import Collection

    from sabir.base import Location
    from sabir.ir import Model


@dataclass(frozen=True)
class Exclusion:
    """Nodes that stay wide: by name as a caller says, by location as a budget does.

    >>> node = sabir.ir.Node('MatMul', name='dense')
    >>> Exclusion(names=['dense']).reason(node, sabir.base.Location())
    'it is excluded'
    """

    names: Collection[str] = ()
    locations: Collection[str] = ()

    def reason(self, node: Node, location: Location) -> str:
        """Return why a node stays wide, or nothing."""
        if node.name in self.names:
            return "it is excluded"
        return "the budget excludes it" if str(location) in self.locations else ""

    def require_names(self, model: Model) -> None:
        """Raise NotFoundError, with the nearest name, for a name that no node of a model has."""
        known = {place.object.name for place in places(model, Node)}
        for name in self.names:
            if name not in known:
                raise NotFoundError(f"no node has the name {quote(name)}{suggest(name, known)}")
