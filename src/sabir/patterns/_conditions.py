"""Conditions of a rule as text: expressions over types, shapes, constants and attributes of a match.

`rank(x) == 3 and value(c) == 0.5` has the syntax and the meaning of Python: numbers, texts, lists,
comparisons, `and`, `or`, `not`, `in`, arithmetic, and the functions below. `s.axis` is an attribute of the
node that computes `s`, with its default; a name that the pattern gave to an attribute is its value.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.base import SchemaError, quote, suggest
from sabir.ir import Expr
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sabir.patterns._match import Match

_Number: TypeAlias = int | float
_MOST_CHARACTERS = 2_000
_MOST_ELEMENTS = 1 << 16  # of a constant that a condition reads
_TOLERANCE = 1e-5  # of `close`


def _rank(m: Match, name: str) -> int | None:
    return m.rank(name)


def _shape(m: Match, name: str) -> list[Any] | None:
    kind = m.type(name)
    if kind is None or kind.shape is None:
        return None
    return [str(dim) if isinstance(dim, Expr) else dim for dim in kind.shape]


def _size(m: Match, name: str) -> Any:
    kind = m.type(name)
    size = None if kind is None or kind.shape is None else kind.size
    return str(size) if isinstance(size, Expr) else size


def _dtype(m: Match, name: str) -> str | None:
    kind = m.type(name)
    return None if kind is None else kind.element.name


def _is_constant(m: Match, name: str) -> bool:
    return m.data(name) is not None


def _elements(m: Match, name: str) -> list[Any] | None:
    data = m.data(name)
    return None if data is None or data.size > _MOST_ELEMENTS else data.array().ravel().tolist()


def _value(m: Match, name: str) -> Any:
    data = m.data(name)
    return None if data is None or data.size != 1 else data.array().ravel().tolist()[0]


def _present(m: Match, name: str) -> bool:
    return m.has(name)


def _count(m: Match, name: str) -> int:
    return len(m.rest(name))


def _readers(m: Match, name: str) -> int | None:
    return m[name].read_count if m.has(name) else None


_OF_VALUES: dict[str, Callable[[Match, str], Any]] = {
    "rank": _rank, "shape": _shape, "size": _size, "dtype": _dtype, "is_constant": _is_constant,
    "elements": _elements, "value": _value, "present": _present, "count": _count, "readers": _readers,
}  # fmt: skip


def _close(a: Any, b: Any) -> bool:
    """Return whether two numbers, or two lists of them, are equal up to a relative difference of 1e-5."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    has_sizes = x.shape == y.shape or not x.shape or not y.shape
    return has_sizes and bool(np.allclose(x, y, rtol=_TOLERANCE, atol=0))


_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": abs, "min": min, "max": max, "len": len, "sum": sum, "sorted": sorted, "close": _close,
    "sqrt": math.sqrt,
}  # fmt: skip


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
    ast.Div: operator.truediv,  # pyright: ignore[reportUnknownMemberType]  typeshed has no types of it
    ast.FloorDiv: operator.floordiv,  # pyright: ignore[reportUnknownMemberType]  as the one above
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


class Condition(NamedTuple):
    """A condition; `names` are the values of the pattern, `references` the names of its attributes.

    >>> Condition.parse('rank(x) == 2', {'x'}, ()).text
    'rank(x) == 2'
    """

    text: str
    tree: ast.expr

    @classmethod
    def parse(cls, text: str, names: Collection[str], references: Collection[str]) -> Condition:
        """Read a condition; raises SchemaError for a text that is none, or that names an unknown value."""
        if len(text) > _MOST_CHARACTERS:
            raise SchemaError(
                f"{quote(text)} is no condition: it has more than {_MOST_CHARACTERS} characters"
            )
        try:
            tree = _parsed(text.strip())
            _check(tree, names, references)
        except SyntaxError as error:
            raise SchemaError(f"{quote(text)} is no condition: {error.msg}") from None
        except (RecursionError, MemoryError):
            raise SchemaError(f"{quote(text)} is no condition: it is nested too deep") from None
        except ValueError as error:
            raise SchemaError(f"{quote(text)} is no condition: {error}") from None
        return cls(" ".join(text.split()), tree)

    def require(self, match: Match) -> None:
        """Raise Unconvertible where the condition does not hold, with the values that it read."""
        reading = _Reading(match)
        try:
            holds = reading.value(self.tree)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            holds = False
        if not holds:
            found = "; ".join(
                f"{what} is {'not known' if v is None else v}" for what, v in reading.read.items()
            )
            raise Unconvertible(f"the condition {self.text} does not hold{': ' if found else ''}{found}")


def _parsed(text: str) -> ast.expr:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)  # `2and` is a number and a word to Python
        return ast.parse(text, mode="eval").body


