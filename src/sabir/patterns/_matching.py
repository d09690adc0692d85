"""The matcher: finds what a pattern describes at a node, with backtracking over every choice.

A choice is the order of commutative operands, whether an optional call is there, and which reader of a value
continues a pattern of several outputs. The first assignment that satisfies all of the pattern and is accepted
by the caller is the match.
"""

from __future__ import annotations

import math
from itertools import starmap
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import SabirError, quote
from sabir.ir import Node, Tensor, Value, canonical_domain
from sabir.patterns._match import Bindings, Match, attributes_of
from sabir.patterns._pattern import Literal, Result, Variable
from sabir.rewriting import constant_of
from sabir.schema import Unconvertible, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from sabir.ir import Array
    from sabir.patterns._pattern import Operand, Pattern, PatternCall
    from sabir.rewriting import Rewriter

    Goals: TypeAlias = "tuple[tuple[Operand | None, Value | None, Node], Goals] | None"

_MOST_STEPS = 10_000  # calls that one attempt may compare
_TOLERANCE = 1e-6  # relative, of the elements of constants and of numbers in attributes


class Matcher:
    """One attempt to match a pattern at a node.

    With `explain`, `reason` says afterwards why the attempt that came furthest failed.
    """

    def __init__(self, pattern: Pattern, rewriter: Rewriter, *, shared: bool, explain: bool = False) -> None:
        self._pattern, self._rewriter, self._shared = pattern, rewriter, shared
        self._accept: Callable[[Match], bool] = _accept_all
        self._explain, self._furthest = explain, -1
        self._steps = 0
        self._nodes: dict[PatternCall, Node] = {}
        self._stand_ins: dict[PatternCall, Value] = {}  # the operands in place of missing calls
        self._values: dict[str, Value] = {}
        self._rests: dict[str, Sequence[Value | None]] = {}
        self._attributes: dict[str, Any] = {}
        self._trail: list[tuple[dict[Any, Any], Any]] = []
        self._accepted: Match | None = None
        self.reason = ""

    def match(self, node: Node, accept: Callable[[Match], bool] | None = None) -> Match | None:
        """Return the first match at a node that `accept` accepts, None without one."""
        self._accept = accept or _accept_all
        self._visit(self._pattern.anchor, node, None)
        return self._accepted

    @property
    def depth(self) -> int:
        """How many calls of the pattern matched at most."""
        return max(self._furthest, len(self._nodes))

    def contains(self, node: Node) -> bool:
        """Return whether a node is one of the match."""
        return node in self._nodes.values()

    def roots(self) -> Sequence[Node]:
        """Return the nodes of the match that compute the pattern's outputs."""
        return [self._nodes[call] for call in self._pattern.roots]

    def outputs(self) -> Sequence[Value]:
        """Return the outputs of the match, in the order of the pattern."""
        found = (self._nodes[result.call].outputs[result.slot] for result in self._pattern.outputs)
        return [value for value in found if value is not None]

    def refuse(self, reason: str) -> bool:
        """Note why the match is refused, and return False."""
        if self._explain and len(self._nodes) > self._furthest:
            self._furthest, self.reason = len(self._nodes), reason
        return False

    # search

    def _solve(self, goals: Goals) -> bool:
        while goals is not None:
            (operand, value, reader), goals = goals
            if operand is None or isinstance(operand, Variable):
                if not self._bind(operand, value, reader):
                    return False
            elif isinstance(operand, Literal):
                if not self._is_literal(operand, value, reader):
                    return False
            elif operand.call in self._nodes or operand.call in self._stand_ins:
                if self._value_of(operand.call, operand.slot) is not value:
                    return self._explain and self.refuse(f"{named(reader)} reads another value twice")
            elif operand.call.is_optional:
                return self._solve_optional(operand.call, value, reader, goals)
            else:
                return self._produces(operand.call, operand.slot, value, reader) and self._visit(
                    operand.call, _node_of(value), goals
                )
        return self._solve_rest()

    def _solve_optional(self, call: PatternCall, value: Value | None, reader: Node, goals: Goals) -> bool:
        mark = len(self._trail)
        if self._produces(call, 0, value, reader) and self._visit(call, _node_of(value), goals):
            return True
        self._undo(mark)
        if value is None:
            return False
        self._set(self._stand_ins, call, value)
        if call.outputs[0]:
            self._set(self._values, call.outputs[0], value)
        return self._solve(((call.operands[0], value, reader), goals))

    def _solve_rest(self) -> bool:
        """Match a call that the operands of others do not lead to, at a reader of a value that it reads."""
        known = self._nodes.keys() | self._stand_ins.keys()
        missing = [call for call in self._pattern.calls if call not in known]
        for call in missing:
            value = next(self._known_operands(call), None)
            if value is None:
                continue
            for user in dict.fromkeys(use.user for use in value.uses):
                mark = len(self._trail)
                if (
                    isinstance(user, Node)
                    and user not in self._nodes.values()
                    and self._visit(call, user, None)
                ):
                    return True
                self._undo(mark)
            return self._explain and self.refuse(f"no {call!r} reads {quote(value.name)}")
        return not missing and self._finish()

    def _known_operands(self, call: PatternCall) -> Iterator[Value]:
        for operand in call.operands:
            if isinstance(operand, Variable):
                value = self._values.get(operand.name)
            elif operand is None or isinstance(operand, Literal):
                continue
            elif operand.call in self._nodes or operand.call in self._stand_ins:
                value = self._value_of(operand.call, operand.slot)
            else:
                continue
            if value is not None:
                yield value

    def _visit(self, call: PatternCall, node: Node, goals: Goals) -> bool:
        """Match a call with a node, then the goals."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return self._explain and self.refuse("there are too many ways to match the pattern")
        if not self._is_call(call, node):
            return False
        operands = list(node.inputs)
        while operands and operands[-1] is None:
            operands.pop()
        self._set(self._nodes, call, node)
        for name, output in zip(call.outputs, node.outputs, strict=False):
            if name and output is not None:
                self._set(self._values, name, output)
        mark = len(self._trail)
        if self._visit_operands(call, node, operands, goals):
            return True
        self._undo(mark)
        if not call.is_commutative or len(operands) != 2:  # ruff: ignore[magic-value-comparison]  two sides
            return False
        return self._visit_operands(call, node, operands[::-1], goals)

    def _visit_operands(
        self, call: PatternCall, node: Node, operands: list[Value | None], goals: Goals
    ) -> bool:
        formals = call.operands
        last = formals[-1] if formals else None
        if isinstance(last, Variable) and last.is_rest:
            formals = formals[:-1]
            rest = tuple(operands[len(formals) :])
            if self._rests.get(last.name, rest) != rest:
                return self._explain and self.refuse(f"*{last.name} are other operands at {named(node)}")
            if last.name not in self._rests:
                self._set(self._rests, last.name, rest)
            operands = operands[: len(formals)]
        if len(operands) > len(formals):
            return self._explain and self.refuse(
                f"{named(node)} has {len(operands)} operands, the pattern {len(formals)}"
            )
        operands += [None] * (len(formals) - len(operands))
        for pair in zip(reversed(formals), reversed(operands), strict=True):
            goals = ((*pair, node), goals)
        return self._solve(goals)

    def _finish(self) -> bool:
        """Check what only the whole match decides, and let the caller accept it."""
        if not (self._has_no_other_readers() and all(starmap(self._is_operator, self._nodes.items()))):
            return False
        if len(self._pattern.roots) > 1 and self._makes_cycle():
            return False
        named = {name: n for call, n in self._nodes.items() for name in call.outputs if name}
        bindings = Bindings(dict(self._values), dict(self._rests), named, dict(self._attributes))
        match = Match(self._nodes[self._pattern.anchor], bindings, self._rewriter)
        if not self._accept(match):
            return False
        self._accepted = match
        return True

    # checks

    def _produces(self, call: PatternCall, slot: int, value: Value | None, reader: Node) -> bool:
        """Return whether a value is that output of a node that may be the call."""
        node = None if value is None else value.node
        if value is None or node is None or node.graph is not reader.graph:
            found = f"{named(reader)} reads {_value(value)}, which no node of its graph computes"
            return self.refuse(f"{found}; the pattern has {call!r}") if self._explain else False
        if slot >= len(node.outputs) or node.outputs[slot] is not value:
            return self._explain and self.refuse(f"{quote(value.name)} is another output of {named(node)}")
        return True

    def _is_call(self, call: PatternCall, node: Node) -> bool:
        """Return whether a node calls the operator of a call, with its attributes, and no other outputs."""
        if node.op != call.op or canonical_domain(node.domain) != call.domain:
            return self._explain and self.refuse(f"the pattern has {call!r}, the model {named(node)}")
        outputs = node.outputs
        if len(outputs) == len(call.outputs) == 1 and outputs[0] is not None:
            return not call.attributes or self._has_attributes(call, node)  # most calls
        pairs = enumerate(outputs)
        if any(v is not None and v.is_read and not _is_named(call, slot) for slot, v in pairs):
            return self._explain and self.refuse(f"an output of {named(node)} is read that the pattern lacks")
        if any(_is_named(call, slot) and not _has_output(node, slot) for slot in range(len(call.outputs))):
            return self._explain and self.refuse(f"{named(node)} has fewer outputs than the pattern")
        return not call.attributes or self._has_attributes(call, node)

    def _has_attributes(self, call: PatternCall, node: Node) -> bool:
        try:
            found = attributes_of(node, self._rewriter)
        except (Unconvertible, SabirError) as error:
            return self.refuse(f"{named(node)}: {error}")
        for name, attribute in call.attributes.items():
            value = found.get(name)
            if attribute.ref:
                if attribute.ref in self._attributes and not _equal(self._attributes[attribute.ref], value):
                    return self.refuse(
                        f"{quote(attribute.ref)} is {value} at {named(node)}, and another before"
                    )
                self._set(self._attributes, attribute.ref, value)
            elif not _equal(attribute.value, value):
                wanted = attribute.value
                return self.refuse(f"{name} of {named(node)} is {value}, the pattern has {wanted}")
        return True

    def _bind(self, variable: Variable | None, value: Value | None, reader: Node) -> bool:
        if variable is None or value is None:
            if variable is None and value is None:
                return True
            if variable is None or not variable.is_optional:
                what = (
                    "reads an operand that the pattern leaves out" if variable is None else "lacks an operand"
                )
                return self._explain and self.refuse(f"{named(reader)} {what}")
            return True
        if variable.is_constant and constant_of(value) is None:
            return self._explain and self.refuse(f"${variable.name}: {quote(value.name)} is no constant")
        found = self._values.get(variable.name)
        if found is None:
            self._set(self._values, variable.name, value)
            return True
        if found is value or _are_equal_constants(found, value):
            return True
        return self._explain and self.refuse(
            f"{quote(variable.name)} is {quote(found.name)}, and {quote(value.name)} at {named(reader)}"
        )

    def _is_literal(self, literal: Literal, value: Value | None, reader: Node) -> bool:
        data = None if value is None else constant_of(value)
        if data is None:
            return self._explain and self.refuse(
                f"{named(reader)} reads {_value(value)}, which is no constant"
            )
        if _same_elements(literal.data, data):
            if value is not None and literal.name and literal.name not in self._values:
                self._set(self._values, literal.name, value)
            return True
        return self._explain and self.refuse(
            f"the constant {_value(value)} of {named(reader)} is not {literal.data.tolist()}"
        )

    def _has_no_other_readers(self) -> bool:
        """Return whether nothing outside of the match reads a value inside of it."""
        if self._shared:
            return True
        inside, outputs = set(self._nodes.values()), set(self.outputs())
        for node in inside:
            for value in node.outputs:
                if value is None or value in outputs:
                    continue
                reader = next((use.user for use in value.uses if use.user not in inside), None)
                if reader is not None:
                    what = named(reader) if isinstance(reader, Node) else "the outputs of the graph"
                    return self._explain and self.refuse(
                        f"{quote(value.name)} is inside of the pattern, and {what} read it too;"
                        " a rule that is `shared` may match it"
                    )
        return True

    def _is_operator(self, call: PatternCall, node: Node) -> bool:
        """Return whether a node of the standard's domain calls an operator, not a function of its name."""
        if call.domain or node.graph is None:
            return True
        callee = self._rewriter.callee(node)
        if isinstance(callee, Version):
            return True
        return self.refuse(
            str(callee) if isinstance(callee, SabirError) else f"{named(node)} calls a function"
        )

    def _makes_cycle(self) -> bool:
        """Return whether an operand of one output's calls depends on another output."""
        for root in self._pattern.roots:
            own = set(_variables(root))
            others = {name for other in self._pattern.roots for name in _variables(other)} - own
            values = [v for name in others for v in self._bound(name)]
            if _depends(values, {self._nodes[root]}):
                self.refuse(f"an operand of the pattern depends on {named(self._nodes[root])}")
                return True
        return False

    def _bound(self, name: str) -> Iterator[Value]:
        if name in self._values:
            yield self._values[name]
        yield from (v for v in self._rests.get(name, ()) if v is not None)

    # bindings

    def _value_of(self, call: PatternCall, slot: int) -> Value | None:
        node = self._nodes.get(call)
        return self._stand_ins[call] if node is None else node.outputs[slot]

    def _set(self, table: dict[Any, Any], key: object, value: object) -> None:
        table[key] = value
        self._trail.append((table, key))

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            table, key = self._trail.pop()
            del table[key]


