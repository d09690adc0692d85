"""Whether sizes may be as a call needs them: by what is known of all runs, or for the sizes of one run.

Inference for all runs refuses a call only where its sizes can never fit. A compiler that plans for the feeds
of a run refuses it where they do not fit for these: it passes a `Judge`, which may note what it has assumed.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, Protocol

from sabir.ir._dims import known_equal, sub
from sabir.ir._dims_algebra import bounds_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from sabir.ir._dims import Dim
    from sabir.ir._dims_algebra import Expr


class Judge(Protocol):
    """Decides whether two sizes are equal, or (`max`) the first is at least the second."""

    def __call__(self, op: Literal["equal", "max"], a: int | Expr, b: int | Expr, /) -> bool: ...


_JUDGE: ContextVar[Judge | None] = ContextVar("what decides how two sizes compare", default=None)


@contextmanager
def judging(judge: Judge) -> Generator[None]:
    """Let `judge` decide whether two sizes may be as a call needs them while the context lasts.

    >>> with judging(lambda op, a, b: False):
    ...     may_be_equal(symbol('n'), symbol('m')), may_be_equal(symbol('n'), symbol('n'))
    (False, True)
    """
    token = _JUDGE.set(judge)
    try:
        yield
    finally:
        _JUDGE.reset(token)


def may_be_equal(a: Dim, b: Dim) -> bool:
    """Return whether two sizes that a call needs to be equal may be so.

    Where neither is proved, the judge of `judging` decides, which knows the sizes of a run.

    >>> may_be_equal(2, 3), may_be_equal(symbol('n'), 3), may_be_equal(symbol('n'), symbol('n') + 1)
    (False, True, False)
    """
    known = known_equal(a, b)
    if known is not None or a is None or b is None:
        return known is not False
    judge = _JUDGE.get()
    return judge is None or judge("equal", a, b)


def may_be_at_most(small: Dim, large: Dim) -> bool:
    """Return whether a size that a call needs to be at most another one may be so, as `may_be_equal`.

    >>> may_be_at_most(3, 2), may_be_at_most(symbol('n'), 2), may_be_at_most(symbol('n') + 3, symbol('n'))
    (False, True, False)
    """
    if small is None or large is None:
        return True
    difference = sub(large, small)
    low, high = (None, None) if difference is None else bounds_of(difference)
    if high is not None and high < 0:
        return False
    judge = _JUDGE.get()
    return judge is None or (low is not None and low >= 0) or judge("max", large, small)
