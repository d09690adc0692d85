"""What the caller of the compiler chooses, apart from the machine that code is compiled for."""

from __future__ import annotations

from typing import Literal, NamedTuple

Precision = Literal["exact", "fast"]
"""How much kernels may round: as little as the reference engine, or a few times more where that is faster."""

MOST_CALLS = 1 << 15
"""Calls of a program that is compiled: planning takes memory for each pair of groups, 128 MiB for so many."""


class Settings(NamedTuple):
    """The options of one compilation: everything that a stored plan depends on, apart from model and machine.

    `without` names the passes that are left out. With `newer_opsets` the newest known operator set serves
    imports of newer ones.
    """

    precision: Precision = "exact"
    without: frozenset[str] = frozenset()
    newer_opsets: bool = False

    @property
    def key(self) -> str:
        """A text that is equal for equal settings, in every process."""
        return f"{self.precision} {sorted(self.without)} {self.newer_opsets}"


DEFAULT = Settings()
