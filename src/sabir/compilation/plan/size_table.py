"""The sizes of a plan as one table of polynomials: a run evaluates all of them at once.

A plan has a thousand arguments and bounds, but only some hundred different sizes, most of them linear in a
few symbols. As a matrix over the monomials they take some microseconds; substitution in each expression takes
milliseconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.compilation.plan.entries import Mismatch
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.ir import Array
    from sabir.loops import Size

_MOST = float(1 << 62)


class SizeTable:
    """The different sizes of a plan; `add` returns the row of each, `values` their numbers for a run.

    >>> from sabir.ir import symbol
    >>> n, table = symbol('N'), SizeTable()
    >>> table.rows([n * 2 + 1, 7, n // 3])
    [0, 1, 2]
    >>> table.values({'N': 10}).tolist()
    [21, 7, 3]
    """

    def __init__(self) -> None:
        self._rows: dict[Size, int] = {}
        self._atoms: dict[Any, int] = {}  # symbols and calls, each after those in its arguments
        self._monomials: dict[tuple[int, ...], int] = {(): 0}
        self._terms: list[dict[int, int]] = []  # of each row: coefficients by monomial
        self._matrix: tuple[Array, Array, Array] | None = None

    def add(self, size: Size) -> int:
        """Return the row of a size, a new one at its first use."""
        found = self._rows.get(size)
        if found is None:
            found = self._rows[size] = len(self._terms)
            self._terms.append(self._polynomial(size))
            self._matrix = None
        return found

    def rows(self, sizes: Iterable[Size]) -> list[int]:
        """Return the rows of sizes."""
        return [self.add(size) for size in sizes]

    def padded(self, groups: Sequence[Sequence[Size]], filler: int) -> Array:
        """Return the rows of groups of sizes as a matrix; short groups end with the number `filler`."""
        width, last = max(map(len, groups), default=0), self.add(filler)
        found = [[*self.rows(group), *[last] * (width - len(group))] for group in groups]
        return np.array(found, np.int64).reshape(len(groups), width)

    def values(self, symbols: Mapping[str, int]) -> Array:
        """Return the number of each row (int64).

        Raises Mismatch for a symbol that is not among `symbols`, and for numbers past 62 bits.
        """
        factors, coefficients, sizes_of = self._matrix or self._finished()
        atoms: Array = np.ones(len(self._atoms) + 1, np.int64)  # the last one fills up short monomials
        try:
            for number, atom in enumerate(self._atoms):
                atoms[number] = symbols[atom] if isinstance(atom, str) else _of_call(atom, symbols)
        except (KeyError, OverflowError, ZeroDivisionError) as error:
            raise Mismatch(f"the plan has no layout for these sizes: {error}") from error
        powers = atoms[factors]
        if np.abs(powers.astype(np.float64).prod(axis=1) * sizes_of).max(initial=0.0) >= _MOST:
            raise Mismatch("the sizes of the run exceed 64 bits")
        return coefficients @ powers.prod(axis=1)

    def _finished(self) -> tuple[Array, Array, Array]:
        """Return the factors of each monomial, the matrix of coefficients, and bounds of its columns."""
        width = max(map(len, self._monomials), default=0)
        filler = len(self._atoms)
        factors: Array = np.array(
            [[*m, *[filler] * (width - len(m))] for m in self._monomials], np.int64
        ).reshape(len(self._monomials), width)
        coefficients: Array = np.zeros((len(self._terms), len(factors)), np.int64)
        for row, terms in enumerate(self._terms):
            for monomial, coefficient in terms.items():
                coefficients[row, monomial] = coefficient
        bounds = np.abs(coefficients.astype(np.float64)).max(axis=0, initial=0.0) * len(factors)
        self._matrix = factors, coefficients, bounds
        return self._matrix

    def _polynomial(self, size: Size) -> dict[int, int]:
        if not isinstance(size, Expr):
            return {0: int(size)}
        return {self._monomial(factors): coefficient for factors, coefficient in size.terms.items()}

    def _monomial(self, factors: Sequence[Any]) -> int:
        atoms = tuple(self._atoms.setdefault(atom, len(self._atoms)) for atom in factors)
        return self._monomials.setdefault(atoms, len(self._monomials))


def _of_call(call: Any, symbols: Mapping[str, int]) -> int:
    """Return the number of a division, modulus, minimum or maximum of sizes."""
    numbers = [_number(argument, symbols) for argument in call.args]
    if call.op == "//":
        return numbers[0] // numbers[1]
    if call.op == "%":
        return numbers[0] % numbers[1]
    return min(numbers) if call.op == "min" else max(numbers)


def _number(size: Any, symbols: Mapping[str, int]) -> int:
    if not isinstance(size, Expr):
        return int(size)
    return sum(
        coefficient * math.prod(symbols[a] if isinstance(a, str) else _of_call(a, symbols) for a in factors)
        for factors, coefficient in size.terms.items()
    )


__all__ = ["SizeTable"]
