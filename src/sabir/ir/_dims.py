"""Tensor dimensions: an `int`, a symbolic `Expr` over tensor sizes, or None where nothing is known.

The functions here take any dimension and return None for what cannot be known or would exceed the size
limits; `Expr` itself has operators for values that are known. `str` and `parse_dim` are inverse for
expressions whose symbols are identifiers. Any other name round-trips only when it is alone and
is not itself a well-formed expression, as the symbol named "3" is; `read_dim` is for texts in files.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from math import gcd
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir.ir._dims_algebra import (
    LIMIT,
    DimCall,
    Expr,
    bounds_of,
    divide,
    extreme_of,
    floor_of,
    mod_of,
    nonnegative,
    terms_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable

__all__ = [
    "Dim",
    "Expr",
    "above_one",
    "add",
    "ceil_div",
    "dim_max",
    "dim_min",
    "exact_quotient",
    "floor_div",
    "is_capped",
    "is_nonnegative",
    "is_one",
    "known_equal",
    "lower_bound",
    "mod",
    "mul",
    "parse_dim",
    "product",
    "read_dim",
    "sub",
    "symbol",
    "total",
    "trunc_div",
    "upper_bound",
]

Dim: TypeAlias = int | Expr | None


def symbol(name: str) -> Expr:
    """Return the dimension with this name: some integer >= 0.

    >>> print(2 * symbol('N') + 1)
    2*N+1
    """
    if not name:
        raise ValueError("a symbolic dimension needs a name")
    return Expr({(name,): 1})


# ---------------------------------------------------------------- arithmetic that absorbs the unknown


def add(a: Dim, b: Dim) -> Dim:
    """Return a + b."""
    if type(a) is int and type(b) is int:
        return _capped(a + b)
    if a is None or b is None:
        return None
    try:
        return a + b
    except OverflowError:
        return None


def sub(a: Dim, b: Dim) -> Dim:
    """Return a - b."""
    if type(a) is int and type(b) is int:
        return _capped(a - b)
    if a is None or b is None:
        return None
    try:
        return a - b
    except OverflowError:
        return None


def mul(a: Dim, b: Dim) -> Dim:
    """Return a * b; 0 times anything is 0."""
    if type(a) is int and type(b) is int:
        return _capped(a * b)
    if a == 0 or b == 0:
        return 0
    if a is None or b is None:
        return None
    try:
        return a * b
    except OverflowError:
        return None


def floor_div(a: Dim, b: Dim) -> Dim:
    """Return a // b rounded down; None for a divisor of 0."""
    return _divided(floor_of, a, b)


def mod(a: Dim, b: Dim) -> Dim:
    """Return a % b with the sign of b, as in Python; None for a divisor of 0."""
    return _divided(mod_of, a, b)


def trunc_div(a: Dim, b: Dim) -> Dim:
    """Return a / b rounded toward zero, as ONNX divides integers; None where signs are unknown."""
    if isinstance(a, int) and isinstance(b, int) and b:
        size = abs(a) // abs(b)
        return _capped(size if (a < 0) == (b < 0) else -size)
    return floor_div(a, b) if is_nonnegative(a) and is_nonnegative(b) else None


def ceil_div(a: Dim, b: Dim) -> Dim:
    """Return a / b rounded up; None for a divisor of 0."""
    if is_nonnegative(b):
        return floor_div(sub(add(a, b), 1), b)
    return sub(0, floor_div(sub(0, a), b))


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of all of these; 1 for none."""
    value: Dim = 1
    for dim in dims:
        value = mul(value, dim)
    return value


def total(dims: Iterable[Dim]) -> Dim:
    """Return the sum of all of these; 0 for none."""
    value: Dim = 0
    for dim in dims:
        value = add(value, dim)
    return value


def dim_min(first: Dim, *rest: Dim) -> Dim:
    """Return the least of these."""
    return _extreme("min", (first, *rest))


def dim_max(first: Dim, *rest: Dim) -> Dim:
    """Return the greatest of these."""
    return _extreme("max", (first, *rest))


def exact_quotient(a: Dim, b: Dim) -> Dim:
    """Return the polynomial q with a = q*b, where there is one; Reshape's -1 means it."""
    if a is None or b is None or b == 0:
        return None
    try:
        quotient, rest = divide(a, b)
    except OverflowError:
        return None
    return quotient if rest == 0 else None


def _capped(value: int) -> int | None:
    return value if -LIMIT <= value <= LIMIT else None


def _divided(rule: Callable[[int | Expr, int | Expr], int | Expr], a: Dim, b: Dim) -> Dim:
    if a is None or b is None or b == 0:
        return None
    try:
        value = rule(a, b)
    except OverflowError:
        return None
    return _capped(value) if isinstance(value, int) else value


def _extreme(op: Literal["min", "max"], dims: tuple[Dim, ...]) -> Dim:
    known = [dim for dim in dims if dim is not None]
    if len(known) < len(dims):
        return None
    try:
        return extreme_of(op, known)
    except OverflowError:
        return None


# ---------------------------------------------------------------- what is known


def lower_bound(dim: Dim) -> int | None:
    """Return a value that the dimension is never below, where interval arithmetic finds one."""
    return None if dim is None else bounds_of(dim)[0]


def upper_bound(dim: Dim) -> int | None:
    """Return a value that the dimension is never above, where interval arithmetic finds one."""
    return None if dim is None else bounds_of(dim)[1]


def is_nonnegative(dim: Dim) -> bool:
    """Return whether the dimension is provably >= 0."""
    return dim is not None and nonnegative(dim)


