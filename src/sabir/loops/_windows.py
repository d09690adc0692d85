"""Windows that slide over tensors, and reductions over their taps: poolings and depthwise convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._assumptions import equal
from sabir.loops._expression import FLOATS, Expression
from sabir.loops._expressions import Slide, Windows
from sabir.loops._operations import NotLowered, check_computed, check_element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops._expression import Size


def windows(
    x: Expression, axes: Sequence[int], kernel: Sequence[Size], counts: Sequence[Size],
    strides: Sequence[int], dilations: Sequence[int],
) -> Expression:  # fmt: skip
    """Return the windows of `x` along some axes; their taps are further axes at the end.

    `counts` is the number of windows along each of the axes; the caller pads `x` so that all are inside.
    """
    check_element(x.element)
    shape = list(x.shape)
    for axis, count in zip(axes, counts, strict=True):
        shape[axis] = count
    return Windows(x.element, (*shape, *kernel), x, tuple(axes), tuple(strides), tuple(dilations))


def slide(op: str, x: Expression, taps: int, weights: Expression | None = None) -> Expression:
    """Return the `sum`, `max` or `min` over the last `taps` axes of windows, or the sum of `x * weights`.

    The weights have the last axes of the windows. Raises NotLowered if their sizes may differ.
    """
    check_computed(x.element)
    if weights is not None:
        if x.element not in FLOATS or weights.element != x.element:
            raise NotLowered(f"sums of products of {x.element} have no kernel yet")
        if not all(map(equal, weights.shape, x.shape[x.rank - weights.rank :])):
            raise NotLowered("whether the weights fit the windows is known at run time only")
    return Slide(x.element, x.shape[: x.rank - taps], op, x, weights, taps)


def slide_mixed(x: Expression, taps: int, weights: Expression) -> Expression:
    """Return the sums of windows `[..., C, taps...]` times weights `[C, mixed, taps...]`: `[..., C]`.

    Each result is the sum over the taps and the `mixed` channels of its group. Raises NotLowered if sizes may
    differ.
    """
    channels, mixed, *kernel = weights.shape
    if not isinstance(mixed, int) or not all(map(equal, (channels, *kernel), x.shape[x.rank - taps - 1 :])):
        raise NotLowered("whether the weights fit the windows is known at run time only")
    return Slide(x.element, x.shape[: x.rank - taps], "sum", x, weights, taps, mixed=mixed)
