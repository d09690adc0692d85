"""Names of nodes, graphs and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Function, canonical_domain
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Identifiers, Repair, Task, plain_name, renamed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking import GraphSite, Survey


@repair("NAME003", "All but the first are numbered.")
@repair(
    "NAME002",
    "Odd characters become `_`, and a number is added where that is taken; a function is renamed"
    " in its calls too. Tools that refer to a node by its name no longer find it.",
    safe=False,
)
def rename_nodes(task: Task) -> Iterator[Repair]:
    """Make names of nodes identifiers, and in each graph unlike one another; nothing refers to them."""
    for site in task.survey.graphs:
        names, seen = Identifiers(node.name for node in site.nodes), set[str]()
        for index, node in enumerate(site.nodes):
            old = node.name
            odd = "NAME002" if plain_name(old) != old else ""
            rule = next((r for r in (odd, "NAME003" if old in seen else "") if r in task.wanted), "")
            if old and rule:
                where = site.at_node(index)
                node.name = names.fresh(old)
                yield Repair(rule, renamed("the node", old, node.name), where)
            seen.add(node.name)


@repair("GRAPH001", "The graph is named after what holds it.")
@repair("NAME005", "All but the first are numbered.")
def rename_graphs(task: Task) -> Iterator[Repair]:
    """Name graphs without a name, make names identifiers and unlike one another; nothing refers to them."""
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
            rule = next((r for r in rules if r in task.wanted), "")
            if rule:
                graph.name = names.fresh(old or _role(site))
                yield Repair(rule, renamed("the graph", old, graph.name), site.where)
        seen.add(graph.name)


def _role(site: GraphSite) -> str:
    """Return what a graph may be called: main_graph, or the attribute or field that holds it."""
    step = site.where.steps[-1]
    held_alone = site.kind == "subgraph" and step.kind == "attribute" and step.name
    return step.name if held_alone else "main_graph" if site.kind == "main" else step.kind


def rename_functions(task: Task) -> Iterator[Repair]:
    """Make the names of functions identifiers, in every call too."""
    survey = task.survey
    odd = [f for f in survey.functions if f.function.name != plain_name(f.function.name)]
    if not odd or "NAME002" not in task.wanted:
        return
    found: dict[tuple[str, str], str] = {}  # overloads share their name
    domains: dict[str, Identifiers] = {}
    for site in odd:
        function, domain = site.function, canonical_domain(site.function.domain)
        if domain not in domains:
            domains[domain] = Identifiers(_operators(survey, domain))
        key = domain, function.name
        if key not in found:
            found[key] = domains[domain].fresh(function.name)
        message = f"{renamed('the function', function.name, found[key])}, in every call too"
        yield Repair("NAME002", message, site.where)
    for site in survey.graphs:
        for index in (
            i for callee, called in site.calls.items() if isinstance(callee, Function) for i in called
        ):
            node = site.nodes[index]
            node.op = found.get((canonical_domain(node.domain), node.op), node.op)
    for site in odd:
        site.function.name = site.function.graph.name = found[
            canonical_domain(site.function.domain), site.function.name
        ]


def _operators(survey: Survey, domain: str) -> Iterator[str]:
    """Yield the names of operators and functions in a domain, as far as they are known or called."""
    yield from survey.registry.names(domain)
    yield from (f.function.name for f in survey.functions if canonical_domain(f.function.domain) == domain)
    for site in survey.graphs:
        yield from (node.op for node in site.nodes if canonical_domain(node.domain) == domain)
