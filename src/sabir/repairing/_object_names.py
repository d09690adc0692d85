"""Repairs of the names of nodes, graphs and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Function, canonical_domain
from sabir.repairing._declaring import repair
from sabir.repairing._identifiers import Identifiers, plain_name, renamed
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking import GraphSite, Survey


@repair("NAME003", "A number is added to all names but the first.")
@repair(
    "NAME002",
    "Characters that identifiers cannot contain become `_`, and a number is added if the new name is in use;"
    " a function is renamed in its calls too. Tools that refer to a node by its name no longer find it.",
    safe=False,
)
def rename_nodes(task: Task) -> Iterator[Repair]:
    """Make names of nodes identifiers, unique in each graph; nothing in a model uses them."""
    for site in task.survey.graphs:
        names, seen = Identifiers(node.name for node in site.nodes), set[str]()
        for index, node in enumerate(site.nodes):
            old = node.name
            rules = (
                "NAME002" if plain_name(old) != old else "",
                "NAME003" if old in seen else "",
            )
            rule = next((r for r in rules if r in task.selected), "")
            if old and rule:
                where = site.at_node(index)
                node.name = names.fresh(old)
                yield Repair(rule, renamed("the node", old, node.name), where)
            seen.add(node.name)


@repair("GRAPH001", "The graph is named after the attribute or field that contains it.")
@repair("NAME005", "A number is added to all names but the first.")
def rename_graphs(task: Task) -> Iterator[Repair]:
    """Name graphs without a name, and make all names unique identifiers; nothing in a model uses them."""
    sites = task.survey.graphs
    names, seen = Identifiers(site.graph.name for site in sites), set[str]()
    for site in sites:
        graph, old = site.graph, site.graph.name
        if site.kind != "function":
            rules = (
                "GRAPH001" if not old else "",
                "NAME002" if plain_name(old) != old else "",
                "NAME005" if old in seen else "",
            )
            rule = next((r for r in rules if r in task.selected), "")
            if rule:
                graph.name = names.fresh(old or _default_name(site))
                yield Repair(rule, renamed("the graph", old, graph.name), site.where)
        seen.add(graph.name)


def _default_name(site: GraphSite) -> str:
    """Return the name of a graph without one: main_graph, or the attribute or field that contains it."""
    if site.kind == "main":
        return "main_graph"
    step = site.where.steps[-1]
    is_attribute = site.kind == "subgraph" and step.kind == "attribute"
    return step.name if is_attribute and step.name else step.kind


def rename_functions(task: Task) -> Iterator[Repair]:
    """Make the names of functions identifiers, and rename their calls."""
    survey = task.survey
    sites = [f for f in survey.functions if f.function.name != plain_name(f.function.name)]
    if not sites or "NAME002" not in task.selected:
        return
    new_names: dict[tuple[str, str], str] = {}  # overloads share their name
    identifiers: dict[str, Identifiers] = {}  # by domain
    for site in sites:
        function, domain = site.function, canonical_domain(site.function.domain)
        if domain not in identifiers:
            identifiers[domain] = Identifiers(_operators(survey, domain))
        key = domain, function.name
        if key not in new_names:
            new_names[key] = identifiers[domain].fresh(function.name)
        message = f"{renamed('the function', function.name, new_names[key])}, in every call too"
        yield Repair("NAME002", message, site.where)
    for site in survey.graphs:
        _rename_calls(site, new_names)
    for site in sites:
        function = site.function
        function.name = function.graph.name = new_names[canonical_domain(function.domain), function.name]


def _rename_calls(site: GraphSite, new_names: dict[tuple[str, str], str]) -> None:
    for callee, indices in site.calls.items():
        for index in indices if isinstance(callee, Function) else ():
            node = site.nodes[index]
            node.op = new_names.get((canonical_domain(node.domain), node.op), node.op)


def _operators(survey: Survey, domain: str) -> Iterator[str]:
    """Yield the names of the operators and functions of a domain that exist or are called."""
    yield from survey.registry.names(domain)
    yield from (f.function.name for f in survey.functions if canonical_domain(f.function.domain) == domain)
    for site in survey.graphs:
        yield from (node.op for node in site.nodes if canonical_domain(node.domain) == domain)
