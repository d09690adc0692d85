"""Patterns: what calls of operators look like, as facts that a matcher reads.

A pattern comes from a text or from a Python function. `Mul (x, s = Sigmoid (x))` matches a Mul whose other
operand is the Sigmoid of the first. A name that no call computes stands for any value, `$w` for a constant,
`b?` for an operand that may be left out, `*rest` for all further operands. `Cast? (x)` also matches where the
Cast is missing. A Constant, or an array in a Python function, matches a constant of the same elements, of
one element in any shape. An attribute with a value must have it; `axis: int = @a` gives the value a name.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from sabir.base import SchemaError, quote
from sabir.ir import Builder, Tensor, Value, canonical_domain
from sabir.schema import as_results
from sabir.syntax import AliasText, CallText, NameText, parse_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.ir import Array, Attribute, Node

COMMUTATIVE = frozenset({"Add", "Mul", "Min", "Max", "Sum", "And", "Or", "Xor", "Equal"})
_MOST_CALLS = 100  # the matcher visits them by recursion
_DATA = frozenset({"value", "value_int", "value_ints", "value_float", "value_floats"})


class Variable(NamedTuple):
    """A value that the pattern does not compute; `is_rest` says that it stands for all further operands."""

    name: str
    is_constant: bool = False
    is_optional: bool = False
    is_rest: bool = False


class Literal(NamedTuple):
    """A constant with these elements, up to rounding."""

    data: Array
    name: str = ""


class Result(NamedTuple):
    """An output of a call of the pattern."""

    call: PatternCall
    slot: int


Operand: TypeAlias = Variable | Literal | Result


@dataclass(frozen=True, slots=True, eq=False)
class PatternCall:
    """A call that a pattern describes. `outputs` are names, empty for an output without one."""

    domain: str
    op: str
    attributes: Mapping[str, Attribute]
    operands: tuple[Operand | None, ...]
    outputs: tuple[str, ...]
    is_optional: bool = False

    @property
    def is_commutative(self) -> bool:
        """Whether the operands may come in either order."""
        return len(self.operands) == 2 and not self.domain and self.op in COMMUTATIVE  # ruff: ignore[magic-value-comparison]  two sides

    def __repr__(self) -> str:
        return f"{self.domain}{'.' if self.domain else ''}{self.op}"


@dataclass(frozen=True, eq=False)
class Pattern:
    """Calls that belong together; `outputs` are what they compute for others, in the order of the text.

    >>> Pattern.parse('Relu(inner = Relu(x))').anchor.op
    'Relu'
    """

    calls: tuple[PatternCall, ...]
    outputs: tuple[Result, ...]
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern; raises ParseError for a text with errors, SchemaError for one without a meaning."""
        return _Reader(text).pattern()

    @classmethod
    def build(cls, function: Callable[..., Any]) -> Pattern:
        """Return the pattern that a Python function describes.

        It takes a builder, as `lambda b, x: b.Relu(b.Relu(x))`, and the variables; `*rest` stands for all
        further operands. `b.optional("Cast", x)` is a call that may be missing. It returns the output, or a
        tuple of them. Raises SchemaError for a function that returns something else.
        """
        return _built(function)

    @property
    def anchor(self) -> PatternCall:
        """The call at which the search begins: that of the last output."""
        return self.outputs[-1].call

    @cached_property
    def roots(self) -> tuple[PatternCall, ...]:
        """The calls that compute the outputs."""
        return tuple(dict.fromkeys(result.call for result in self.outputs))

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(result.call.outputs[result.slot] for result in self.outputs)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all values that the pattern has."""
        operands = (v for call in self.calls for v in call.operands)
        found = {v.name for v in operands if isinstance(v, (Variable, Literal))}
        return frozenset(found.union(*(call.outputs for call in self.calls)) - {""})

    @cached_property
    def references(self) -> frozenset[str]:
        """The names that the pattern gives to values of attributes."""
        return frozenset(a.ref for call in self.calls for a in call.attributes.values() if a.ref)

    @cached_property
    def operators(self) -> frozenset[str]:
        """The operators that every match has."""
        return frozenset(call.op for call in self.calls if not call.is_optional)

    @cached_property
    def needed(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The operators that compute operands of the anchor, each with those that compute its operands."""
        return tuple((call.op, frozenset(c.op for c in _makers(call))) for call in _makers(self.anchor))

    def may_match(self, node: Node) -> bool:
        """Return whether the operators before a node are those that the pattern needs; few are."""
        if not self.needed:
            return True
        makers = _makers_of(node)
        for op, below in self.needed:
            for maker in makers:
                if maker.op == op and (not below or below <= _operators_before(maker)):
                    break
            else:
                return False
        return True

    def __repr__(self) -> str:
        return f"<Pattern {self.text or ' '.join(map(repr, self.calls))}>"


