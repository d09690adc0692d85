"""Random numbers: where they start, what they are drawn from, and in which type they come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import DOUBLE
from sabir.opsets.families.sizes import allotted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.elements import ElementType
    from sabir.opsets.typing import Array

_DRAWN = np.dtype(np.float64)  # as large as a number and its copies while it is drawn


def generator(seed: float | None) -> np.random.Generator:
    """Return a source of random numbers: the same for the same seed; without one, any."""
    return np.random.default_rng(None if seed is None else int(np.float32(seed).view(np.uint32)))


def uniform(shape: Sequence[int], to: ElementType, low: float, high: float, seed: float | None) -> Array:
    """Return numbers that lie anywhere in [low, high) with the same probability."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"no numbers lie evenly between {low} and {high}")
    drawn = np.asarray(generator(seed).random(allotted(shape, _DRAWN), _precision(to)))
    y = (low * (1 - drawn) + high * drawn).astype(to.dtype, copy=False)
    if low == high:
        return np.full_like(y, low)
    first, end = np.asarray(low, to.dtype), np.asarray(high, to.dtype)
    # rounding must neither reach below the one nor up to the other
    return np.minimum(np.maximum(y, first), np.nextafter(end, first))


def normal(shape: Sequence[int], to: ElementType, mean: float, scale: float, seed: float | None) -> Array:
    """Return numbers of the normal distribution with this mean and standard deviation."""
    drawn = np.asarray(generator(seed).standard_normal(allotted(shape, _DRAWN), _precision(to)))
    return (mean + drawn * drawn.dtype.type(scale)).astype(to.dtype, copy=False)


def _precision(to: ElementType) -> type[np.float32 | np.float64]:
    """Return the type to draw in, from which halves are rounded; raises ValueError for what is no float."""
    if to.kind != "float":
        raise ValueError(f"random numbers are floats, and not {to}")
    return np.float64 if to is DOUBLE else np.float32
