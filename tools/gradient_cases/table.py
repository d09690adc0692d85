"""All cases."""

from __future__ import annotations

from gradient_cases import (
    attention,
    losses,
    moves,
    networks,
    normalization,
    pointwise,
    products,
    recurrent,
    reductions,
    sampling,
    windows,
)

GROUPS = (
    attention, losses, moves, networks, normalization, pointwise, products, recurrent, reductions, sampling, windows,
)  # fmt: skip
CASES = [case for group in GROUPS for case in group.CASES]
