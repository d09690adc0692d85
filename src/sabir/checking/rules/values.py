"""Values: defined once, in the right graph, and before they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import GOOD, HEAD, IF
from sabir.checking._rule import Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import GraphSite
    from sabir.ir import Value


@rule(
    "GRAPH004",
    "All node output names MUST be unique within a graph.",
    source="ir.txt",
    over="graph",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Relu(x)  y = Neg(x) }",
        HEAD + "g (float[N] x, float[N] x) => (float[N] y) { y = Relu(x) }",
    ),
    good=GOOD,
)
def defined_once(site: GraphSite) -> Iterator[Problem]:
    """Graph inputs, initializers and node outputs share one namespace of unique names."""
    seen: dict[str, Value] = {}
    for value in site.values:
        name = value.name
        if name and seen.setdefault(name, value) is not value:
            yield Problem(
                f"the name {quote(name)} is defined twice in one graph", site.at_value(value), "rename one"
            )


@rule(
    "GRAPH005",
    "Node inputs MAY refer to node outputs, graph inputs, and graph initializers.",
    source="ir.txt",
    over="root",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Add(x, ghost) }",
        HEAD + "g (float[N] x) => (float[N] y, float[N] ghost) { y = Relu(x) }",
    ),
    good=GOOD,
)
def defined_somewhere(site: GraphSite) -> Iterator[Problem]:
    """Each value that a node reads or a graph outputs is defined in that graph or an enclosing one."""
    for value, where in site.early_reads:
        if value.source is None and value.name:
            hint = "define it by a node, an input or an initializer, or correct the name"
            yield Problem(f"{quote(value.name)} is read, but nothing defines it", where, hint)


@rule(
    "GRAPH006",
    "The list of nodes defining the top-level computation graph MUST be ordered topologically; that is, if"
    " node K follows node N in the graph, none of the data inputs of N may refer to outputs of K.",
    source="ir.txt",
    over="root",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Neg(t)  t = Relu(x) }",
        HEAD + "g (float[N] x) => (float[N] y) { y = Add(x, t)  t = Relu(y) }",
    ),
    good=GOOD,
)
def sorted_nodes(site: GraphSite) -> Iterator[Problem]:
    """A node reads only values that are defined before it; a cycle violates this too."""
    for value, where in site.early_reads:
        if value.source is not None:
            hint = "sort the nodes topologically; a cycle has no such order"
            yield Problem(f"{quote(value.name)} is read before it is computed", where, hint)


_LOOP = (
    HEAD + "g (int64 n, bool c, float[N] x) => (float[N] y) {{ y = Loop (n, c, x) <body = b (int64 i, bool k,"
    " float[N] {state}) => (bool k2, float[N] s2) {{ k2 = Identity(k)  s2 = Neg({state}) }}> }}"
)


def _shadows(site: GraphSite, visible: dict[str, Value]) -> Iterator[tuple[GraphSite, Value]]:
    """Yield the values of subgraphs whose names have another meaning in an enclosing graph.

    `visible` maps names to values here. It grows and shrinks with each graph: copies would take quadratic
    time.
    """
    outside: dict[str, Value | None] = {}

    def defines(value: Value) -> bool:
        other = outside.setdefault(value.name, visible.get(value.name))
        visible[value.name] = value
        return bool(value.name) and other is not None and other is not value

    yield from (
        (site, v) for v in dict.fromkeys((*site.graph.inputs, *site.graph.initializers)) if defines(v)
    )
    for node in site.nodes:
        for inner in site.inner.get(node, ()):
            yield from _shadows(inner, visible)
        yield from ((site, v) for v in node.outputs if v is not None and defines(v))
    for name, other in outside.items():
        if other is None:
            del visible[name]
        else:
            visible[name] = other


def _shadowing(site: GraphSite) -> Iterator[tuple[GraphSite, Value]]:
    if site.inner:  # no subgraphs, no shadows
        seen = {v.name: v for v in site.visible if v.name}
        # TRAIN006 reports names of a training graph that the main graph has too
        yield from ((inner, v) for inner, v in _shadows(site, seen) if inner is not site)


@rule(
    "GRAPH007",
    "In the case of a nested subgraph, a node output name MUST be distinct from the names from the outer"
    " scopes that are visible in the nested subgraph.",
    source="ir.txt",
    over="root",
    bad=IF.format(then="t"),
    good=IF.format(then="u"),
)
def no_shadowing(site: GraphSite) -> Iterator[Problem]:
    """No result in a subgraph has the name of a value of an enclosing graph."""
    for inner, value in _shadowing(site):
        if value.node is not None:
            yield Problem(
                f"{quote(value.name)} is also the name of a value of an enclosing graph",
                inner.at_value(value),
                "rename it",
            )


@rule(
    "GRAPH008",
    "A value name used in a graph must have a unique definition, with the exception that the same name MAY"
    " appear in both the graph input list and graph initializer list.",
    source="ir.txt",
    over="root",
    severity="warning",
    note="in subgraphs the text forbids this for results of nodes only; runtimes use the inner value",
    bad=_LOOP.format(state="x"),
    good=_LOOP.format(state="s"),
)
def no_shadowing_inputs(site: GraphSite) -> Iterator[Problem]:
    """No input or initializer of a subgraph has the name of a value of an enclosing graph."""
    for inner, value in _shadowing(site):
        if value.node is None:
            yield Problem(
                f"{quote(value.name)} is also the name of a value of an enclosing graph",
                inner.at_value(value),
                "rename it",
            )


def _again_among_outputs(site: GraphSite) -> Iterator[Problem]:
    seen: set[Value] = set()
    for index, value in enumerate(site.graph.outputs):
        if value is not None and value in seen:
            where = site.where.at("output", index=index, name=value.name)
            yield Problem(f"{quote(value.name)} is already an output", where, "pass it through an Identity")
        elif value is not None:
            seen.add(value)


@rule(
    "GRAPH009",
    "Within a namespace, each name MUST be unique for each given graph.",
    source="ir.txt",
    over="graph",
    bad=HEAD + "g (float[N] x) => (float[N] y, float[N] y) { y = Relu(x) }",
    good=GOOD,
)
def outputs_once(site: GraphSite) -> Iterator[Problem]:
    """A model lists each output once: results are identified by name."""
    if site.kind not in {"function", "subgraph"}:
        yield from _again_among_outputs(site)


_TWICE = (
    HEAD + "g (bool c, float[N] x) => (float[N] y, float[N] z) {{ y, z = If (c) <then_branch = a () =>"
    " (float[N] u, float[N] {other}) {{ u = Relu(x)  w = Neg(x) }}, else_branch = b () =>"
    " (float[N] v, float[N] t) {{ v = Abs(x)  t = Exp(x) }}> }}"
)


@rule(
    "GRAPH022",
    "The occurrence of a name as a graph input, a graph initializer, or as a node output is said to be a"
    " definition and the occurrence of a name as a node input or as a graph output is said to be a use.",
    source="ir.txt",
    over="graph",
    severity="warning",
    note="an output is a use, and nodes take outputs by position; but some readers use the names",
    bad=_TWICE.format(other="u"),
    good=_TWICE.format(other="w"),
)
def inner_outputs_once(site: GraphSite) -> Iterator[Problem]:
    """A subgraph lists each output once."""
    if site.kind == "subgraph":
        yield from _again_among_outputs(site)


@rule(
    "GRAPH016",
    "When the name of a node output coincides with the name of a graph output, the graph output's"
    " value is the"
    " corresponding output value computed by that node.",
    source="ir.txt",
    over="graph",
    bad=HEAD + "g (bool c, float[N] x) => (float[N] y) { y = If (c) <then_branch = a () => (float[N] x) { },"
    " else_branch = b () => (float[N] v) { v = Abs(x) }> }",
    good=IF.format(then="u"),
)
def own_outputs(site: GraphSite) -> Iterator[Problem]:
    """An output of a subgraph is defined in that subgraph; an outer value passes through Identity."""
    if site.kind != "subgraph":
        return
    for index, value in enumerate(site.graph.outputs):
        if value is not None and value.source is not None and value.home is not site.graph:
            where = site.where.at("output", index=index, name=value.name)
            yield Problem(
                f"{quote(value.name)} is defined outside this subgraph", where, "pass it through an Identity"
            )
