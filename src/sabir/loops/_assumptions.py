"""What lowering keeps from call to call: assumptions about sizes, and expressions that calls share.

What a plan assumes of sizes, that they are equal or in an order, holds for the feeds at hand, and each run is
asked again.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sabir.ir import exact_quotient, floor_div, lower_bound, mul, sub

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from sabir.loops._expression import Expression, Size


class Assumptions:
    """The sizes of the symbols at hand, and what was assumed because it holds for them.

    The first of two sizes in `ordered` is at least the second one.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self.equal: dict[tuple[Size, Size], None] = {}
        self.ordered: dict[tuple[Size, Size], None] = {}
        self.shared: dict[tuple[str, Expression], Expression] = {}

    def number(self, size: Size) -> int | None:
        """Return a size of the feeds at hand, None where a symbol is not one of theirs."""
        found = size if isinstance(size, int) else size.substitute(self._sizes)
        return found if isinstance(found, int) else None

    def holds(self, m: Size, n: Size) -> bool:
        """Return whether two sizes are equal here, and assume it then."""
        found = self.number(m)
        if found is None or found != self.number(n):
            return False
        self.equal[m, n] = None
        return True

    def in_order(self, m: Size, n: Size) -> bool:
        """Return whether a size is at least another here, and assume it then."""
        found = self.number(m), self.number(n)
        if found[0] is None or found[1] is None or found[0] < found[1]:
            return False
        self.ordered[m, n] = None
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


@contextmanager
def tentative() -> Generator[None]:
    """Take back what is assumed in the context if it ends with an error."""
    assumptions = _ASSUMED.get()
    before = None if assumptions is None else (dict(assumptions.equal), dict(assumptions.ordered))
    try:
        yield
    except BaseException:
        if assumptions is not None and before is not None:
            assumptions.equal, assumptions.ordered = before
        raise


def equal(m: Size, n: Size) -> bool:
    """Return whether two sizes are equal: always, or for the feeds at hand, which is assumed then."""
    if m == n:
        return True
    if isinstance(m, int) and isinstance(n, int):
        return False
    assumptions = _ASSUMED.get()
    return assumptions is not None and assumptions.holds(m, n)


def at_least(m: Size, n: Size) -> bool:
    """Return whether a size is at least another: always, or for the feeds at hand, which is assumed then."""
    if _surely(m, n):
        return True
    if isinstance(m, int) and isinstance(n, int):
        return False
    assumptions = _ASSUMED.get()
    return assumptions is not None and assumptions.in_order(m, n)


def _surely(m: Size, n: Size) -> bool:
    """Return whether a size is at least another for all feeds."""
    least = lower_bound(sub(m, n))
    return least is not None and least >= 0


def smaller(m: Size, n: Size) -> Size | None:
    """Return the smaller of two sizes, maybe for the feeds at hand only; None where it is open."""
    if _surely(n, m) or not at_least(m, n):
        return m if at_least(n, m) else None
    return n


def larger(m: Size, n: Size) -> Size | None:
    """Return the larger of two sizes, maybe for the feeds at hand only; None where it is open."""
    if _surely(n, m) or not at_least(m, n):
        return n if at_least(n, m) else None
    return m


def divided(size: Size, count: Size) -> Size | None:
    """Return a size as so many parts: of all feeds, or of those at hand; None where it has no equal parts."""
    found = exact_quotient(size, count)
    if found is not None:
        return found
    if count != 0 and equal(size, count):
        return 1
    part = floor_div(size, count)
    whole = mul(part, count)
    return part if whole is not None and equal(size, whole) else None


def fixed(size: Size) -> int | None:
    """Return a size as a number, that of the feeds at hand; None where it is known in a run only.

    Other sizes need a plan of their own: it is for sizes that belong to a model, as those of heads do.
    """
    if isinstance(size, int):
        return size
    assumptions = _ASSUMED.get()
    found = None if assumptions is None else assumptions.number(size)
    return found if found is not None and equal(size, found) else None


def shared(name: str, x: Expression, make: Callable[[Expression], Expression]) -> Expression:
    """Return what `make` makes of an expression: the same for all calls of a plan."""
    assumptions = _ASSUMED.get()
    if assumptions is None:
        return make(x)
    found = assumptions.shared.get((name, x))
    if found is None:
        found = assumptions.shared[name, x] = make(x)
    return found
