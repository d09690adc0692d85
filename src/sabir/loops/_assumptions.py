"""What lowering keeps from call to call: assumptions about sizes, and expressions that calls share.

Equalities of sizes that a plan assumes hold for the feeds at hand, and each run is asked again.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from sabir.loops._expressions import Expression, Size


class Assumptions:
    """The sizes of the symbols at hand, and the equalities that were assumed because they hold for them."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self.equal: dict[tuple[Size, Size], None] = {}
        self.shared: dict[tuple[str, Expression], Expression] = {}

    def holds(self, m: Size, n: Size) -> bool:
        """Return whether two sizes are equal here, and assume it then."""
        found = [s if isinstance(s, int) else s.substitute(self._sizes) for s in (m, n)]
        if any(isinstance(s, Expr) for s in found) or found[0] != found[1]:
            return False
        self.equal[m, n] = None
        return True


_ASSUMED: ContextVar[Assumptions | None] = ContextVar("what a plan assumes of sizes", default=None)


@contextmanager
def assuming(assumptions: Assumptions) -> Generator[None]:
    """Let `equal` assume equalities while the context lasts."""
    token = _ASSUMED.set(assumptions)
    try:
        yield
    finally:
        _ASSUMED.reset(token)


def equal(m: Size, n: Size) -> bool:
    """Return whether two sizes are equal: always, or for the feeds at hand, which is assumed then."""
    if m == n:
        return True
    if isinstance(m, int) and isinstance(n, int):
        return False
    assumptions = _ASSUMED.get()
    return assumptions is not None and assumptions.holds(m, n)


def shared(name: str, x: Expression, make: Callable[[Expression], Expression]) -> Expression:
    """Return what `make` makes of an expression: the same for all calls of a plan."""
    assumptions = _ASSUMED.get()
    if assumptions is None:
        return make(x)
    found = assumptions.shared.get((name, x))
    if found is None:
        found = assumptions.shared[name, x] = make(x)
    return found
