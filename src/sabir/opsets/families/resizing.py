"""The lengths and axes that scales, or sizes, ask of a resized tensor."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.ir import TensorType
from sabir.opsets.families import contents
from sabir.opsets.families.ranks import check_rank, check_shape
from sabir.opsets.families.resampling import Axis, scaled
from sabir.opsets.families.shapes import axes_in
from sabir.opsets.families.sizes import sizes_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim, Shape
    from sabir.opsets.typing import Array

STRETCH = "stretch"

# ---------------------------------------------------------------- types


def of_scales(x: TensorType, scales: TensorType, axes: Sequence[int] | None) -> TensorType:
    """Return the type of `x` with its axes scaled."""
    check_rank("scales", scales, 1)
    count = scales.size
    if x.shape is None:
        if axes is not None or not isinstance(count, int) or count > contents.MOST:
            return TensorType(x.element)
        return TensorType(x.element, (None,) * count)
    places = _axes(axes, count, len(x.shape), "scales")
    dims = list(x.shape)
    for place, axis in enumerate(places):
        scale = scales.known[place] if scales.known else None
        dims[axis] = scaled(dims[axis], scale) if isinstance(scale, float) and math.isfinite(scale) else None
    return TensorType(x.element, tuple(dims))


def of_sizes(x: TensorType, sizes: TensorType, axes: Sequence[int] | None, policy: str) -> TensorType:
    """Return the type of `x` with its axes brought to the sizes that a tensor holds."""
    wanted = sizes_in("sizes", sizes)
    if x.shape is None:
        known = wanted if axes is None else None
        if known is not None and policy != STRETCH:
            known = (None,) * len(known)
        return TensorType(x.element, known)
    places = _axes(axes, None if wanted is None else len(wanted), len(x.shape), "sizes")
    dims = list(x.shape)
    wanted = (None,) * len(places) if wanted is None else wanted
    if policy != STRETCH:
        wanted = _in_ratio([dims[a] for a in places], wanted, policy)
    for axis, size in zip(places, wanted, strict=True):
        if dims[axis] == 0 and isinstance(size, int) and size:
            raise InferenceError(f"a dimension of no elements has nothing to make {size} from")
        dims[axis] = size
    return TensorType(x.element, tuple(dims))


def _in_ratio(dims: Sequence[Dim], wanted: Sequence[Dim], policy: str) -> Shape:
    numbers = [(d, w) for d, w in zip(dims, wanted, strict=True) if isinstance(d, int) and isinstance(w, int)]
    if len(numbers) < len(dims):
        return (None,) * len(dims)
    scale = _one_scale(numbers, policy)
    return tuple(_half_up(scale * d) for d, _ in numbers)


def _axes(axes: Sequence[int] | None, count: Dim, rank: int, name: str) -> tuple[int, ...]:
    places = tuple(range(rank)) if axes is None else axes_in(axes, rank)
    if isinstance(count, int) and count != len(places):
        raise InferenceError(f"`{name}` has {count} numbers for {len(places)} axes")
    return places


# ---------------------------------------------------------------- values


def scaled_axes(shape: Sequence[int], places: Sequence[int], scales: Array, part: Array | None) -> list[Axis]:
    """Take the scales as the exact numbers that they are."""
    check_shape("scales", scales, len(places))
    if not ((scales > 0) & np.isfinite(scales)).all():
        raise EvaluationError(f"`scales` {scales.tolist()} must be finite numbers above 0")
    exact = [Fraction(s) for s in scales.tolist()]
    lengths = [math.floor(s * shape[a]) for s, a in zip(exact, places, strict=True)]
    return _assembled(shape, places, lengths, exact, part)


def sized_axes(
    shape: Sequence[int], places: Sequence[int], sizes: Array, part: Array | None, policy: str
) -> list[Axis]:
    """Return every axis, of which those in `places` get new sizes."""
    check_shape("sizes", sizes, len(places))
    if (sizes < 0).any():
        raise EvaluationError(f"`sizes` {sizes.tolist()} must be 0 or more")
    pairs = [(shape[a], n) for a, n in zip(places, sizes.tolist(), strict=True)]
    if policy == STRETCH:
        scales = [Fraction(n, d) if d and n else Fraction(1) for d, n in pairs]
        return _assembled(shape, places, [n for _, n in pairs], scales, part)
    scale = _one_scale(pairs, policy)
    return _assembled(shape, places, [_half_up(scale * d) for d, _ in pairs], [scale] * len(pairs), part)


def _one_scale(pairs: Sequence[tuple[int, int]], policy: str) -> Fraction:
    """Return the scale that all axes share, of pairs of old and wanted lengths."""
    if policy not in {"not_larger", "not_smaller"}:
        raise InferenceError(
            f"`keep_aspect_ratio_policy` is {policy!r}, and must be stretch, not_larger or not_smaller"
        )
    if any(d == 0 for d, _ in pairs):
        raise InferenceError("an empty tensor has no aspect ratio to keep")
    scales = [Fraction(n, d) for d, n in pairs]
    return min(scales) if policy == "not_larger" else max(scales)


def _half_up(length: Fraction) -> int:
    return math.floor(length + Fraction(1, 2))


def _assembled(
    shape: Sequence[int],
    places: Sequence[int],
    lengths: Sequence[int],
    scales: Sequence[Fraction],
    part: Array | None,
) -> list[Axis]:
    axes = [Axis(n, n, Fraction(1)) for n in shape]
    for i, (axis, length, scale) in enumerate(zip(places, lengths, scales, strict=True)):
        span = (0.0, 1.0) if part is None else (float(part[i]), float(part[len(places) + i]))
        axes[axis] = Axis(shape[axis], length, scale, *span)
    return axes