def _makers(call: PatternCall) -> list[PatternCall]:
    """Return the calls, but for optional ones, that compute operands of a call."""
    return [o.call for o in call.operands if isinstance(o, Result) and not o.call.is_optional]


def _operators_before(node: Node) -> set[str]:
    return {maker.op for maker in _makers_of(node)}


def _makers_of(node: Node) -> list[Node]:
    return [maker for v in node.inputs if v is not None and (maker := v.node) is not None]


def _checked(calls: Sequence[PatternCall], outputs: Sequence[Result], text: str) -> Pattern:
    """Return the pattern of some calls; raises SchemaError where it has no meaning."""
    shown = quote(text)
    if not outputs:
        raise SchemaError(f"{shown} is no pattern: it must have a call whose result no other call reads")
    if len(calls) > _MOST_CALLS:
        raise SchemaError(f"{shown} is no pattern: it has more than {_MOST_CALLS} calls")
    for call in calls:
        if any(attribute.graphs for attribute in call.attributes.values()):
            raise SchemaError(f"{shown} is no pattern: {call!r} has a subgraph, which no pattern matches")
        if call.is_optional and not (
            call.operands and len(call.outputs) == 1 and _is_value(call.operands[0])
        ):
            raise SchemaError(f"{shown} is no pattern: {call!r}? must have one output and an operand")
        if any(isinstance(o, Variable) and o.is_rest for o in call.operands[:-1]):
            raise SchemaError(f"{shown} is no pattern: `*` may only be at the last operand of {call!r}")
    found = Pattern(tuple(calls), tuple(outputs), text)
    if len(found.outputs) < sum(len([n for n in r.outputs if n]) or 1 for r in found.roots):
        raise SchemaError(
            f"{shown} is no pattern: a call that computes an output may not be read inside of it"
        )
    if any(root.is_optional for root in found.roots):
        raise SchemaError(f"{shown} is no pattern: the call that computes its output may not be optional")
    if found.names & found.references:
        name = min(found.names & found.references)
        raise SchemaError(f"{shown} is no pattern: {quote(name)} names a value and an attribute")
    if not _is_connected(found):
        raise SchemaError(f"{shown} is no pattern: some of its calls share no value with the others")
    return found


def _is_value(operand: Operand | None) -> bool:
    return isinstance(operand, Result) or (isinstance(operand, Variable) and not operand.is_rest)


def _is_connected(pattern: Pattern) -> bool:
    """Return whether shared values lead from the anchor to all calls."""
    reached, shared = {pattern.anchor}, set[object]()
    grows = True
    while grows:
        before = len(reached), len(shared)
        for call in pattern.calls:
            keys = {k for o in call.operands if (k := _key(o)) is not None}
            if call in reached or call in shared or keys & shared:
                reached.add(call)
                shared |= keys
        grows = (len(reached), len(shared)) != before
    return len(reached) == len(pattern.calls)


def _key(operand: Operand | None) -> object:
    match operand:
        case Variable(name=name, is_rest=False):
            return name
        case Result(call=call):
            return call
        case _:
            return None


