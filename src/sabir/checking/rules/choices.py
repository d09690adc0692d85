"""Values of attributes: those that the operator version admits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import HEAD
from sabir.checking._rule import Problem, rule
from sabir.schema import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import GraphSite

_REFERRED = (
    '<ir_version: 8, opset_import: ["" : 17, "d" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = d.f<k = 77>(x) }\n"
    '<domain: "d", opset_import: ["" : 17]>\nf <k> (a) => (b) { t = Cast<to: int = @k>(a)'
    " b = CastLike(t, a) }"
)
_SIGNATURE = (
    "The number of inputs and outputs in a node, their types, the set of attributes specified in a node and"
    " their types MUST satisfy the constraints imposed by the signature of the node's operator."
)


def _choosing(site: GraphSite) -> Iterator[tuple[Version, list[int]]]:
    """Yield groups of nodes with equal attributes whose operator version restricts attribute values.

    The reader makes equal attributes one object.
    """
    attributed = set(site.attributed)
    for callee, places in site.calls.items():
        if not isinstance(callee, Version) or not callee.formal.values:
            continue
        alike: dict[tuple[int, ...], list[int]] = {}
        for index in attributed.intersection(places):
            alike.setdefault(tuple(map(id, site.nodes[index].attributes.values())), []).append(index)
        for group in alike.values():
            yield callee, group


@rule(
    "ATTR009",
    _SIGNATURE,
    source="ir.txt",
    over="calls",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Cast<to = 77>(x) }",
        HEAD + "g (float[N] x) => (float[N] y) { y = Cast<to = 17>(x) }",
        HEAD + "g (float[N,C,L] x) => (float[N,C,M] y) { y = LpPool<kernel_shape = [2], p = 0>(x) }",
        HEAD + "g (float[N,C,H,W] x, float[N,I,J,2] i) => (float[N,C,I,J] y)"
        ' { y = GridSample<mode = "linear">(x, i) }',
        _REFERRED,
    ),
    good=HEAD + "g (float[N,C,H,W] x, float[N,I,J,2] i) => (float[N,C,I,J] y)"
    ' { y = GridSample<mode = "bicubic">(x, i) }',
)
def admitted(site: GraphSite) -> Iterator[Problem]:
    """An attribute has an admitted value: a known mode, an element type, a number in range.

    In a function that passes an attribute on, each call is checked.
    """
    for version, group in _choosing(site):
        for _, message in version.formal.faults(site.nodes[group[0]].attributes):
            domain = f" --domain {version.operator.domain}" if version.operator.domain else ""
            hint = f"`sabir op {version.operator.name} --opset {version.since}{domain}` lists the values"
            yield from (Problem(message, site.at_node(index), hint) for index in group)


@rule(
    "ATTR010",
    _SIGNATURE,
    source="ir.txt",
    over="calls",
    severity="warning",
    note="exporters write these values, and runtimes accept them as aliases",
    bad=(
        HEAD.replace("17", "9") + "g (float[N,C,H,W] x, float[4] s) => (float[N,C,I,J] y)"
        ' { y = Upsample<mode = "bilinear">(x, s) }',
        HEAD + "g (float[T,N,I] x, float[1,H,I] w, float[1,H,H] r) => (float[T,1,N,H] y)"
        ' { y = RNN<activations = ["tanh"]>(x, w, r) }',
    ),
    good=HEAD + "g (float[T,N,I] x, float[1,H,I] w, float[1,H,H] r) => (float[T,1,N,H] y)"
    ' { y = RNN<activations = ["Tanh"]>(x, w, r) }',
)
def named(site: GraphSite) -> Iterator[Problem]:
    """An attribute's value is spelled as in the standard."""
    for version, group in _choosing(site):
        for name, value, meant in version.formal.aliases(site.nodes[group[0]].attributes):
            message = (
                f"{version}: the standard does not define the value {quote(value)} of attribute {name!r}"
            )
            hint = f"write {meant!r}" if value != meant else "choose a defined one"
            yield from (Problem(message, site.at_node(index), hint) for index in group)