def _variables(call: PatternCall) -> Iterator[str]:
    """Yield the names of the variables that a call and those before it read."""
    for operand in call.operands:
        if isinstance(operand, Variable):
            yield operand.name
        elif isinstance(operand, Result):
            yield from _variables(operand.call)


def _depends(values: Iterable[Value], nodes: Collection[Node]) -> bool:
    """Return whether one of some values depends on one of the nodes."""
    pending = [v.node for v in values if v.node is not None]
    seen = set(pending)
    while pending:
        node = pending.pop()
        if node in nodes:
            return True
        for value in node.reads():
            maker = value.node
            if maker is not None and maker not in seen:
                seen.add(maker)
                pending.append(maker)
    return False


def _accept_all(_match: Match) -> bool:
    return True


def _node_of(value: Value | None) -> Node:
    node = None if value is None else value.node
    if node is None:
        raise TypeError("no node computes this value")
    return node


def _is_named(call: PatternCall, slot: int) -> bool:
    return slot < len(call.outputs) and (len(call.outputs) == 1 or bool(call.outputs[slot]))


def _has_output(node: Node, slot: int) -> bool:
    return slot < len(node.outputs) and node.outputs[slot] is not None


def named(node: Node) -> str:
    """Return a node as messages name it: its operator, and its name or that of its first output."""
    output = next((v for v in node.outputs if v is not None), None)
    label = node.name or (output.name if output is not None else "")
    return f"{node.op} {quote(label)}"


