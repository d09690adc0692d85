"""Replacements as text: the calls that a rule builds in the place of a match.

The names of the pattern stand for the values of the match; an operand that was left out there is left out
here, and `*rest` are the operands that it stands for. `axis: int = @a` has the value that the pattern named
`a`. A call on constants alone is evaluated: `v = Mul (w, c)` becomes a constant.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import SchemaError, quote, suggest
from sabir.ir import canonical_domain
from sabir.rewriting import constant_of, evaluated
from sabir.schema import Unconvertible, Version
from sabir.syntax import AliasText, CallText, parse_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.ir import Node, Value
    from sabir.patterns._match import Match
    from sabir.patterns._pattern import Pattern
    from sabir.rewriting import DetachedBuilder
    from sabir.syntax import NameText

_MOST_BYTES = 1 << 16  # of a constant that is evaluated from smaller ones


class TextReplacement(NamedTuple):
    """A replacement that a text describes; `outputs` are the names of what it computes for the pattern's."""

    statements: tuple[CallText | AliasText, ...]
    outputs: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, patterns: Sequence[Pattern]) -> TextReplacement:
        """Read a replacement; raises ParseError for a text that is none, SchemaError for unknown names."""
        statements = tuple(parse_calls(text))
        if not statements:
            raise SchemaError(f"{quote(text)} replaces nothing: it must compute the outputs of the pattern")
        defined: set[str] = set()
        for statement in statements:
            _check_names(statement, patterns, defined, text)
        outputs = patterns[0].output_names
        if len(outputs) == 1 and (not outputs[0] or outputs[0] not in defined):
            outputs = ("",)  # what the last statement computes
        missing = next((name for name in outputs if name and name not in defined), None)
        if missing is not None:
            raise SchemaError(f"{quote(text)} does not compute {quote(missing)}, an output of the pattern")
        return cls(statements, outputs)

    @property
    def domains(self) -> frozenset[str]:
        """The domains of the operators that it calls, without the default one."""
        return frozenset(_domains(self.statements)) - {""}

    def __call__(self, b: DetachedBuilder, m: Match) -> tuple[Value, ...]:
        """Build the calls, and return what they compute for the outputs of the pattern."""
        return _Building(b, m).run(self)


def _check_names(
    statement: CallText | AliasText | NameText, patterns: Sequence[Pattern], defined: set[str], text: str
) -> None:
    if isinstance(statement, AliasText):
        _check_names(statement.value, patterns, defined, text)
        defined.add(statement.name)
        return
    if not isinstance(statement, CallText):
        known = defined.union(*(pattern.names for pattern in patterns))
        if statement.name not in known:
            hint = suggest(statement.name, known)
            raise SchemaError(f"{quote(text)}: the pattern has no value {quote(statement.name)}{hint}")
        return
    if statement.is_optional:
        raise SchemaError(f"{quote(text)}: {statement.op}? may be in a pattern, not in a replacement")
    for attribute in statement.attributes.values():
        known = frozenset[str]().union(*(pattern.references for pattern in patterns))
        if attribute.ref and attribute.ref not in known:
            hint = suggest(attribute.ref, known)
            raise SchemaError(f"{quote(text)}: the pattern names no attribute {quote(attribute.ref)}{hint}")
    for operand in statement.operands:
        if operand is not None:
            _check_names(operand, patterns, defined, text)
    defined.update(statement.outputs)


def _domains(parts: Iterable[object]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, CallText):
            yield canonical_domain(part.domain)
            yield from _domains(part.operands)


class _Building:
    """The building of one replacement."""

    def __init__(self, b: DetachedBuilder, m: Match) -> None:
        self._b, self._m = b, m
        self._computed: dict[str, Value | None] = {}

    def run(self, replacement: TextReplacement) -> tuple[Value, ...]:
        last: Value | None = None
        for statement in replacement.statements:
            if isinstance(statement, AliasText):
                last = self._computed[statement.name] = self._named(statement.value.name)
            else:
                last = self._call(statement)
        found = tuple(self._computed[name] if name else last for name in replacement.outputs)
        present = tuple(v for v in found if v is not None)
        if len(present) < len(found):
            raise Unconvertible("the replacement is an operand that is left out")
        return present

    def _named(self, name: str) -> Value | None:
        if name in self._computed:
            return self._computed[name]
        return self._m[name] if self._m.has(name) else None

    def _call(self, call: CallText) -> Value:
        operands: list[Value | None] = []
        for operand in call.operands:
            if operand is None:
                operands.append(None)
            elif isinstance(operand, CallText):
                operands.append(self._call(operand))
            elif operand.mark == "*":
                operands += self._m.rest(operand.name)
            else:
                operands.append(self._named(operand.name))
        while operands and operands[-1] is None:
            operands.pop()
        attributes: dict[str, Any] = {
            name: self._m.attribute(a.ref) if a.ref else a for name, a in call.attributes.items()
        }
        count = max(1, len(call.outputs))
        results: Any = self._b.op(call.op, *operands, outputs=count, domain=call.domain, **attributes)
        values: tuple[Value, ...] = (results,) if count == 1 else results
        values = self._folded(values)
        self._computed.update(zip(call.outputs, values, strict=False))
        return values[0]

    def _folded(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the constants that some results of a new node are, or the results where they are none."""
        node = values[0].node
        operands = [] if node is None else [None if v is None else constant_of(v) for v in node.inputs]
        if node is None or not operands or None in operands or not self._has_room(node):
            return values
        scope = self._m.scope
        version = scope.callee(node) if scope.opset(node.domain) is not None else None
        if not isinstance(version, Version) or version.operator.random or version.find("evaluate") is None:
            return values
        found = evaluated(node, version, scope, operands)
        if found is None:
            return values
        self._b.graph.erase(node)
        return tuple(self._b.initializer(v.name, data) for v, data in zip(values, found, strict=False))

    def _has_room(self, node: Node) -> bool:
        operands = [constant_of(v) for v in node.inputs if v is not None]
        present = sum(data.nbytes for data in operands if data is not None)
        size = 0
        for value in node.outputs:
            kind = None if value is None else self._m.type_of(value)
            if kind is None or not kind.is_static:
                return False
            size += math.prod(d for d in kind.shape or () if isinstance(d, int)) * kind.element.dtype.itemsize
        return size <= max(present, _MOST_BYTES)
