"""Values that are read before they are defined, in a graph and its subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.base import Location
    from sabir.checking._survey import GraphSite
    from sabir.ir import Value


class Read(NamedTuple):
    """A value, and the location that reads it before its definition."""

    value: Value
    where: Location


def early_reads(root: GraphSite, visible: Iterable[Value] = ()) -> list[Read]:
    """Return every read of a value that is not defined yet, or nowhere; `visible` are defined before."""
    found: list[Read] = []
    _follow(root, set(visible), found)
    return found


def _follow(site: GraphSite, defined: set[Value], found: list[Read]) -> None:
    graph = site.graph
    own: list[Value] = [*graph.inputs, *graph.initializers]
    defined.update(own)
    for index, node in enumerate(site.nodes):
        for slot, value in enumerate(site.reads[index]):
            if value not in defined and value is not None:
                found.append(Read(value, site.at_node(index).at("input", index=slot, name=value.name)))
        for inner in site.inner.get(node, ()) if site.inner else ():
            _follow(inner, defined, found)
        for value in node.outputs:
            if value is not None:
                own.append(value)
                defined.add(value)
    for slot, value in enumerate(graph.outputs):
        if value is not None and value not in defined:
            found.append(Read(value, site.where.at("output", index=slot, name=value.name)))
    if site.outer is not None:
        defined.difference_update(own)
