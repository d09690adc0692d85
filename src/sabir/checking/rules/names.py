"""Names: C identifiers, and unique where the standard requires it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import GOOD, HEAD
from sabir.checking._identifiers import IDENTIFIER
from sabir.checking._rule import Problem, rule
from sabir.ir import Expr, SparseTensorType, TensorType, parts_of_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.base import Location
    from sabir.checking._survey import AttributeSite, GraphSite, Survey, TypeSite
    from sabir.ir import Type

_MOST_SHOWN = 3


def _odd_names(names: Iterable[str], what: str, where: Location, rule_id: str) -> Iterator[Problem]:
    """Yield one problem for all names of a graph: exporters may write a thousand of them."""
    odd = [n for n in dict.fromkeys(names) if n and not IDENTIFIER.fullmatch(n)]
    if not odd:
        return
    shown = ", ".join(map(quote, odd[:_MOST_SHOWN])) + (", ..." if len(odd) > _MOST_SHOWN else "")
    count = f"{len(odd)} names of {what}s are" if len(odd) > 1 else f"the name of a {what} is"
    hint = f"`sabir check --fix-unsafe {rule_id}` renames {'them' if len(odd) > 1 else 'it'}"
    yield Problem(
        f"{count} not {'C identifiers' if len(odd) > 1 else 'a C identifier'}: {shown}", where, hint
    )


@rule(
    "NAME001",
    "All names MUST adhere to C90 identifier syntax rules.",
    source="ir.txt",
    over="graph",
    severity="warning",
    group="style",
    note="exporters write paths and dots, every runtime accepts them, and later texts allow them",
    bad=(
        HEAD + 'g (float[N] "x.1") => (float[N] y) { y = Relu("x.1") }',
        HEAD + 'g (float[N] "register") => (float[N] y) { y = Relu("register") }',
    ),
    good=GOOD,
)
def value_names(site: GraphSite) -> Iterator[Problem]:
    """Names of a graph's values: a letter or underscore, then letters, digits and underscores; no keyword."""
    yield from _odd_names([v.name for v in site.values], "value", site.where, "NAME001")


@rule(
    "NAME002",
    "All names MUST adhere to C90 identifier syntax rules.",
    source="ir.txt",
    over="graph",
    severity="warning",
    group="style",
    note="as NAME001",
    bad=HEAD + 'g (float[N] x) => (float[N] y) { ["/relu"] y = Relu(x) }',
    good=HEAD + "g (float[N] x) => (float[N] y) { [relu] y = Relu(x) }",
)
def node_names(site: GraphSite) -> Iterator[Problem]:
    """The names of nodes and graphs are C identifiers."""
    yield from _odd_names([site.graph.name, *(n.name for n in site.nodes)], "node", site.where, "NAME002")


@rule(
    "NAME003",
    "Within a namespace, each name MUST be unique for each given graph.",
    source="ir.txt",
    over="graph",
    severity="warning",
    group="style",
    note="the name of a node is for diagnostics only",
    bad=HEAD + "g (float[N] x) => (float[N] y) { [n] t = Relu(x)  [n] y = Neg(t) }",
    good=HEAD + "g (float[N] x) => (float[N] y) { [n] t = Relu(x)  [m] y = Neg(t) }",
)
def node_names_once(site: GraphSite) -> Iterator[Problem]:
    """No two nodes of a graph have the same name."""
    for name, count in Counter(n.name for n in site.nodes if n.name).items():
        if count > 1:
            yield Problem(f"{count} nodes are named {quote(name)}", site.where, "rename all but one")


@rule(
    "NAME004",
    "The name of each dimension variable MUST adhere to C90 identifier syntax rules.",
    source="ir.txt",
    over="type",
    severity="warning",
    group="style",
    note="exporters and shape inference write expressions such as `past + 1` with that meaning",
    bad=(
        HEAD + 'g (float["N-1"] x) => (float["N-1"] y) { y = Relu(x) }',
        HEAD + 'g (seq(float["N-1"]) x) => (seq(float["N-1"]) x) { }',
    ),
    good=(GOOD, HEAD + "g (seq(float[N]) x) => (seq(float[N]) x) { }"),
)
def dimension_names(site: TypeSite) -> Iterator[Problem]:
    """The names of dimensions are C identifiers."""
    dims = (d for part in parts_of_type(site.type) for d in _dims(part))
    names = (str(d) for d in dims if isinstance(d, Expr))
    odd = [name for name in names if name != "*" and not IDENTIFIER.fullmatch(name)]  # TYPE012 reports it
    if odd:
        yield Problem(
            f"the name of a dimension is not a C identifier: {quote(odd[0])}", site.where, "use a plain name"
        )


def _dims(kind: Type) -> Iterable[object]:
    return (kind.shape or ()) if isinstance(kind, (TensorType, SparseTensorType)) else ()


@rule(
    "NAME005",
    "Within a namespace, each name MUST be unique for each given graph.",
    source="ir.txt",
    over="model",
    severity="warning",
    group="style",
    note="exporters give branches and bodies equal names, and nothing refers to a graph by name",
    bad=HEAD + "g (bool c, float[N] x) => (float[N] y) { y = If (c) <then_branch = a () => (float[N] u)"
    " { u = Relu(x) }, else_branch = a () => (float[N] v) { v = Abs(x) }> }",
    good=HEAD + "g (bool c, float[N] x) => (float[N] y) { y = If (c) <then_branch = a () => (float[N] u)"
    " { u = Relu(x) }, else_branch = b () => (float[N] v) { v = Abs(x) }> }",
)
def graph_names_once(survey: Survey) -> Iterator[Problem]:
    """No two graphs of a model have the same name."""
    seen: set[str] = set()
    for site in survey.graphs:
        if site.kind != "function" and site.graph.name in seen:
            yield Problem(
                f"another graph has the name {quote(site.graph.name)}", site.where, "rename one of them"
            )
        seen.add(site.graph.name)


_CALL = (
    '<ir_version: 8, opset_import: ["" : 17, "d" : 1]>\n'
    "g (float[N] x) => (float[N] y) {{ y = d.f<{name} = 1>(x) }}\n"
    '<domain: "d", opset_import: ["" : 17]>\nf <{name}> (a) => (b) {{ b = Relu(a) }}'
)


@rule(
    "NAME006",
    "All names MUST adhere to C90 identifier syntax rules.",
    source="ir.txt",
    over="attribute",
    severity="warning",
    group="style",
    note="as NAME001; only the owner of an operator can rename its attributes",
    bad=_CALL.format(name='"a.b"'),
    good=_CALL.format(name="a_b"),
)
def attribute_names(site: AttributeSite) -> Iterator[Problem]:
    """The names of attributes are C identifiers."""
    name = site.attribute.name
    if name and not IDENTIFIER.fullmatch(name):
        yield Problem(
            f"the name of the attribute {quote(name)} is not a C identifier", site.where, "rename it"
        )
