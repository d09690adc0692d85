"""Calls as patterns and replacements have them: nested, named, and with marks at names and operators.

    y = Mul (x, s = Sigmoid (x))

`$w` is a constant, `b?` may be left out, `*rest` are all further operands, and `Cast? (x)` is a call that may
be missing. A statement may also be a name alone, `y = x`. All else is the text syntax of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sabir.base import run_with_limits
from sabir.syntax._read_attributes import read_attributes
from sabir.syntax._read_graph import GraphParser
from sabir.syntax._tokens import Cursor
from sabir.syntax._words import LETTERS

if TYPE_CHECKING:
    from sabir.base import Limits
    from sabir.ir import Attribute

Mark = Literal["", "$", "*"]
_MARKS: tuple[Mark, ...] = ("$", "*")


class NameText(NamedTuple):
    """A name of a value, with the mark before it; `is_optional` says that `?` follows it.

    >>> parse_calls('Clip (x, $low?)')[0].operands[1]
    NameText(name='low', mark='$', is_optional=True)
    """

    name: str
    mark: Mark = ""
    is_optional: bool = False


class CallText(NamedTuple):
    """A call; an operand that is left out is None. `is_optional` says that `?` follows the operator.

    >>> parse_calls('c = Cast? <to = 1> (x)')[0].is_optional
    True
    """

    domain: str
    op: str
    attributes: dict[str, Attribute]
    operands: tuple[OperandText | None, ...]
    is_optional: bool = False
    outputs: tuple[str, ...] = ()


OperandText: TypeAlias = NameText | CallText


class AliasText(NamedTuple):
    """A statement that names a value which is there: `y = x`, or `x` alone with the name ''.

    >>> parse_calls('y = x')[0].name
    'y'
    """

    name: str
    value: NameText


def parse_calls(text: str, *, limits: Limits | None = None) -> list[CallText | AliasText]:
    """Return the statements of a pattern or a replacement; raises ParseError, which says where.

    >>> (call,) = parse_calls('y = Mul ($c, s = Sigmoid (x))')
    >>> call.outputs, call.operands[0], call.operands[1].outputs
    (('y',), NameText(name='c', mark='$', is_optional=False), ('s',))
    """
    return run_with_limits(limits, _statements, text)


def _statements(text: str) -> list[CallText | AliasText]:
    cursor = Cursor(text)
    found: list[CallText | AliasText] = []
    while cursor.tokens[cursor.at]:
        found.append(_statement(cursor))
    return found


def _statement(cursor: Cursor) -> CallText | AliasText:
    names: list[str] = []
    if cursor.tokens[cursor.at + 1] in {",", "="}:
        names.append(cursor.name("the name of a value"))
        while cursor.skip(","):
            names.append(cursor.name("the name of a value"))
        cursor.expect("=", "a call is written `y = Op (x)`")
    start = cursor.at
    operand = _operand(cursor)
    if isinstance(operand, CallText):
        if operand.outputs and names:
            raise cursor.error("this call has two names", start)
        return operand._replace(outputs=tuple(names)) if names else operand
    if operand.mark or operand.is_optional or len(names) > 1:
        raise cursor.error("a statement is a call, `y = Op (x)`, or another name of a value, `y = x`", start)
    return AliasText(names[0] if names else "", operand)


def _operand(cursor: Cursor) -> OperandText:
    """Read a name or a call."""
    for mark in _MARKS:
        if cursor.skip(mark):
            return NameText(cursor.name("the name of a value"), mark, cursor.skip("?"))
    following = cursor.tokens[cursor.at + 1]
    if following == "=":
        name = cursor.name("the name of a value")
        cursor.at += 1
        return _call(cursor, (name,))
    if following in {"(", "<", "."} or (following == "?" and cursor.tokens[cursor.at + 2] in {"(", "<"}):
        return _call(cursor, ())
    return NameText(cursor.name("a name or a call"), "", cursor.skip("?"))


def _call(cursor: Cursor, outputs: tuple[str, ...]) -> CallText:
    cursor.enter("calls")
    path = [cursor.name("an operator")]
    while cursor.skip("."):
        path.append(cursor.name("an operator"))
    is_optional = cursor.skip("?")
    attributes: dict[str, Attribute] = {}
    if cursor.tokens[cursor.at] == "<":
        attributes = read_attributes(cursor, GraphParser(cursor).graph)
    cursor.expect("(", "the operands are in parentheses, even if there are none")
    operands = _operands(cursor)
    cursor.expect(")", "operands are names or calls, separated by commas")
    if not attributes and cursor.tokens[cursor.at] == "<":
        attributes = read_attributes(cursor, GraphParser(cursor).graph)
    cursor.leave()
    return CallText(".".join(path[:-1]), path[-1], attributes, operands, is_optional, outputs)


def _operands(cursor: Cursor) -> tuple[OperandText | None, ...]:
    found: list[OperandText | None] = []
    while True:
        word = cursor.tokens[cursor.at]
        if word == ",":
            found.append(None)
        elif word[:1] in LETTERS or word in _MARKS or word[:1] == '"':
            found.append(_operand(cursor))
        else:
            return tuple(found)
        if not cursor.skip(","):
            return tuple(found)