class _Reader:
    """Reads the text of a pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._calls: list[PatternCall] = []
        self._computed: dict[str, Operand] = {}
        self._variables: dict[str, Variable] = {}
        self._read: set[Result] = set()

    def pattern(self) -> Pattern:
        for statement in parse_calls(self._text):
            if isinstance(statement, AliasText):
                raise self._error("a pattern has calls alone")
            self._call(statement)
        read = {(id(r.call), r.slot) for r in self._read}
        outputs = [
            Result(call, slot)
            for call in self._calls
            for slot in range(len(call.outputs))
            if (id(call), slot) not in read and (call.outputs[slot] or len(call.outputs) == 1)
        ]
        return _checked(self._calls, outputs, self._text)

    def _call(self, call: CallText) -> Operand:
        operands = tuple(None if o is None else self._operand(o) for o in call.operands)
        if call.op == "Constant" and not canonical_domain(call.domain):
            names = call.outputs or ("",)
            return self._define(names, [Literal(_data_of(call, self._text), names[0])])
        made = PatternCall(
            canonical_domain(call.domain), call.op, call.attributes, operands, call.outputs or ("",),
            call.is_optional,
        )  # fmt: skip
        self._calls.append(made)
        return self._define(made.outputs, [Result(made, slot) for slot in range(len(made.outputs))])

    def _define(self, names: Sequence[str], results: Sequence[Operand]) -> Operand:
        for name, result in zip(names, results, strict=True):
            if name in self._computed or name in self._variables:
                raise self._error(f"{quote(name)} is computed where it already has a meaning")
            if name:
                self._computed[name] = result
        return results[0]

    def _operand(self, operand: NameText | CallText) -> Operand:
        found = self._call(operand) if isinstance(operand, CallText) else self._named(operand)
        if isinstance(found, Result):
            self._read.add(found)
        return found

    def _named(self, text: NameText) -> Operand:
        computed = self._computed.get(text.name)
        if computed is not None:
            if text.mark or text.is_optional:
                raise self._error(f"{quote(text.name)} is a result: marks are for other values")
            return computed
        made = Variable(text.name, text.mark == "$", text.is_optional, text.mark == "*")
        found = self._variables.setdefault(text.name, made)
        if found != made:
            raise self._error(f"{quote(text.name)} has different marks in two places")
        return found

    def _error(self, problem: str) -> SchemaError:
        return SchemaError(f"{quote(self._text)} is no pattern: {problem}")


def _data_of(call: CallText, text: str) -> Array:
    given = [a for name, a in call.attributes.items() if name in _DATA and not a.ref]
    if len(given) != 1 or call.operands:
        raise SchemaError(f"{quote(text)} is no pattern: a Constant has one value, of numbers")
    value = given[0].value
    return np.asarray(value.array() if isinstance(value, Tensor) else value)


class PatternBuilder(Builder):
    """The builder that a Python function gets which describes a pattern: any operator may be called.

    >>> Pattern.build(lambda b, x: b.Relu(b.optional('Cast', x))).calls
    (Cast, Relu)
    """

    def __init__(self) -> None:
        super().__init__(check=False)
        self.optional_nodes: set[Node] = set()

    def optional(self, op: str, /, *operands: Value, domain: str = "", **attributes: Any) -> Value:
        """Append a call that may be missing: the pattern then has the first operand in its place."""
        result = self.op(op, *operands, domain=domain, **attributes)
        if result.node is not None:
            self.optional_nodes.add(result.node)
        return result


def _built(function: Callable[..., Any]) -> Pattern:
    b, name = PatternBuilder(), getattr(function, "__name__", "the function")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise SchemaError(f"{name} describes no pattern: its first parameter is the builder")
    kinds = {p.name: Variable(p.name, is_rest=p.kind is p.VAR_POSITIONAL) for p in parameters[1:]}
    values = {name: Value(name) for name in kinds}
    found: Sequence[object] = as_results(function(b, *values.values()))
    calls = dict(_calls_of(b, {values[name]: kind for name, kind in kinds.items()}))
    outputs: list[Result] = []
    for value in found:
        if not isinstance(value, Value) or value.node not in calls:
            raise SchemaError(f"{name} describes no pattern: it must return what a call computes")
        outputs.append(Result(calls[value.node], value.node.outputs.index(value)))
    return _checked(tuple(calls.values()), outputs, name)


def _calls_of(b: PatternBuilder, variables: Mapping[Value, Variable]) -> Iterator[tuple[Node, PatternCall]]:
    made: dict[Node, PatternCall] = {}
    for node in b.graph:
        operands = tuple(_operand_of(v, made, variables) for v in node.inputs)
        call = PatternCall(
            canonical_domain(node.domain), node.op, node.attributes, operands,
            tuple("" if v is None else v.name for v in node.outputs), node in b.optional_nodes,
        )  # fmt: skip
        made[node] = call
        yield node, call


def _operand_of(
    value: Value | None, made: Mapping[Node, PatternCall], variables: Mapping[Value, Variable]
) -> Operand | None:
    if value is None:
        return None
    if value.node is not None:
        return Result(made[value.node], value.node.outputs.index(value))
    if value in variables:
        return variables[value]
    data = value.constant
    if not isinstance(data, Tensor):
        raise SchemaError(f"{quote(value.name)} is no variable of the pattern")
    return Literal(data.array())
