"""Repairs of value_info: entries that describe a value a second time, and orphans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking import described_twice
from sabir.inference import contradiction, merge
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.ir import Graph, Value


@repair("GRAPH010", "The second entry is dropped.")
@repair("GRAPH011", "The entry is dropped.")
@repair("GRAPH019", "The entries are merged into one, which contains what both of them state.")
def repair_value_info(graph: Graph, where: Location, selected: frozenset[str]) -> Iterator[Repair]:
    """Drop entries that contradict an earlier one or are orphans, and merge those that agree."""
    defined = {v.name for v in graph.defined()}
    first_entries = {id(value): first for value, first, _ in described_twice(graph, where)}
    dropped: set[int] = set()
    for value in graph.orphan_value_info:
        first, name = first_entries.get(id(value)), quote(value.name)
        if value.name not in defined and "GRAPH011" in selected:
            rule = "GRAPH011"
            message = f"dropped the description of {name}, which the graph does not define"
        elif first is None or first.type == value.type:
            continue
        elif contradiction(first.type, value.type):
            rule = "GRAPH010"
            message = f"dropped the second description of {name}, {value.type}"
        else:
            rule = "GRAPH019"
            message = f"merged two descriptions of {name}, {first.type} and {value.type}"
        if rule not in selected:
            continue
        if rule == "GRAPH019" and first is not None:
            _merge(first, value)
        dropped.add(id(value))
        yield Repair(rule, message, where.at("value_info", index=value.value_info_index, name=value.name))
    graph.orphan_value_info = tuple(v for v in graph.orphan_value_info if id(v) not in dropped)


def _merge(first: Value, second: Value) -> None:
    """Add to the first entry what only the second states."""
    first.type = merge(first.type, second.type, prefer_declared=True)
    first.doc = first.doc or second.doc
    first.metadata = {**(second.metadata or {}), **(first.metadata or {})} or None
