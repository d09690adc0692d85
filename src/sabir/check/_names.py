"""Names: defined once, and before they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Finding, Location, quote
from sabir.ir import Graph, Node, Value

if TYPE_CHECKING:
    from collections.abc import Iterator


def name_findings(graph: Graph, where: Location, outer: frozenset[Value] = frozenset()) -> Iterator[Finding]:
    """Yield names of a graph, and of those inside it, that are defined twice, too late or nowhere."""
    yield from _clashes(graph, where)
    defined = {*outer, *graph.inputs, *graph.initializers}
    for place, node in enumerate(graph):
        at = where.at("node", index=place, name=node.name or node.op)
        for slot, value in enumerate(node.inputs):
            if value is not None and value not in defined:
                yield _unread(value, at.at("input", index=slot, name=value.name))
        for name, attribute in node.attributes.items():
            for inner in attribute.graphs:
                yield from name_findings(inner, at.at("attribute", name=name), frozenset(defined))
        for name in node.residue.repeated if node.residue else ():
            yield Finding("NODE004", f"the attribute {name!r} is given twice", at, "keep one of them")
        defined.update(v for v in node.outputs if v is not None)
    for slot, value in enumerate(graph.outputs):
        if value is not None and value not in defined:
            yield _unread(value, where.at("output", index=slot, name=value.name))


def _clashes(graph: Graph, where: Location) -> Iterator[Finding]:
    seen: dict[str, Value] = {}
    for value in graph.defined():
        if value.name and seen.setdefault(value.name, value) is not value:
            place = (
                where.at(value.source.op, name=value.source.name) if isinstance(value.source, Node) else where
            )
            yield Finding(
                "GRAPH004",
                f"the name {quote(value.name)} is defined twice in one graph",
                place,
                "rename one of them",
            )


def _unread(value: Value, where: Location) -> Finding:
    if value.source is None:
        hint = "give it a node, an input or an initializer, or correct the name"
        return Finding("GRAPH005", f"{quote(value.name)} is read, and nothing defines it", where, hint)
    hint = "sort the nodes so that each follows what it reads"
    return Finding("GRAPH006", f"{quote(value.name)} is read before it is computed", where, hint)
