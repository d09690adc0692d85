"""What the caller of the compiler chooses, apart from the target, and the size of the largest plan."""

from __future__ import annotations

from typing import Literal, NamedTuple

Precision = Literal["exact", "fast"]
"""How much kernels may round: as little as the reference engine, or a few times more where that is faster."""

MOST_CALLS = 1 << 15
"""Calls of a program that is compiled: planning takes memory for each pair of groups, 128 MiB for so many."""


class Settings(NamedTuple):
    """The options of one compilation: everything that a stored plan depends on, apart from model and machine.

    `without` names the passes that are left out. With `newer_opsets` the newest known operator set serves
    imports of newer ones. `caches` has pairs of an output and the input whose rows it has, with more: a run
    may write these in place. `sizes` names inputs of one integer that sizes depend on.
    """

    precision: Precision = "exact"
    without: frozenset[str] = frozenset()
    newer_opsets: bool = False
    caches: tuple[tuple[str, str], ...] = ()
    sizes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A text that is equal for equal settings, in every process."""
        return f"{self.precision} {sorted(self.without)} {self.newer_opsets} {self.caches} {self.sizes}"


DEFAULT = Settings()
