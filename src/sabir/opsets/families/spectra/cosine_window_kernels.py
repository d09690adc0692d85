"""Lowering of windows that are sums of cosines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir import loops
from sabir.elements import element
from sabir.opsets.families.lowering import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression, Lowering


def sampled(
    size: Expression, terms: Sequence[float], number: int, call: Lowering, *, periodic: bool
) -> Expression:
    """Return a window as `cosine_windows.sample` does it."""
    kernels.check_sizing(size, "`size`")
    (count,), target = call.shape(), element(number)
    period = loops.sized("double", count if periodic else count - 1)
    angles = loops.cast(loops.count((count,), 0), "double")
    angles = loops.apply("mul", angles, loops.apply("div", math.tau, period))
    y: Expression = loops.number("double", terms[0])
    for times, term in enumerate(terms[1:], 1):
        cosine = loops.apply("cos", loops.apply("mul", angles, times))
        y = loops.apply("add", y, loops.apply("mul", cosine, term if times % 2 == 0 else -term))
    return loops.cast(loops.cast(y, "float") if target.is_integer else y, target.name)
