"""Patterns: calls of operators in calls of operators, written as a text.

`Transpose(inner = Transpose(x))` matches a Transpose whose operand is the result of another. A name stands
for any value, `$name` for a constant with its data. A name before `=` gives access to the node. Operands that
the text does not list must be left out. Operators such as Add and Mul match with their operands in either
order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sabir.base import SchemaError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN = re.compile(r"\s*([A-Za-z_$][A-Za-z0-9_]*|[(),=])")
COMMUTATIVE = frozenset({"Add", "Mul", "Min", "Max", "And", "Or", "Xor", "Equal"})


class Leaf(NamedTuple):
    """Any value, a constant if `is_constant`; it is bound to `name`."""

    name: str
    is_constant: bool = False


class Pattern(NamedTuple):
    """A call of an operator of the default domain; the node is bound to `name`.

    >>> Pattern.parse('Relu(inner = Relu(x))').op
    'Relu'
    """

    op: str
    operands: tuple[Operand, ...]
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern; raises SchemaError for a text that is none."""
        tokens = _TOKEN.findall(text)
        if "".join(tokens) != re.sub(r"\s", "", text):
            raise SchemaError(f"{quote(text)} is no pattern: it has characters that no pattern has")
        found, rest = _operand(tokens, text)
        if rest or not isinstance(found, Pattern):
            raise SchemaError(f"{quote(text)} is no pattern: it must be one call of an operator")
        return found


Operand: TypeAlias = Pattern | Leaf


def _operand(tokens: Sequence[str], text: str, name: str = "") -> tuple[Operand, Sequence[str]]:
    """Return the operand at the start of some tokens, and the tokens after it."""
    head, *rest = tokens or [""]
    if not head or head in "(),=":
        raise SchemaError(f"{quote(text)} is no pattern: a name is missing before {quote(' '.join(tokens))}")
    if rest[:1] == ["="]:
        return _operand(rest[1:], text, head)
    if rest[:1] != ["("]:
        return Leaf(head.removeprefix("$"), head.startswith("$")), rest
    operands: list[Operand] = []
    rest = rest[1:]
    while rest[:1] != [")"]:
        operand, rest = _operand(rest, text)
        operands.append(operand)
        if rest[:1] == [","]:
            rest = rest[1:]
        elif rest[:1] != [")"]:
            raise SchemaError(f"{quote(text)} is no pattern: a bracket is not closed")
    return Pattern(head, tuple(operands), name), rest[1:]
