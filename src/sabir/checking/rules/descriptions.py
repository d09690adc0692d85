"""Entries of value_info that repeat the declaration of an input or output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import HEAD, RELU, X, Y, float_info, in_graph
from sabir.checking._rule import Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import GraphSite


@rule(
    "GRAPH021",
    "Used to store the type and shape information of values that are not inputs or outputs.",
    source="ir.txt",
    over="graph",
    severity="warning",
    group="style",
    note="such an entry has no effect; GRAPH018 requires that it agrees",
    bad=(
        in_graph(f'{RELU} name: "g" {X} {Y} {float_info("value_info", "x")}'),
        in_graph(f'{RELU} name: "g" {X} {Y} {float_info("value_info", "y")}'),
    ),
    good=HEAD + "g (float[N] x) => (float[N] y) <float[N] t> { t = Relu(x)  y = Neg(t) }",
)
def described_in_one_place(site: GraphSite) -> Iterator[Problem]:
    """No entry of value_info describes an input or output that declares its type itself."""
    graph = site.graph
    if site.kind == "function" or not graph.orphan_value_info:  # the ports of a function have no other types
        return
    ports = {
        value.name: kind
        for kind, values in (("output", graph.outputs), ("input", graph.inputs))
        for value in values
        if value is not None and value.type is not None and value.name
    }
    for value in graph.orphan_value_info:
        if value.name in ports:
            where = site.where.at("value_info", index=value.value_info_index, name=value.name)
            message = (
                f"value_info describes {quote(value.name)}, which is an {ports[value.name]} of the graph"
            )
            yield Problem(message, where, "drop the entry")
