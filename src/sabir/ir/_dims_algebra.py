"""The algebra behind symbolic dimensions: canonical integer polynomials over tensor sizes.

An `Expr` maps monomials to nonzero integer coefficients. A monomial is a sorted tuple of atoms,
repeated for powers; an atom is a symbol (its name, a plain `str`, an integer >= 0) or a `DimCall`:
a floor division, a modulus, a minimum or a maximum that no rule here simplifies.
Every rule holds for all sizes for which the original is defined, so `N // N` may become 1.

The canonical forms of the calls:

* `n // d`: whole multiples of `d` are outside; for an integer `d` > 0 the numerator's constant is in
  (-d, 0], so `(H+1)//2` is `(H-1)//2+1`; the numerator's leading coefficient is positive where
  the sign of `d` is known; nested divisions are merged.
* `n % d`: for an integer `d` > 0 the coefficients of `n` lie in (-d/2, d/2].
* `min`, `max`: flat, without arguments that another one beats; a constant that all share is outside.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir.ir._dims_terms import (
    atom_key,
    bounds_of_call,
    bounds_of_terms,
    common_factor,
    names_in,
    term_key,
    terms_key,
    text_of_terms,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.ir._dims_terms import Atom, Bounds, Key, Monomial, Op

Known: TypeAlias = "int | Expr"

# The text of a model decides what is computed, so everything that could grow has a limit.
MAX_TERMS = 64
MAX_ARGUMENTS = 16
MAX_DEGREE = 16
MAX_DEPTH = 16
MAX_SIZE = 256
LIMIT = 2**63


class DimCall:
    """An irreducible division, modulus, minimum or maximum of canonical expressions."""

    __slots__ = ("_hash", "args", "bounds", "depth", "key", "op", "size")

    def __init__(self, op: Op, args: tuple[Known, ...]) -> None:
        self.op: Op = op
        self.args = args
        self.depth = 1 + max(arg.depth if isinstance(arg, Expr) else 0 for arg in args)
        self.size = 1 + sum(arg.size if isinstance(arg, Expr) else 1 for arg in args)
        _check(self.depth <= MAX_DEPTH, self.size <= MAX_SIZE)
        self.key: Key = (1, op, *(terms_key(terms_of(arg)) for arg in args))
        self.bounds = bounds_of_call(op, [bounds_of(arg) for arg in args])
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DimCall) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[DimCall], tuple[Op, tuple[Known, ...]]]:
        return DimCall, (self.op, self.args)  # a hash is valid in one process only


class Expr:
    """A symbolic integer: immutable, hashable, and equal to another exactly when canonically the same.

    Operators take `int` and `Expr` and return an `int` where nothing symbolic is left. They raise
    `OverflowError` for results past the size caps and `ZeroDivisionError` for a divisor of 0.
    """

    __slots__ = ("_bounds", "_hash", "depth", "size", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        """Take terms that are canonical; `symbol` and the operators create them."""
        self.terms = terms
        self._bounds: Bounds | None = None
        self._hash: int | None = None
        self.depth, self.size = 0, 0
        for monomial, coefficient in terms.items():
            _check(-LIMIT <= coefficient <= LIMIT, len(monomial) <= MAX_DEGREE)
            self.size += 1
            for atom in monomial:
                if isinstance(atom, DimCall):
                    self.size += atom.size
                    self.depth = max(self.depth, atom.depth)
        _check(len(terms) <= MAX_TERMS, self.size <= MAX_SIZE)

    @property
    def symbols(self) -> frozenset[str]:
        """Every symbol that occurs, at any depth."""
        return frozenset(names_in(atom for monomial in self.terms for atom in monomial))

    @property
    def bounds(self) -> Bounds:
        """The least and the greatest value by interval arithmetic; None where there is no limit."""
        if self._bounds is None:
            self._bounds = bounds_of_terms(self.terms)
        return self._bounds

    def substitute(self, mapping: Mapping[str, int | Expr]) -> int | Expr:
        """Return the value with symbols replaced by sizes (>= 0); other symbols stay."""
        value: Known = 0
        for monomial, coefficient in self.terms.items():
            part: Known = coefficient
            for atom in monomial:
                part *= _substitute_atom(atom, mapping)
            value += part
        return value

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Expr) and self.terms == other.terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[Expr], tuple[Mapping[Monomial, int]]]:
        return Expr, (self.terms,)  # a hash is valid in one process only

    def __neg__(self) -> int | Expr:
        return _scale(self, -1)

    def __add__(self, other: int | Expr) -> int | Expr:
        return _plus(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: int | Expr) -> int | Expr:
        return _plus(self, -other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rsub__(self, other: int) -> int | Expr:
        return _plus(-self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __mul__(self, other: int | Expr) -> int | Expr:
        return _times(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Expr) -> int | Expr:
        return floor_of(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rfloordiv__(self, other: int) -> int | Expr:
        return floor_of(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __mod__(self, other: int | Expr) -> int | Expr:
        return mod_of(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rmod__(self, other: int) -> int | Expr:
        return mod_of(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __str__(self) -> str:
        return text_of_terms(self.terms)

    def __repr__(self) -> str:
        return f"Expr({str(self)!r})"


# Wide on purpose: callers without a type checker get Python's own TypeError for other operands.
_OPERANDS: tuple[type[object], ...] = (int, Expr)


def _check(*conditions: bool) -> None:
    if not all(conditions):
        raise OverflowError("a symbolic dimension grew past the limits")


# ---------------------------------------------------------------- polynomials


def terms_of(value: Known) -> Mapping[Monomial, int]:
    """Return the terms of a value; an integer is its own constant term."""
    return value.terms if isinstance(value, Expr) else {(): value}


def _collapse(terms: Mapping[Monomial, int]) -> Known:
    kept = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    if len(kept) > 1 or (kept and () not in kept):
        return Expr(kept)
    constant = kept.get((), 0)
    _check(-LIMIT <= constant <= LIMIT)
    return constant


def _plus(a: Known, b: Known) -> Known:
    terms = dict(terms_of(a))
    for monomial, coefficient in terms_of(b).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _collapse(terms)


def _scale(a: Expr, factor: int) -> Known:
    return _collapse({monomial: coefficient * factor for monomial, coefficient in a.terms.items()})


def _times(a: Expr, b: Known) -> Known:
    if isinstance(b, int):
        return _scale(a, b)
    terms: dict[Monomial, int] = {}
    for left, c in a.terms.items():
        for right, d in b.terms.items():
            joined = tuple(sorted(left + right, key=atom_key)) if left and right else left or right
            terms[joined] = terms.get(joined, 0) + c * d
    return _collapse(terms)


def leading(value: Known) -> tuple[Monomial, int]:
    """Return the first term of a value."""
    return min(terms_of(value).items(), key=term_key)


def divide(a: Known, b: Known) -> tuple[Known, Known]:
    """Return q and r with a = q*b + r, where no term of r is a multiple of b's leading term."""
    lead, scale = leading(b)
    simple = len(terms_of(b)) == 1
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    left = dict(terms_of(a))
    while left:
        monomial = next(iter(left)) if simple else min(left, key=lambda m: term_key((m, 0)))
        coefficient = left[monomial]
        ratio = without(monomial, lead)
        if ratio is None or coefficient % scale:
            rest[monomial] = left.pop(monomial)
            continue
        quotient[ratio] = coefficient // scale
        _check(len(quotient) <= MAX_TERMS)
        for taken, count in terms_of(_collapse({ratio: coefficient // scale}) * b).items():
            left[taken] = left.get(taken, 0) - count
            if not left[taken]:
                del left[taken]
    return _collapse(quotient), _collapse(rest)


def _cancel(a: Known, b: Known) -> tuple[Known, Known, Known]:
    """Return a', b' and f with b = f*b' and a // b = a' // b'; a - f*a' is a constant in [0, f)."""
    if isinstance(b, int):  # only here is the sign known, and the constant free to be floored
        number = gcd(b, *(coefficient for monomial, coefficient in terms_of(a).items() if monomial))
        return _collapse({m: c // number for m, c in terms_of(a).items()}), b // number, number
    shared, number = common_factor([*terms_of(a).items(), *terms_of(b).items()])
    factor = _collapse({shared: number})
    return divide(a, factor)[0], divide(b, factor)[0], factor


def _substitute_atom(atom: Atom, mapping: Mapping[str, Known]) -> Known:
    if isinstance(atom, str):
        return mapping[atom] if atom in mapping else Expr({(atom,): 1})
    args = [arg.substitute(mapping) if isinstance(arg, Expr) else arg for arg in atom.args]
    if atom.op == "//":
        return floor_of(args[0], args[1])
    return mod_of(args[0], args[1]) if atom.op == "%" else extreme_of(atom.op, args)


# ---------------------------------------------------------------- division and modulus


def floor_of(a: Known, b: Known) -> Known:
    """Return a // b, rounding down."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 0:
        raise ZeroDivisionError("a symbolic dimension divided by 0")
    if leading(b)[1] < 0:
        return floor_of(-a, -b)
    whole, rest = divide(a, b)
    if rest == 0:
        return whole
    numerator, divisor, _ = _cancel(rest, b)
    return whole + _floor_reduced(numerator, divisor)


def _floor_reduced(numerator: Known, divisor: Known) -> Known:
    if isinstance(numerator, int) and isinstance(divisor, int):
        return numerator // divisor
    positive = nonnegative(divisor)
    if positive and leading(numerator)[1] < 0:
        return -1 - floor_of(-1 - numerator, divisor)
    settled = _settled_quotient(numerator, divisor)
    if settled is not None:
        return settled
    whole = 0
    if isinstance(divisor, int):
        whole = -(-terms_of(numerator).get((), 0) // divisor)
        numerator -= whole * divisor
    inner, constant = _single_call(numerator, "//")
    if inner and positive and (constant == 0 or isinstance(inner.args[1], int)):
        return whole + floor_of(inner.args[0] + inner.args[1] * constant, inner.args[1] * divisor)
    return whole + _collapse({(DimCall("//", (numerator, divisor)),): 1})


def _settled_quotient(numerator: Known, divisor: Known) -> int | None:
    """Return the quotient where the bounds leave only one."""
    low, high = bounds_of(numerator)
    if low is None:
        return None
    if isinstance(divisor, int) and high is not None and low // divisor == high // divisor:
        return low // divisor
    return 0 if low >= 0 and nonnegative(divisor - 1 - numerator) else None


def _single_call(value: Known, op: Op) -> tuple[DimCall | None, int]:
    """Return f and c where the value is exactly f + c for one call f of this kind, else None and 0."""
    terms = terms_of(value)
    constant = terms.get((), 0)
    monomials = [monomial for monomial in terms if monomial]
    if len(monomials) != 1 or len(monomials[0]) != 1 or terms[monomials[0]] != 1:
        return None, 0
    atom = monomials[0][0]
    return (atom, constant) if isinstance(atom, DimCall) and atom.op == op else (None, 0)


def mod_of(a: Known, b: Known) -> Known:
    """Return a % b with the sign of b."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if b == 0:
        raise ZeroDivisionError("a symbolic dimension modulo 0")
    if leading(b)[1] < 0:
        return -mod_of(-a, -b)
    rest = divide(a, b)[1]
    if rest == 0:
        return 0
    small, divisor, factor = _cancel(rest, b)
    return factor * _mod_reduced(small, divisor) + (rest - factor * small)


def _mod_reduced(a: Known, b: Known) -> Known:
    for shifted in (a, a + b):  # division may have left -1 % (N+1) of N % (N+1)
        settled = _settled_quotient(shifted, b)
        if settled is not None:
            return shifted - settled * b
    if isinstance(b, int):
        for monomial, coefficient in terms_of(a).items():
            inner = monomial[0] if len(monomial) == 1 else ""
            if isinstance(inner, DimCall) and inner.op == "%" and _vanishes(inner.args[1], coefficient, b):
                return mod_of(a + (inner.args[0] - _collapse({monomial: 1})) * coefficient, b)
        centred = _collapse({m: (c + (b - 1) // 2) % b - (b - 1) // 2 for m, c in terms_of(a).items()})
        if centred != a:
            return mod_of(centred, b)
    return _collapse({(DimCall("%", (a, b)),): 1})


def _vanishes(modulus: Known, coefficient: int, b: int) -> bool:
    """Return whether a modulus inside another one changes nothing: multiples of it are multiples of b."""
    return isinstance(modulus, int) and coefficient * modulus % b == 0


# ---------------------------------------------------------------- minimum and maximum


def extreme_of(op: Literal["min", "max"], values: Iterable[Known]) -> Known:
    """Return the least or the greatest of one or more values."""
    flat = {part: None for value in values for part in _flattened(op, value)}
    _check(len(flat) <= MAX_ARGUMENTS)
    kept: list[Known] = []
    for value in sorted(flat, key=lambda value: terms_key(terms_of(value))):
        if not any(_beats(op, other, value) for other in kept):
            kept = [*(other for other in kept if not _beats(op, value, other)), value]
    if len(kept) == 1:
        return kept[0]
    constants = {terms_of(value).get((), 0) for value in kept}
    shared = constants.pop() if len(constants) == 1 else 0
    args = tuple(value - shared for value in kept)
    return _collapse({(DimCall(op, args),): 1}) + shared


def _flattened(op: Op, value: Known) -> tuple[Known, ...]:
    inner, constant = _single_call(value, op)
    return tuple(arg + constant for arg in inner.args) if inner else (value,)


def _beats(op: Op, a: Known, b: Known) -> bool:
    return nonnegative(b - a if op == "min" else a - b)


# ---------------------------------------------------------------- bounds


def bounds_of(value: Known) -> Bounds:
    """Return the least and the greatest value; None where there is no limit."""
    return value.bounds if isinstance(value, Expr) else (value, value)


def nonnegative(value: Known) -> bool:
    """Return whether the value is never below 0, by its bounds."""
    low = bounds_of(value)[0]
    return low is not None and low >= 0
