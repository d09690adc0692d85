"""The sizes and axes of a resized tensor, from scales or sizes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.resampling.resampling import ResampledAxis, scaled
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.opsets.families.shapes.shapes import axes_in
from sabir.opsets.families.shapes.sizes import sizes_in

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
    numbers = _axes(axes, count, len(x.shape), "scales")
    dims = list(x.shape)
    for i, axis in enumerate(numbers):
        scale = scales.known[i] if scales.known else None
        dims[axis] = scaled(dims[axis], scale) if isinstance(scale, float) and math.isfinite(scale) else None
    return TensorType(x.element, tuple(dims))


def of_sizes(x: TensorType, sizes: TensorType, axes: Sequence[int] | None, policy: str) -> TensorType:
    """Return the type of `x` with its axes resized to the contents of a tensor."""
    wanted = sizes_in("sizes", sizes)
    if x.shape is None:
        known = wanted if axes is None else None
        if known is not None and policy != STRETCH:
            known = (None,) * len(known)
        return TensorType(x.element, known)
    numbers = _axes(axes, None if wanted is None else len(wanted), len(x.shape), "sizes")
    dims = list(x.shape)
    wanted = (None,) * len(numbers) if wanted is None else wanted
    if policy != STRETCH:
        wanted = _in_ratio([dims[a] for a in numbers], wanted, policy)
    for axis, size in zip(numbers, wanted, strict=True):
        if dims[axis] == 0 and isinstance(size, int) and size:
            raise InferenceError(f"a dimension of 0 has no elements to resample to {size}")
        dims[axis] = size
    return TensorType(x.element, tuple(dims))


def _in_ratio(dims: Sequence[Dim], wanted: Sequence[Dim], policy: str) -> Shape:
    pairs = [(d, w) for d, w in zip(dims, wanted, strict=True) if isinstance(d, int) and isinstance(w, int)]
    if len(pairs) < len(dims):
        return (None,) * len(dims)
    scale = _one_scale(pairs, policy)
    return tuple(_half_up(scale * d) for d, _ in pairs)


def _axes(axes: Sequence[int] | None, count: Dim, rank: int, name: str) -> tuple[int, ...]:
    numbers = tuple(range(rank)) if axes is None else axes_in(axes, rank)
    if isinstance(count, int) and count != len(numbers):
        raise InferenceError(f"`{name}` has {count} numbers for {len(numbers)} axes")
    return numbers


# ---------------------------------------------------------------- values


def scaled_axes(
    shape: Sequence[int], numbers: Sequence[int], scales: Array, part: Array | None
) -> list[ResampledAxis]:
    """Return every axis, of which those in `numbers` are scaled; scales are taken as exact numbers."""
    check_shape("scales", scales, len(numbers))
    if not ((scales > 0) & np.isfinite(scales)).all():
        raise EvaluationError(f"`scales` {scales.tolist()} must be finite numbers above 0")
    exact = [Fraction(s) for s in scales.tolist()]
    lengths = [math.floor(s * shape[a]) for s, a in zip(exact, numbers, strict=True)]
    return _assembled(shape, numbers, lengths, exact, part)


def sized_axes(
    shape: Sequence[int], numbers: Sequence[int], sizes: Array, part: Array | None, policy: str
) -> list[ResampledAxis]:
    """Return every axis, of which those in `numbers` are resized."""
    check_shape("sizes", sizes, len(numbers))
    if (sizes < 0).any():
        raise EvaluationError(f"`sizes` {sizes.tolist()} must be 0 or more")
    pairs = [(shape[a], n) for a, n in zip(numbers, sizes.tolist(), strict=True)]
    if policy == STRETCH:
        scales = [Fraction(n, d) if d and n else Fraction(1) for d, n in pairs]
        return _assembled(shape, numbers, [n for _, n in pairs], scales, part)
    scale = _one_scale(pairs, policy)
    return _assembled(shape, numbers, [_half_up(scale * d) for d, _ in pairs], [scale] * len(pairs), part)


def _one_scale(pairs: Sequence[tuple[int, int]], policy: str) -> Fraction:
    """Return the scale that all axes share, from pairs of old and wanted lengths."""
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
    numbers: Sequence[int],
    lengths: Sequence[int],
    scales: Sequence[Fraction],
    part: Array | None,
) -> list[ResampledAxis]:
    axes = [ResampledAxis(n, n, Fraction(1)) for n in shape]
    for i, (axis, length, scale) in enumerate(zip(numbers, lengths, scales, strict=True)):
        span = (0.0, 1.0) if part is None else (float(part[i]), float(part[len(numbers) + i]))
        axes[axis] = ResampledAxis(shape[axis], length, scale, *span)
    return axes
