"""The terms of a symbolic dimension: their order, their bounds, their text."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.ir._dims_algebra import DimCall, Expr

Op: TypeAlias = Literal["//", "%", "min", "max"]
Atom: TypeAlias = "str | DimCall"
Monomial: TypeAlias = tuple["str | DimCall", ...]
Term: TypeAlias = "tuple[Monomial, int]"
Bounds: TypeAlias = tuple[int | None, int | None]
Key: TypeAlias = tuple[object, ...]

# ---------------------------------------------------------------- order and factors


def atom_key(atom: Atom) -> Key:
    """Order symbols by name, and calls after them by their structure."""
    return (0, atom) if isinstance(atom, str) else atom.key


def term_key(term: Term) -> Key:
    """Order terms by falling degree, then by their atoms: a graded order, as division needs."""
    return (-len(term[0]), *map(atom_key, term[0]))


def terms_key(terms: Mapping[Monomial, int]) -> Key:
    """Order whole values by their terms; integers come last."""
    return tuple((term_key(term), term[1]) for term in sorted(terms.items(), key=term_key))


def without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """Return monomial / part, or None where it does not divide."""
    left = list(monomial)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def common_factor(terms: Sequence[Term]) -> Term:
    """Return the greatest single term that divides every one of these."""
    shared = terms[0][0]
    for monomial, _ in terms[1:]:
        others = list(monomial)
        both: list[Atom] = []
        for atom in shared:
            if atom in others:
                others.remove(atom)
                both.append(atom)
        shared = tuple(both)
    return shared, gcd(*(coefficient for _, coefficient in terms))


# ---------------------------------------------------------------- bounds


def bounds_of_terms(terms: Mapping[Monomial, int]) -> Bounds:
    """Add up what each term can be at least and at most."""
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in terms.items():
        ends: Bounds = (1, 1)
        for atom in monomial:
            ends = _product_bounds(ends, (0, None) if isinstance(atom, str) else atom.bounds)
        below, above = ends if coefficient > 0 else (ends[1], ends[0])
        low = None if low is None or below is None else low + below * coefficient
        high = None if high is None or above is None else high + above * coefficient
    return low, high


def bounds_of_call(op: Op, args: Sequence[Bounds]) -> Bounds:
    """Bound a call by the bounds of its arguments."""
    if op == "//":
        return _quotient_bounds(args[0], args[1])
    if op == "%":
        return _remainder_bounds(args[0], args[1])
    lows = [low for low, _ in args if low is not None]
    highs = [high for _, high in args if high is not None]
    if op == "min":
        return min(lows) if len(lows) == len(args) else None, min(highs, default=None)
    return max(lows, default=None), max(highs) if len(highs) == len(args) else None


def _product_bounds(a: Bounds, b: Bounds) -> Bounds:
    if a[0] is None or a[0] < 0:
        a, b = b, a
    (a_low, a_high), (b_low, b_high) = a, b
    if a_low is not None and a_low >= 0:
        low_by = a_low if b_low is not None and b_low >= 0 else a_high
        high_by = a_low if b_high is not None and b_high < 0 else a_high
        return _product(b_low, low_by), _product(b_high, high_by)
    if a_low is None or a_high is None or b_low is None or b_high is None:
        return None, None
    corners = (a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high)
    return min(corners), max(corners)


def _product(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _quotient_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Bound a // b; a divisor that is never negative is at least 1 wherever the quotient exists."""
    (low, high), (least, most) = a, b
    if least is None or least < 0:
        return None, None
    least = max(least, 1)
    if low is not None:
        low = low // least if low < 0 else _far_quotient(low, most)
    if high is not None:
        high = high // least if high >= 0 else _far_quotient(high, most)
    return low, high


def _far_quotient(value: int, most: int | None) -> int:
    """Return value // b for the greatest b."""
    if most is None:
        return 0 if value >= 0 else -1
    return value // max(most, 1)


def _remainder_bounds(a: Bounds, b: Bounds) -> Bounds:
    (low, high), (least, most) = a, b
    if least is None or least < 0:
        return None, None
    highest: list[int] = []
    if most is not None:
        highest.append(max(most, 1) - 1)
    if low is not None and low >= 0 and high is not None:
        highest.append(high)
    return 0, min(highest, default=None)


# ---------------------------------------------------------------- text


def text_of_terms(terms: Mapping[Monomial, int]) -> str:
    """Return the canonical text of these terms: positive terms, negative terms, then the constant."""
    symbol = _only_symbol(terms)
    if symbol is not None:
        return symbol
    ordered = sorted(((m, c) for m, c in terms.items() if m), key=_print_key)
    constant = terms.get((), 0)
    if constant:
        first = constant > 0 and ordered[0][1] < 0  # 4-N reads better than -N+4
        ordered.insert(0 if first else len(ordered), ((), constant))
    head = _term_text(ordered[0], head=True)
    return head + "".join(_term_text(term, head=False) for term in ordered[1:])


def _only_symbol(terms: Mapping[Monomial, int]) -> str | None:
    """Return the symbol that the terms consist of, as nearly all do; None for others."""
    if len(terms) != 1:
        return None
    [(monomial, coefficient)] = terms.items()
    alone = coefficient == 1 and len(monomial) == 1
    return monomial[0] if alone and isinstance(monomial[0], str) else None


def _print_key(term: Term) -> Key:
    return (term[1] < 0, *term_key(term))


def _term_text(term: Term, *, head: bool) -> str:
    monomial, coefficient = term
    sign = "-" if coefficient < 0 else "" if head else "+"
    size = abs(coefficient)
    # Multiplication, division and modulus bind alike, and a leading minus binds closer than all.
    alone = len(monomial) == 1 and size == 1 and not (head and sign)
    factors = [_atom_text(atom) if alone else _tight(atom) for atom in monomial]
    return sign + "*".join(factors if monomial and size == 1 else [str(size), *factors])


def _atom_text(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    if atom.op in {"//", "%"}:
        return atom.op.join(map(_operand_text, atom.args))
    # The canonical order puts an integer last, where min reads well; max reads well with it first.
    args = atom.args if atom.op == "min" else sorted(atom.args, key=lambda arg: not isinstance(arg, int))
    return f"{atom.op}({','.join(map(str, args))})"


def _tight(atom: Atom) -> str:
    """Return the text of an atom next to any operator, in parentheses where it needs them."""
    text = _atom_text(atom)
    return text if isinstance(atom, str) or atom.op in {"min", "max"} else f"({text})"


def _operand_text(value: int | Expr) -> str:
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    [(monomial, coefficient), *more] = value.terms.items()
    if more or coefficient != 1 or len(monomial) != 1:
        return f"({value})"
    return _tight(monomial[0])


def names_in(atoms: Iterable[Atom]) -> set[str]:
    """Return every symbol in these atoms."""
    found: set[str] = set()
    for atom in atoms:
        found.update({atom} if isinstance(atom, str) else _names_in_call(atom))
    return found


def _names_in_call(call: DimCall) -> set[str]:
    args = [arg for arg in call.args if not isinstance(arg, int)]
    return {name for arg in args for name in arg.symbols}
