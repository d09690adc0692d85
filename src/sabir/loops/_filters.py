"""Convolutions: windows times filters, summed over taps and channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sabir.loops._assumptions import divided, equal
from sabir.loops._expression import FLOATS, Expression, agree, expression
from sabir.loops._operations import NotLowered, check_computed, permute, reshape, squeeze

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.loops._expression import Size

    Product: TypeAlias = Callable[[Expression, Expression, int, int], Expression]


@expression
class Filtered(Expression):
    """Windows `[N, counts..., C, taps...]` times filters `[M, C/group, taps...]`: `[N, counts..., M]`.

    Each result is the sum over the taps and the channels of its group; a group has M/group filters. A pass of
    the backend chooses the algorithm. If `finite`, the run fails for filters with infinities or NaN.
    """

    windows: Expression
    filters: Expression
    group: int = 1
    finite: bool = False

    @property
    def taps(self) -> int:
        """The number of axes of a window."""
        return self.filters.rank - 2

    def violations(self) -> Iterator[str]:
        """Yield violations of the shapes and the element types."""
        x, w, taps = self.windows, self.filters, self.taps
        if x.rank != self.rank + taps or taps < 0:
            yield f"windows of rank {x.rank} by filters of rank {w.rank}"
            return
        channel = x.rank - 1 - taps
        if not agree((*x.shape[:channel], w.shape[0]), self.shape):
            yield f"windows {x.shape} by {w.shape[0]} filters"
        if not agree((x.shape[channel], *x.shape[channel + 1 :]), (w.shape[1] * self.group, *w.shape[2:])):
            yield f"windows {x.shape[channel:]} by filters {w.shape[1:]} in {self.group} groups"
        if {x.element, w.element} != {self.element}:
            yield f"windows of {x.element} by filters of {w.element}"


def filtered(x: Expression, w: Expression, group: int, *, finite: bool = False) -> Expression:
    """Return windows `[N, counts..., C, taps...]` times filters `[M, C/group, taps...]`: `[N, counts..., M]`.

    If `finite`, the run fails for filters with infinities or NaN. Raises NotLowered for element types that
    are not multiplied, and for sizes that may differ.
    """
    check_computed(x.element)
    if x.element not in FLOATS or x.element != w.element:
        raise NotLowered(f"windows of {x.element} and filters of {w.element} are not multiplied")
    filters_of(w, group)
    taps = w.rank - 2
    channel = x.rank - 1 - taps
    for m, n in zip(x.shape[channel:], (w.shape[1] * group, *w.shape[2:]), strict=True):
        if not equal(m, n):
            raise NotLowered(f"whether the sizes {m} and {n} are equal is known at run time only")
    return Filtered(x.element, (*x.shape[:channel], w.shape[0]), x, w, group, finite)


def filters_of(w: Expression, group: int) -> Size:
    """Return `M / group` for filters `[M, C/group, ...]`; raises NotLowered if it may have a remainder."""
    each = divided(w.shape[0], group)
    if each is None:
        raise NotLowered(
            f"whether {w.shape[0]} filters can be divided into {group} groups is known at run time only"
        )
    return each


def as_products(x: Expression, w: Expression, group: int, multiply: Product) -> Expression:
    """Return the result of `filtered` as im2col and one matrix product for each group.

    `multiply(a, b, rows, depth)` multiplies `[..., rows..., depth...]` by `[..., depth..., N]`.
    """
    taps = w.rank - 2
    *rows, channel = range(x.rank - taps)
    if group == 1:
        a = permute(x, [*rows, *range(channel + 1, x.rank), channel])
        return _product(a, permute(w, [*range(2, w.rank), 1, 0]), taps, len(rows), multiply)
    a = reshape(x, (*x.shape[:channel], group, w.shape[1], *x.shape[channel + 1 :]))
    a = permute(a, [channel, *rows, *range(channel + 2, a.rank), channel + 1])
    filters = reshape(w, (group, filters_of(w, group), *w.shape[1:]))
    b = permute(filters, [0, *range(3, filters.rank), 2, 1])
    y = _product(a, b, taps, len(rows), multiply)
    y = permute(y, [*range(1, channel + 1), 0, channel + 1])
    return reshape(y, (*y.shape[:channel], w.shape[0]))


def _product(a: Expression, b: Expression, taps: int, rows: int, multiply: Product) -> Expression:
    """Return the product over the taps and channels, the last axes of `a`; taps of size 1 are removed."""
    first = a.rank - 1 - taps
    ones = [n for n in range(taps) if a.shape[first + n] == 1]
    a = squeeze(a, [first + n for n in ones])
    b = squeeze(b, [b.rank - 2 - taps + n for n in ones])
    return multiply(a, b, rows, 1 + taps - len(ones))
