"""Decimal literals to numbers, many at a time, each rounded once to the nearest value of its type."""

from __future__ import annotations

import math
from ctypes import c_float
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Doubles = npt.NDArray[np.float64]
    Floats = npt.NDArray[np.float32]


class BadNumberError(Exception):
    """A literal that is no number of the wanted type; `index` says which."""

    def __init__(self, index: int, reason: str) -> None:
        self.index, self.reason = index, reason
        super().__init__(index, reason)


def integers(literals: Sequence[str]) -> list[int]:
    """Return whole numbers of any size; raises BadNumberError."""
    try:
        if "".join(literals).isascii():  # int() reads other scripts' digits too
            return list(map(int, literals))
    except ValueError:
        pass
    index = next(i for i, literal in enumerate(literals) if not _is_integer(literal))
    raise BadNumberError(index, "an integer")


def doubles(literals: Sequence[str]) -> Doubles:
    """Return 64-bit floats; raises BadNumberError for what is no number, or finite and too large."""
    values = _nearest_doubles(literals)
    _refuse_overflow(values, literals)
    return values


def _nearest_doubles(literals: Sequence[str]) -> Doubles:
    """Return 64-bit floats, infinite where a literal is too large."""
    try:
        if "".join(literals).isascii():
            return np.array(list(map(float, literals)), np.float64)
    except ValueError:
        pass
    index = next(i for i, literal in enumerate(literals) if not _is_number(literal))
    raise BadNumberError(index, "a number")


def floats(literals: Sequence[str]) -> Floats:
    """Return 32-bit floats; raises BadNumberError as `doubles` does."""
    wide = _nearest_doubles(literals)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values = wide.astype(np.float32)
        back = values.astype(np.float64)
        other = np.nextafter(values, np.where(wide > back, np.float32(np.inf), np.float32(-np.inf)))
        tied = (wide != back) & np.isfinite(wide) & ((back + other) / 2 == wide)
    for index in np.flatnonzero(tied).tolist():
        values[index] = _untied(literals[index], float(wide[index]))
    _refuse_overflow(values, literals)
    return values


def one_float(literal: str) -> float:
    """Return a single 32-bit float, as `floats` does."""
    try:
        wide = float(literal)
    except ValueError:
        wide = math.nan
    value = c_float(wide).value
    # what is exact needs no second look, and this spares numpy's overhead for one number
    exact = value == wide and math.isfinite(value) and literal.isascii()
    return value if exact else float(floats([literal])[0])


def _untied(literal: str, wide: float) -> np.float32:
    """Round where the nearest double is midway between two floats, though the literal may not be."""
    # ruff: ignore[import-outside-top-level]  2 ms that one literal in millions needs
    from fractions import Fraction

    exact, midway = Fraction(literal), Fraction(wide)
    if exact != midway:
        wide = float(np.nextafter(wide, np.inf if exact > midway else -np.inf))
    return np.float32(wide)


def _refuse_overflow(values: Doubles | Floats, literals: Sequence[str]) -> None:
    for index in np.flatnonzero(np.isinf(values)).tolist():
        if "i" not in literals[index].lower():
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