def _value(value: Value | None) -> str:
    return "nothing" if value is None else quote(value.name)


def _equal(a: Any, b: Any) -> bool:
    """Return whether two values of attributes are the same, numbers up to rounding."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor) and _same_array(a.array(), b.array())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        first, second = cast("Sequence[Any]", a), cast("Sequence[Any]", b)
        return len(first) == len(second) and all(map(_equal, first, second))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return bool(np.isclose(a, b, rtol=_TOLERANCE, atol=0, equal_nan=True))
    return a == b


def _same_array(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


def _same_elements(wanted: Array, data: Tensor) -> bool:
    """Return whether a constant has some elements, up to rounding; one element may have any shape."""
    if data.size != wanted.size or (wanted.size != 1 and data.shape != wanted.shape):
        return False
    found = data.array()
    if found.dtype.kind in "OSU" or wanted.dtype.kind in "OSU":
        return bool(np.array_equal(found.reshape(wanted.shape), wanted))
    same = wanted.astype(found.dtype) if found.dtype.kind not in "biu" else wanted
    if "c" in {found.dtype.kind, same.dtype.kind}:
        return bool(np.allclose(found.reshape(same.shape), same, rtol=_TOLERANCE, atol=0))
    if same.size == 1:
        a, b = float(found.reshape(())), float(same.reshape(()))
        return math.isclose(a, b, rel_tol=_TOLERANCE) or (math.isnan(a) and math.isnan(b))
    return bool(
        np.allclose(
            found.astype(np.float64), same.astype(np.float64), rtol=_TOLERANCE, atol=0, equal_nan=True
        )
    )


_MOST_COMPARED = 64  # elements of constants that are compared where they are two values


def _are_equal_constants(a: Value, b: Value) -> bool:
    first, second = constant_of(a), constant_of(b)
    if first is None or second is None or not first.size == second.size <= _MOST_COMPARED:
        return False
    return _same_array(first.array(), second.array())
