"""The state of one lowering: assumptions about symbolic sizes, and expressions that calls share.

A plan may assume that two sizes are equal, or that one is at least the other, if that is true of the current
feeds. Assumptions become guards, which are checked for the feeds of each run.
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
    """The sizes of the current feeds by symbol, and the assumptions that they satisfy.

    `equal` has pairs of equal sizes, `ordered` pairs whose first size is at least the second. `shared` has
    the expressions of `shared`.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self.equal: dict[tuple[Size, Size], None] = {}
        self.ordered: dict[tuple[Size, Size], None] = {}
        self.shared: dict[tuple[str, Expression], Expression] = {}

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the sizes of the current feeds."""
        return frozenset(self._sizes)

    def number(self, size: Size) -> int | None:
        """Return a size for the current feeds; None if it has a symbol that they do not determine."""
        found = size if isinstance(size, int) else size.substitute(self._sizes)
        return found if isinstance(found, int) else None

    def holds(self, m: Size, n: Size) -> bool:
        """Return whether two sizes are equal for the current feeds; if so, assume it."""
        found = self.number(m)
        if found is None or found != self.number(n):
            return False
        self.equal[m, n] = None
        return True

    def in_order(self, m: Size, n: Size) -> bool:
        """Return whether a size is at least another for the current feeds; if so, assume it."""
        found = self.number(m), self.number(n)
        if found[0] is None or found[1] is None or found[0] < found[1]:
            return False
        self.ordered[m, n] = None
        return True


_ASSUMED: ContextVar[Assumptions | None] = ContextVar("assumptions about sizes", default=None)


@contextmanager
def assuming(assumptions: Assumptions) -> Generator[None]:
    """Let `equal` and `at_least` make assumptions in the context."""
    token = _ASSUMED.set(assumptions)
    try:
        yield
    finally:
        _ASSUMED.reset(token)


@contextmanager
def tentative() -> Generator[None]:
    """Discard the assumptions that were made in the context if it ends with an error."""
    assumptions = _ASSUMED.get()
    before = None if assumptions is None else (dict(assumptions.equal), dict(assumptions.ordered))
    try:
        yield
    except BaseException:
        if assumptions is not None and before is not None:
            assumptions.equal, assumptions.ordered = before
        raise


def equal(m: Size, n: Size) -> bool:
    """Return whether two sizes are equal: for all feeds, or by an assumption."""
    if m == n:
        return True
    if isinstance(m, int) and isinstance(n, int):
        return False
    assumptions = _ASSUMED.get()
    return assumptions is not None and assumptions.holds(m, n)


def at_least(m: Size, n: Size) -> bool:
    """Return whether a size is at least another: for all feeds, or by an assumption."""
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
    """Return the smaller of two sizes, maybe by an assumption; None if the current feeds do not decide it."""
    if _surely(n, m) or not at_least(m, n):
        return m if at_least(n, m) else None
    return n


def larger(m: Size, n: Size) -> Size | None:
    """Return the larger of two sizes, maybe by an assumption; None if the current feeds do not decide it."""
    if _surely(n, m) or not at_least(m, n):
        return n if at_least(n, m) else None
    return m


def divided(size: Size, count: Size) -> Size | None:
    """Return `size / count`, maybe by an assumption; None if the division has, or may have, a remainder."""
    found = exact_quotient(size, count)
    if found is not None:
        return found
    if count != 0 and equal(size, count):
        return 1
    part = floor_div(size, count)
    whole = mul(part, count)
    return part if whole is not None and equal(size, whole) else None


def fixed(size: Size) -> int | None:
    """Return a size as a number, for the current feeds by an assumption; None if only a run decides it.

    Any other size then needs another plan, so this is for sizes that a model fixes, as the number of heads.
    """
    if isinstance(size, int):
        return size
    assumptions = _ASSUMED.get()
    found = None if assumptions is None else assumptions.number(size)
    return found if found is not None and equal(size, found) else None


def shared(name: str, x: Expression, make: Callable[[Expression], Expression]) -> Expression:
    """Return `make(x)`, the same expression for all calls of a plan."""
    assumptions = _ASSUMED.get()
    if assumptions is None:
        return make(x)
    found = assumptions.shared.get((name, x))
    if found is None:
        found = assumptions.shared[name, x] = make(x)
    return found
