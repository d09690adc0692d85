"""Entries of value_info that describe what another describes, or what is not there."""

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
@repair("GRAPH019", "One entry stays, with all that both say.")
def tidy_infos(graph: Graph, where: Location, wanted: frozenset[str]) -> Iterator[Repair]:
    """Drop entries that contradict an earlier one or describe nothing, and merge those that agree."""
    defined = {v.name for v in graph.defined()}
    again = {id(value): first for value, first, _ in described_twice(graph, where)}
    dropped: set[int] = set()
    for value in graph.orphan_value_info:
        first, name = again.get(id(value)), quote(value.name)
        if value.name not in defined and "GRAPH011" in wanted:
            rule, done = "GRAPH011", f"dropped the description of {name}, which the graph does not define"
        elif first is None or first.type == value.type:
            continue
        elif contradiction(first.type, value.type):
            rule, done = "GRAPH010", f"dropped the second description of {name}, {value.type}"
        else:
            rule, done = "GRAPH019", f"merged two descriptions of {name}, {first.type} and {value.type}"
        if rule in wanted:
            if rule == "GRAPH019" and first is not None:
                _merge(first, value)
            dropped.add(id(value))
            yield Repair(rule, done, where.at("value_info", index=value.value_info_index, name=value.name))
    graph.orphan_value_info = tuple(v for v in graph.orphan_value_info if id(v) not in dropped)


def _merge(first: Value, second: Value) -> None:
    """Add to a description what another one says beyond it."""
    first.type = merge(first.type, second.type, prefer_declared=True)
    first.doc = first.doc or second.doc
    first.metadata = {**(second.metadata or {}), **(first.metadata or {})} or None