def _check(tree: ast.AST, names: Collection[str], references: Collection[str]) -> None:
    """Raise ValueError for a part of an expression that a condition does not have."""
    match tree:
        case ast.Call():
            parts = _checked_call(tree, names)
        case ast.Attribute(value=ast.Name(id=name)):
            _check_name(name, names)
            parts = ()
        case ast.Name(id=name):
            if name not in references:
                use = "; write rank(x), shape(x), value(x) ..."
                hint = use if name in names else suggest(name, references)
                raise ValueError(f"{quote(name)} is no attribute that the pattern names{hint}")
            parts = ()
        case ast.Constant(value=int() | float() | str() | bool() | None):
            parts = ()
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not() | ast.USub()) | ast.List() | ast.Tuple():
            parts = _inside(tree)
        case ast.Subscript(slice=ast.Constant() | ast.UnaryOp()):
            parts = _inside(tree)
        case ast.BinOp(op=op) if type(op) in _BINARY:
            parts = _inside(tree)
        case ast.Compare(ops=ops) if all(type(op) in _COMPARISONS for op in ops):
            parts = _inside(tree)
        case _:
            raise ValueError(f"it has a {type(tree).__name__}, which no condition has")
    for part in parts:
        _check(part, names, references)


def _inside(tree: ast.AST) -> list[ast.expr]:
    return [n for n in ast.iter_child_nodes(tree) if isinstance(n, ast.expr)]


def _checked_call(tree: ast.Call, names: Collection[str]) -> Sequence[ast.expr]:
    """Return the arguments of a call that are expressions; raises ValueError for an unknown function."""
    match tree:
        case ast.Call(func=ast.Name(id="opset"), args=[], keywords=[]):
            return ()
        case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=name)], keywords=[]) if (
            function in _OF_VALUES
        ):
            _check_name(name, names)
            return ()
        case ast.Call(func=ast.Name(id=function), keywords=[]) if function in _PLAIN:
            return tree.args
        case ast.Call(func=ast.Name(id=function)) if function in _OF_VALUES:
            raise ValueError(f"{function} takes the name of one value of the pattern")
        case _:
            function, known = ast.unparse(tree.func), [*_OF_VALUES, *_PLAIN, "opset"]
            raise ValueError(f"{quote(function)} is no function of conditions{suggest(function, known)}")


def _check_name(name: str, names: Collection[str]) -> None:
    if name not in names:
        raise ValueError(f"the pattern has no value {quote(name)}{suggest(name, names)}")


class _Reading:
    """The evaluation of a condition over one match; `read` has the values of the match that it read."""

    def __init__(self, match: Match) -> None:
        self._match = match
        self.read: dict[str, Any] = {}

    def shown(self) -> str:
        """Return what was read, as the end of a sentence."""
        items = (f"{what} is {'not known' if v is None else v}" for what, v in self.read.items())
        return f": {'; '.join(items)}" if self.read else ""

    def value(self, tree: ast.expr) -> Any:
        """Return the value of an expression; raises TypeError where a part of it is not known."""
        match tree:
            case ast.Constant():
                return tree.value
            case ast.Name(id=name):
                return self._note(tree, self._match.attribute(name))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return self._note(tree, self._match.attributes(name)[attribute])
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._call(tree, function, arguments)
            case ast.BoolOp(op=op, values=values):
                return self._either(values) if isinstance(op, ast.Or) else all(map(self.value, values))
            case ast.UnaryOp(op=op, operand=operand):
                found = self.value(operand)
                return not found if isinstance(op, ast.Not) else -found
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](_number(self.value(left)), _number(self.value(right)))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compare(left, ops, others)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item) for item in items]
            case ast.Subscript(value=inner, slice=index):
                return self.value(inner)[self.value(index)]
            case _:
                raise TypeError

    def _either(self, values: list[ast.expr]) -> bool:
        return any(map(self.value, values))

    def _call(self, tree: ast.Call, function: str, arguments: list[ast.expr]) -> Any:
        if function == "opset":
            return self._note(tree, self._match.scope.opset("") or 0)
        if function in _PLAIN:
            return _PLAIN[function](*map(self.value, arguments))
        (name,) = arguments
        return self._note(
            tree, _OF_VALUES[function](self._match, name.id if isinstance(name, ast.Name) else "")
        )

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> bool:
        first = self.value(left)
        for op, other in zip(ops, others, strict=True):
            second = self.value(other)
            if not _COMPARISONS[type(op)](_listed(first), _listed(second)):
                return False
            first = second
        return True

    def _note(self, tree: ast.expr, value: Any) -> Any:
        shown = _listed(value)
        self.read[ast.unparse(tree)] = shown
        return shown


def _listed(value: Any) -> Any:
    return [*cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def _number(value: Any) -> _Number:
    if not isinstance(value, (int, float)):
        raise TypeError
    return value