def known_equal(a: Dim, b: Dim) -> bool | None:
    """Return whether the two are equal for all sizes, or for none; None where neither is proved."""
    if a is None or b is None:
        return None
    if a == b:
        return True
    if any(isinstance(n, int) and n <= 1 and _is_above_one(d) for n, d in ((a, b), (b, a))):
        return False
    difference = sub(a, b)
    if difference is None:
        return None
    low, high = bounds_of(difference)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return False
    terms = terms_of(difference)
    step = gcd(*(coefficient for monomial, coefficient in terms.items() if monomial))
    return False if step and terms.get((), 0) % step else None


_ABOVE_ONE: ContextVar[frozenset[str]] = ContextVar(
    "symbols that stand for sizes above 1", default=frozenset[str]()
)


@contextmanager
def above_one(symbols: Collection[str]) -> Generator[None]:
    """Let these symbols stand for sizes above 1 while the context lasts; `known_equal` knows it.

    >>> n = symbol('n')
    >>> with above_one({'n'}):
    ...     is_one(n)
    False
    """
    token = _ABOVE_ONE.set(frozenset(symbols))
    try:
        yield
    finally:
        _ABOVE_ONE.reset(token)


def is_one(dim: Dim) -> bool | None:
    """Return whether the dimension is 1, None where that is not known.

    >>> is_one(1), is_one(symbol('n') + 2), is_one(symbol('n'))
    (True, False, None)
    """
    return known_equal(dim, 1)


def is_capped(least: Dim, dim: Dim) -> bool:
    """Return whether a dimension is the least of another one and of numbers above 1, as a slice of rows has.

    Then both are 1, or none is.

    >>> n = symbol('n')
    >>> is_capped(dim_min(n, 512), n), is_capped(dim_min(n, 1), n), is_capped(n, n)
    (True, False, False)
    """
    if not isinstance(least, Expr) or len(least.terms) != 1:
        return False
    ((monomial, coefficient),) = least.terms.items()
    (atom, *others) = monomial
    if others or coefficient != 1 or not isinstance(atom, DimCall) or atom.op != "min":
        return False
    rest = [arg for arg in atom.args if arg != dim]
    return len(rest) < len(atom.args) and all(isinstance(arg, int) and arg > 1 for arg in rest)


def _is_above_one(dim: Dim) -> bool:
    return isinstance(dim, Expr) and any(dim == symbol(name) for name in _ABOVE_ONE.get() & dim.symbols)


# ---------------------------------------------------------------- text

_LONGEST = 2_000
_DEEPEST = 64
_TOKEN = re.compile(r"\s*([0-9]+|[^\W\d]\w*|//|[-+*%(),])")


def parse_dim(text: str) -> int | Expr:
    """Read an expression as `str` prints it; any other text, but an empty one, is a symbol's name.

    >>> n = parse_dim('2*N + 1')
    >>> print(n, n - 1, n.substitute({'N': 3}))
    2*N+1 2*N 7
    """
    tokens = _tokens(text)
    if tokens is None:
        return symbol(text)
    try:
        value = _Parser(tokens).whole()
    except (_Malformed, OverflowError, ZeroDivisionError):
        return symbol(text)
    return symbol(text) if isinstance(value, int) and _capped(value) is None else value


def read_dim(text: str) -> int | Expr:
    """Read a dimension's text from a file: an expression only if it prints as that text again.

    Any other text is a symbol's name, a number too, so that a save writes the file's text again.

    >>> read_dim('N + 1')
    Expr('N+1')
    """
    value = parse_dim(text)
    # blanks inside do not matter; any other white space is part of a name
    same = isinstance(value, Expr) and str(value).replace(" ", "") == text.strip(" ").replace(" ", "")
    return value if same else symbol(text)


class _Malformed(Exception):
    """The text is no expression."""


def _tokens(text: str) -> list[str] | None:
    if len(text) > _LONGEST:
        return None
    found: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        found.append(match[1])
        at = match.end()
    return found


class _Parser:
    """Recursive descent with Python's precedences: sums, then products, then a leading minus."""

    __slots__ = ("_at", "_depth", "_tokens")

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._at = self._depth = 0

    def whole(self) -> int | Expr:
        value = self._sum()
        if self._peek():
            raise _Malformed
        return value

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise _Malformed

    def _sum(self) -> int | Expr:
        value = self._product()
        while self._peek() in {"+", "-"}:
            value = value + self._product() if self._take() == "+" else value - self._product()
        return value

    def _product(self) -> int | Expr:
        value = self._signed()
        while self._peek() in {"*", "//", "%"}:
            operator, right = self._take(), self._signed()
            if operator == "*":
                value *= right
            else:
                value = value // right if operator == "//" else value % right
        return value

    def _signed(self) -> int | Expr:
        negative = False
        while self._peek() == "-":
            self._take()
            negative = not negative
        value = self._primary()
        return -value if negative else value

    def _primary(self) -> int | Expr:
        word = self._take()
        if word.isascii() and word.isdigit():
            return int(word)
        if word == "(":
            return self._nested()[0]
        if word in {"min", "max"} and self._peek() == "(":
            self._take()
            return extreme_of("min" if word == "min" else "max", self._nested(many=True))
        if not word.isidentifier():
            raise _Malformed
        return symbol(word)

    def _nested(self, *, many: bool = False) -> list[int | Expr]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Malformed
        values = [self._sum()]
        while many and self._peek() == ",":
            self._take()
            values.append(self._sum())
        self._expect(")")
        self._depth -= 1
        return values
