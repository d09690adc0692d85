"""Calls: operators and functions that exist, called with the arity and attributes they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Finding, Location, SchemaError
from sabir.ir import Function, Graph, Node
from sabir.schema import Scope, check_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def call_findings(
    graph: Graph, scope: Scope, where: Location, function: Function | None = None
) -> Iterator[Finding]:
    """Yield the nodes of a graph, and of those inside it, that call nothing known or call it wrongly.

    `function` is the one whose body this is; only its attributes may be referred to.
    """
    for place, node in enumerate(graph):
        at = where.at("node", index=place, name=node.name or node.op)
        yield from _references(node, function, at)
        try:
            callee = scope.callee(node)
        except SchemaError as error:
            yield Finding("NODE001", str(error), at)
        else:
            if isinstance(callee, Function):
                yield from _told("NODE002", at, lambda c=callee, n=node: check_call(c, n))
                yield from _told("NODE003", at, lambda c=callee, n=node: scope.inside(c, n))
            elif callee.deprecated:
                yield Finding("NODE005", f"{callee} is deprecated: {callee.changes}", at)
            else:
                formal = callee.formal
                yield from _told(
                    "NODE002", at, lambda f=formal, n=node: f.check_arity(n.inputs, len(n.outputs))
                )
                yield from _told("NODE003", at, lambda f=formal, n=node: f.check_attributes(n.attributes))
        for name, attribute in node.attributes.items():
            for inner in attribute.graphs:
                yield from call_findings(inner, scope, at.at("attribute", name=name), function)


def _told(rule: str, where: Location, test: Callable[[], object]) -> Iterator[Finding]:
    try:
        test()
    except SchemaError as error:
        yield Finding(rule, str(error), where)


def _references(node: Node, function: Function | None, where: Location) -> Iterator[Finding]:
    for name, attribute in node.attributes.items():
        if not attribute.ref:
            continue
        at = where.at("attribute", name=name)
        if function is None:
            yield Finding(
                "NODE006", f"it refers to {attribute.ref!r}, and only a function's body may refer", at
            )
        elif attribute.ref not in function.attributes:
            yield Finding(
                "NODE006", f"it refers to {attribute.ref!r}, which {function!r} does not declare", at
            )
