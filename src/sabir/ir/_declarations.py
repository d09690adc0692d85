"""Outputs and value_info of a graph that is being read: the value that each entry declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sabir.ir._graph import Graph
    from sabir.ir._names import NameScope

Entry = TypeVar("Entry", bound=Any)  # a `ValueInfoProto`, or the like of another format: it has a `name`


def read_outputs(
    graph: Graph, entries: Iterable[Entry], scope: NameScope, describe: Callable[[Value, Entry], Value]
) -> None:
    """Add the outputs; the description of a value that has one already is kept separately.

    `describe` writes the name, type and documentation of an entry into a value, and returns the value.
    """
    described = set(graph.inputs)
    for entry in entries:
        value = scope.read(entry.name) or Value()
        if value in described or scope.own(entry.name) is not value:
            graph.output_infos[len(graph.outputs)] = (value, describe(Value(entry.name), entry))
        else:
            described.add(describe(value, entry))
        graph.outputs.append(value)


def read_value_info(
    graph: Graph,
    entries: Iterable[Entry],
    scope: NameScope,
    describe: Callable[[Value, Entry], Value],
    *,
    inputs: Iterable[Value] = (),
    first: int = 0,
) -> None:
    """Add the value_info entries; one for an input or a typed output becomes an orphan.

    `inputs` are the described inputs, `first` is the index of the first entry; `describe` is as for
    `read_outputs`.
    """
    separate = graph.output_infos
    outputs = {v: i for i, v in enumerate(graph.outputs) if v is not None and i not in separate}
    taken = {*inputs, *(v for v in outputs if v.type is not None)}
    orphans: list[Value] = []
    for place, entry in enumerate(entries, first):
        value = scope.own(entry.name)
        if value is None or value.value_info_index is not None or value in taken:
            value = Value(entry.name)
            orphans.append(value)
        elif value in outputs:
            graph.output_infos[outputs[value]] = (value, _description(value))
        value.value_info_index = place
        describe(value, entry)
    graph.orphan_value_info = tuple(orphans)


def _description(value: Value) -> Value:
    """Return a separate value with the description that an output has of `value`."""
    separate = Value(value.name, value.type)
    separate.doc, separate.metadata, separate.residue = value.doc, value.metadata, value.residue
    return separate
