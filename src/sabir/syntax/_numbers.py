"""Decimal literals to numbers, many at a time, each rounded once to the nearest value of its type.

They are a list of words, which may be no numbers, or one string of numbers with commas between.
"""

from __future__ import annotations

import math
from ctypes import c_float
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Literals = Sequence[str] | str
    Doubles = npt.NDArray[np.float64]
    Floats = npt.NDArray[np.float32]


_LEAST_NORMAL = float(np.finfo(np.float32).tiny)


class BadNumberError(Exception):
    """A literal that is not `reason`, a number of the wanted type; `index` is its position."""

    def __init__(self, index: int, reason: str) -> None:
        self.index, self.reason = index, reason
        super().__init__(index, reason)


def integers(literals: Literals) -> list[int]:
    """Return whole numbers of any size; raises BadNumberError."""
    listed = literals.split(",") if isinstance(literals, str) else literals
    try:
        if isinstance(literals, str) or "".join(listed).isascii():  # int() reads other scripts' digits too
            return list(map(int, listed))
    except ValueError:
        pass
    index = next(i for i, literal in enumerate(listed) if not _is_integer(literal))
    raise BadNumberError(index, "an integer")


def doubles(literals: Literals) -> Doubles:
    """Return 64-bit floats; raises BadNumberError for a word that is not a number, or a number too large."""
    values = _nearest_doubles(literals)
    _refuse_overflow(values, literals)
    return values


def _nearest_doubles(literals: Literals) -> Doubles:
    """Return 64-bit floats, infinite where a literal is too large."""
    if isinstance(literals, str):
        if "-n" in literals.lower():  # numpy drops the sign of a NaN
            return np.array(list(map(float, literals.split(","))), np.float64)
        return np.fromstring(literals, np.float64, sep=",")
    try:
        if "".join(literals).isascii():
            return np.array(list(map(float, literals)), np.float64)
    except ValueError:
        pass
    index = next(i for i, literal in enumerate(literals) if not _is_number(literal))
    raise BadNumberError(index, "a number")


def floats(literals: Literals) -> Floats:
    """Return 32-bit floats; raises BadNumberError as `doubles` does."""
    wide = _nearest_doubles(literals)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values = wide.astype(np.float32)
    if _may_be_tied(wide):
        for index in _tied(wide, values):
            values[index] = _untied(_nth(literals, index), float(wide[index]))
    _refuse_overflow(values, literals)
    return values


def _nth(literals: Literals, index: int) -> str:
    return literals.split(",")[index].strip() if isinstance(literals, str) else literals[index]


def _may_be_tied(wide: Doubles) -> bool:
    """Return whether any double may be midway between two floats: a quick test that nearly all fail."""
    dropped = wide.view(np.int64) & (1 << 29) - 1  # the bits of the fraction that a float has no room for
    tiny = (np.abs(wide) < _LEAST_NORMAL) & (wide != 0)
    return bool((dropped == 1 << 28).any() or tiny.any())


def _tied(wide: Doubles, values: Floats) -> list[int]:
    """Return where a double is midway between two floats."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        back = values.astype(np.float64)
        other = np.nextafter(values, np.where(wide > back, np.float32(np.inf), np.float32(-np.inf)))
        return np.flatnonzero((wide != back) & np.isfinite(wide) & ((back + other) / 2 == wide)).tolist()


def one_float(literal: str) -> float:
    """Return a single 32-bit float, as `floats` does."""
    try:
        wide = float(literal)
    except ValueError:
        wide = math.nan
    value = c_float(wide).value
    # an exact number needs no second look, which saves numpy's overhead for one number
    exact = value == wide and math.isfinite(value) and literal.isascii()
    return value if exact else float(floats([literal])[0])


def _untied(literal: str, wide: float) -> np.float32:
    """Round where the nearest double is midway between two floats, though the literal may not be."""
    # ruff: ignore[import-outside-top-level]  one literal in millions needs it
    from decimal import Decimal

    exact, midway = Decimal(literal), Decimal(wide)
    if exact != midway:
        wide = float(np.nextafter(wide, np.inf if exact > midway else -np.inf))
    return np.float32(wide)


def _refuse_overflow(values: Doubles | Floats, literals: Literals) -> None:
    infinite = np.isinf(values)
    if not infinite.any():
        return
    listed = literals.split(",") if isinstance(literals, str) else literals
    for index in np.flatnonzero(infinite).tolist():
        if "i" not in listed[index].lower():
            raise BadNumberError(index, f"a number that a {8 * values.itemsize}-bit float can hold")


def _is_integer(literal: str) -> bool:
    try:
        int(literal)
    except ValueError:
        return False
    return literal.isascii()


def _is_number(literal: str) -> bool:
    try:
        float(literal)
    except ValueError:
        return False
    return literal.isascii()
