"""Calls of functions: the inputs that a body requires are not omitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import quote
from sabir.checking._rule import Problem, rule
from sabir.ir import Function
from sabir.schema import Version, function_label, port_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.checking._survey import FunctionSite, GraphSite, Survey
    from sabir.ir import Node, Value
    from sabir.schema import Input, Scope

_MAIN = (
    '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\ng (float[N] x) => (float[N] y) {{ y = d.f({}) }}\n'
)
_F = '<domain: "d", opset_import: ["" : 18, "d" : 1]>\nf (a, b) => (c) {{ {} }}\n'
_G = '<domain: "d", opset_import: ["" : 18]>\ng (p, q) => (r) { r = Add(p, q) }\n'
_ASKS = (
    "has = OptionalHasElement(b)  c = If (has) <then_branch = t () => (float[N] u) {{ u = {} }},"
    " else_branch = e () => (float[N] v) {{ v = Neg(a) }}>"
)


class _Need(NamedTuple):
    """Why a function requires an input: the node that reads it, possibly in a function called by the body."""

    reader: str
    through: Function | None = None

    def __str__(self) -> str:
        return (
            f"{self.reader}, called through {function_label(self.through)}" if self.through else self.reader
        )


class _Pass(NamedTuple):
    """A node of a function's body that passes an input of the function to another function."""

    function: Function
    value: Value


@rule(
    "FUNC012",
    "The number of inputs and outputs in a node, their types, the set of attributes specified in a node and"
    " their types MUST satisfy the constraints imposed by the signature of the node's operator.",
    source="ir.txt",
    over="model",
    bad=(
        _MAIN.format("x") + _F.format("c = Add(a, b)"),
        _MAIN.format('"", x') + _F.format("c = Add(a, b)"),
        _MAIN.format("x") + _F.format("c = d.g(a, b)") + _G,
        _MAIN.format("x") + _F.format("c = Max(a, b)"),
        _MAIN.format("x") + _F.format(_ASKS.format("Add(a, b)").replace("HasElement(b)", "HasElement(a)")),
    ),
    good=(
        _MAIN.format("x, x") + _F.format("c = Add(a, b)"),
        _MAIN.format("x") + _F.format("c = Clip(a, b)"),
        _MAIN.format("x") + _F.format(_ASKS.format("Add(a, b)")),
    ),
)
def whole_calls(survey: Survey) -> Iterator[Problem]:
    """A call of a function passes every input that an operator in the function's body requires.

    An input that the body passes to another function is required if that function requires it. A read in a
    branch does not count if the condition tests the input with OptionalHasElement.
    """
    needs = _needs(survey.functions)
    for site in survey.graphs:
        for callee, places in site.calls.items():
            needed = needs.get(callee) if isinstance(callee, Function) else None
            for index in places if needed else ():
                yield from _left_out(site, index, callee, needed or {})


def _left_out(site: GraphSite, index: int, callee: object, needed: dict[Value, _Need]) -> Iterator[Problem]:
    operands = site.reads[index]
    if not isinstance(callee, Function):
        return
    label = function_label(callee)
    for place, port in enumerate(callee.graph.inputs):
        if port in needed and (place >= len(operands) or operands[place] is None):
            message = f"the call omits {quote(port.name)}, which {label} requires: {needed[port]}"
            yield Problem(message, site.at_node(index), f"pass input {place}")


def _needs(functions: list[FunctionSite]) -> dict[object, dict[Value, _Need]]:
    """Return the inputs that each function requires, with the reason.

    It starts with what operators require, and adds inputs passed to such inputs until nothing changes.
    """
    found: dict[object, dict[Value, _Need]] = {site.function: {} for site in functions}
    passed: dict[Value, list[_Pass]] = {}
    pending: list[tuple[Function, Value]] = []
    for site in functions:
        asked = _Asked(site.body)
        for inner in site.body.with_subgraphs():
            for value, need in _direct(inner, asked):
                found[site.function].setdefault(value, need)
            for port, value in _handed_on(inner, asked):
                passed.setdefault(port, []).append(_Pass(site.function, value))
        pending += ((site.function, value) for value in found[site.function])
    while pending:
        function, port = pending.pop()
        for one in passed.get(port, ()):
            known = found.get(one.function)
            if known is not None and one.value not in known:
                known[one.value] = _Need(found[function][port].reader, function)
                pending.append((one.function, one.value))
    return found


def _direct(site: GraphSite, asked: _Asked) -> Iterator[tuple[Value, _Need]]:
    """Yield each input of the function that an operator in this graph requires."""
    for callee, places in site.calls.items():
        ports = callee.formal.inputs if isinstance(callee, Version) else ()
        for index in places if ports else ():
            for place, value in enumerate(site.reads[index]):
                port = port_at(ports, place)
                if value is None or value not in asked.ports or port.optional:
                    continue
                if not asked.before(site, value):
                    yield value, _Need(f"{site.at_node(index)} reads it as {quote(port.name)}")


def _handed_on(site: GraphSite, asked: _Asked) -> Iterator[tuple[Value, Value]]:
    """Yield each input of a called function with the input of this function that is passed to it."""
    for callee, places in site.calls.items():
        if isinstance(callee, Function):
            for index in places:
                for port, value in zip(callee.graph.inputs, site.reads[index], strict=False):
                    if value is not None and value in asked.ports and not asked.before(site, value):
                        yield port, value


class _Asked:
    """The inputs of a function whose presence conditions in its body test."""

    def __init__(self, body: GraphSite) -> None:
        self.ports = frozenset(body.graph.inputs)
        self._scope = body.scope
        self._by_condition: dict[Value, frozenset[Value]] = {}

    def before(self, site: GraphSite, value: Value) -> bool:
        """Return whether a subgraph runs only after a test for the presence of a value."""
        at: GraphSite | None = site
        while at is not None and at.holder is not None:
            node = at.holder
            if value in self._in(node):
                return True
            at = at.outer
        return False

    def _in(self, node: Node) -> frozenset[Value]:
        condition = next(_operands(node, self._scope, lambda port: port.decides), None)
        if condition is None:
            return frozenset()
        found = self._by_condition.get(condition)
        if found is None:
            found = self._by_condition[condition] = frozenset(_questions(condition, self._scope))
        return found


def _operands(node: Node, scope: Scope, choice: Callable[[Input], bool]) -> Iterator[Value]:
    """Yield the operands of a node whose ports are chosen."""
    version = scope.version(node)
    ports = () if version is None else version.inputs
    for place, value in enumerate(node.inputs if ports else ()):
        if value is not None and choice(port_at(ports, place)):
            yield value


def _questions(condition: Value, scope: Scope) -> Iterator[Value]:
    """Yield the values whose presence a condition, or a value that it depends on, tests."""
    seen, pending = {condition}, [condition]
    while pending:
        node = pending.pop().node
        if node is None:
            continue
        read = [v for v in node.inputs if v is not None]
        yield from _operands(node, scope, lambda port: port.presence)
        pending += [v for v in read if v not in seen]
        seen.update(read)
