"""Tensors resampled at other coordinates, one axis after another.

Each index of a new axis has a coordinate in the old axis; its value is that of the nearest old index, or a
weighted sum over the old indices around. The weights of an axis do not depend on the other axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import check_elements, spend_work
from sabir.ir import floor_div, mul
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

ALIGN_CORNERS = Attribute(
    "align_corners",
    "int",
    "1: -1 and 1 are the centres of the first and the last pixel, 0: their outer edges.",
    default=0,
)
_EXACT_BITS = 53  # of a float64; the limits of larger integers are not exact
_COORDINATE = 32  # temporary bytes for each coordinate, approximately
_MANY_TAPS, _BLOCK = 64, 1 << 22  # bytes
_PART = 1 << 18  # elements of the result, or of the input that it reads, at a time
_TAP = 48  # temporary bytes for each tap of the filter, approximately
_MOST_LEGIBLE = 64  # larger denominators come from scales like 0.6, and make symbolic sizes illegible


def mode(*names: str, **aliases: str) -> Attribute:
    """Return the attribute that names the interpolation; `aliases` as in `one_of`."""
    values = one_of(*names, aliases={**aliases})
    return Attribute(
        "mode", "string", "The interpolation between elements.", default="nearest", values=values
    )


class ResampledAxis(NamedTuple):
    """One axis: its old and new length, the scale between them, and the part of it to read."""

    size: int
    length: int
    scale: Fraction
    start: float = 0.0
    end: float = 1.0

    def is_kept(self, *, crops: bool) -> bool:
        """Whether this axis stays unchanged."""
        whole = not crops or (self.start, self.end) == (0.0, 1.0)
        return self.scale == 1 and self.size == self.length and whole


@dataclass(frozen=True, slots=True)
class Interpolation:
    """The options of an interpolation, as the attributes of Resize define them."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


def scaled(dim: Dim, scale: float | Fraction) -> Dim:
    """Return floor(dim * scale); None if the size is a symbol and the scale not a simple fraction."""
    is_legible = isinstance(dim, int) or Fraction(scale).denominator <= _MOST_LEGIBLE
    return exactly_scaled(dim, scale) if is_legible else None


def exactly_scaled(dim: Dim, scale: float | Fraction) -> Dim:
    """Return floor(dim * scale), of a symbol with any scale too."""
    exact = Fraction(scale)
    if isinstance(dim, int):
        return math.floor(dim * exact)
    return floor_div(mul(dim, exact.numerator), exact.denominator)


def resample(x: Array, axes: Sequence[ResampledAxis], interpolation: Interpolation) -> Array:
    """Return `x` with every axis resampled; the axes that shrink most come first."""
    crops = interpolation.coordinates == CROP
    changed = [i for i, axis in enumerate(axes) if not axis.is_kept(crops=crops)]
    if interpolation.mode != "nearest" and x.dtype.kind in "bO":
        raise ValueError("flags and strings cannot be interpolated")
    if any(axes[i].size == 0 and axes[i].length for i in changed):
        raise ValueError(
            f"a shape of {list(x.shape)} has no elements to resample to {[a.length for a in axes]}"
        )
    allotted([axis.length for axis in axes], x.dtype, x.size)
    changed.sort(key=lambda i: axes[i].scale)
    if not changed:
        return x.copy()
    y = np.empty([axis.length for axis in axes], x.dtype)
    if not y.size:
        return y
    tables = {i: tap_table(axes[i], interpolation) for i in changed}
    for source, target, part in _blocks(axes, tables):
        y[target] = _resampled(x[source], part, x.dtype)
    for i in changed if crops else ():
        at = coordinates(axes[i], CROP)
        outside = (at < 0) | (at > axes[i].size - 1)
        y[(slice(None),) * i + (outside,)] = interpolation.extrapolation
    return y


class TapTable(NamedTuple):
    """For each new index of an axis the old indices that it reads, with weights; or only the nearest."""

    indices: Array
    weights: Array | None


def tap_table(axis: ResampledAxis, interpolation: Interpolation) -> TapTable:
    """Return what each new index of an axis reads; beyond the ends, these continue."""
    with np.errstate(all="ignore"):  # places far beyond the ends fit into no integer
        if interpolation.mode == "nearest":
            indices, weights = _nearest(axis, interpolation), None
        else:
            indices, weights = taps(axis, interpolation)
    return TapTable(np.clip(indices, 0, axis.size - 1, out=indices), weights)


def _blocks(
    axes: Sequence[ResampledAxis], tables: Mapping[int, TapTable]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...], dict[int, TapTable]]]:
    """Split the result along its longest axis; yield the source, the target and the tables of each part."""
    along = max(range(len(axes)), key=lambda i: axes[i].length)
    length, whole = axes[along].length, (slice(None),) * along
    step = max(1, _PART * length // math.prod(max(a.length, a.size) for a in axes))
    for first in range(0, length, step):
        target = slice(first, first + step)
        if along not in tables:
            yield (*whole, target), (*whole, target), dict(tables)
            continue
        indices, weights = tables[along]
        indices = indices[target]
        low, high = int(indices.min()), int(indices.max())
        part = TapTable(indices - low, None if weights is None else weights[target])
        yield (*whole, slice(low, high + 1)), (*whole, target), {**tables, along: part}


def _resampled(x: Array, tables: Mapping[int, TapTable], dtype: np.dtype[Any]) -> Array:
    """Resample one part along each axis that changes, in the order of `tables`."""
    for i, (indices, weights) in tables.items():
        x = np.take(x, indices, i) if weights is None else _interpolated(_floating(x), i, indices, weights)
    return _rounded(x, dtype)


# ---------------------------------------------------------------- coordinates

CROP = "tf_crop_and_resize"
_HALF = Fraction(1, 2)


class Coordinates(NamedTuple):
    """Coordinates at equal distances, as exact numbers, since an error could change the rounding of a tie."""

    step: Fraction
    first: Fraction

    def points(self, count: int) -> Array:
        """Return `count` coordinates, each rounded once."""
        whole = math.lcm(self.step.denominator, self.first.denominator)
        steps = np.arange(count, dtype=np.float64) * float(self.step * whole)
        return (steps + float(self.first * whole)) / float(whole)


def coordinates(axis: ResampledAxis, name: str) -> Array:
    """Return the coordinate of each new index of an axis in the old axis."""
    check_elements(axis.length, axis.length, what="the coordinates", width=_COORDINATE)
    return COORDINATES[name](axis).points(axis.length)


def _half_pixel(axis: ResampledAxis) -> Coordinates:
    return Coordinates(1 / axis.scale, _HALF / axis.scale - _HALF)


def _half_pixel_symmetric(axis: ResampledAxis) -> Coordinates:
    """Keep the centre in the centre if the scaled length is not an integer."""
    adjustment = axis.length / (axis.scale * axis.size)
    step, first = _half_pixel(axis)
    return Coordinates(step, first + _HALF * axis.size * (1 - adjustment))


def _pytorch_half_pixel(axis: ResampledAxis) -> Coordinates:
    return _half_pixel(axis) if axis.length > 1 else _POINT


def _align_corners(axis: ResampledAxis) -> Coordinates:
    """Align the ends of the scaled length, which may not be an integer."""
    return (
        Coordinates((axis.size - 1) / (axis.scale * axis.size - 1), Fraction(0))
        if axis.length > 1
        else _POINT
    )


def _tf_crop_and_resize(axis: ResampledAxis) -> Coordinates:
    start, end = (Fraction(side) * (axis.size - 1) for side in (axis.start, axis.end))
    if axis.length <= 1:
        return Coordinates(Fraction(0), (start + end) / 2)
    return Coordinates((end - start) / (axis.length - 1), start)


_POINT = Coordinates(Fraction(0), Fraction(0))
COORDINATES: dict[str, Callable[[ResampledAxis], Coordinates]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": lambda axis: Coordinates(1 / axis.scale, Fraction(0)),
    "tf_half_pixel_for_nn": lambda axis: Coordinates(1 / axis.scale, _HALF / axis.scale),
    CROP: _tf_crop_and_resize,
}

# ---------------------------------------------------------------- values

ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
OUTWARD = "outward"  # the first definition: down if the axis grows, up if it shrinks


def _nearest(axis: ResampledAxis, interpolation: Interpolation) -> Array:
    name = (
        interpolation.nearest if interpolation.nearest != OUTWARD else "ceil" if axis.scale < 1 else "floor"
    )
    return ROUNDINGS[name](coordinates(axis, interpolation.coordinates)).astype(np.int64)


def _interpolated(x: Array, i: int, indices: Array, weights: Array) -> Array:
    """Add one tap after another, each as a whole tensor, or several at a time if there are very many."""
    length, count = indices.shape
    y = np.zeros((*x.shape[:i], length, *x.shape[i + 1 :]), x.dtype)
    column: tuple[int, ...] = (-1, *(1,) * (x.ndim - i - 1))
    spend_work(count * y.nbytes)
    if count > _MANY_TAPS:
        several = max(1, min(count, _BLOCK // y.nbytes))
        spend_operations(-(-count // several))
        for first in range(0, count, several):
            chosen = slice(first, first + several)
            around = np.take(x, indices[:, chosen], i)
            around *= weights[:, chosen].reshape(length, -1, *column[1:]).astype(x.dtype)
            y += around.sum(axis=i + 1)
        return y
    part = np.empty_like(y)
    for tap in range(count):
        np.take(
            x, indices[:, tap], i, out=part, mode="clip"
        )  # none is clipped; without a mode `out` is copied
        part *= weights[:, tap].reshape(column).astype(x.dtype)
        y += part
    return y


def taps(axis: ResampledAxis, interpolation: Interpolation) -> tuple[Array, Array]:
    """Return for each new index the old indices that it reads, possibly outside the axis, and their weights.

    An antialiasing filter is the same kernel, stretched by the factor by which the axis shrinks.
    """
    at = coordinates(axis, interpolation.coordinates)[:, None]
    stretch = float(max(Fraction(1), 1 / axis.scale)) if interpolation.antialias else 1.0
    reach = math.ceil(RADII[interpolation.mode] * stretch)
    check_elements(axis.length * 2 * reach, axis.size, what="the filter", width=_TAP)
    indices: Array = (np.floor(at) + np.arange(1 - reach, reach + 1, dtype=np.float64)).astype(np.int64)
    weights = kernel(interpolation.mode, np.abs(indices - at) / stretch, interpolation.cubic)
    if interpolation.exclude_outside:
        weights = np.where((indices < 0) | (indices >= axis.size), 0.0, weights)
    if interpolation.exclude_outside or interpolation.antialias:
        sums: Array = weights.sum(axis=1, keepdims=True)
        weights /= np.where(sums == 0, 1.0, sums)
    return indices, weights


def kernel(mode: str, distance: Array, a: float) -> Array:
    """Return the weights at some distances; `a` is the slope of the cubic kernel at 1."""
    return _KERNELS[mode](distance, a)


def _hat(distance: Array, _: float) -> Array:
    return np.maximum(0.0, 1.0 - distance)


def _cubic(distance: Array, a: float) -> Array:
    """Return Keys' convolution kernel."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))  # ruff: ignore[magic-value-comparison]  its radius


_KERNELS: dict[str, Callable[[Array, float], Array]] = {"linear": _hat, "cubic": _cubic}
RADII = {"linear": 1, "cubic": 2}  # of the kernels


def _floating(x: Array) -> Array:
    """Return an array in a type to compute in: 16-bit floats as float32, integers as float64."""
    if x.dtype.kind in "iu":
        return x.astype(np.float64)
    if x.dtype.kind == "V":
        return x.astype(np.float32)
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)


def _rounded(y: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return the result in the type `dtype`, rounded for integers."""
    if dtype.kind not in "iu" or y.dtype == dtype:
        return y.astype(dtype, copy=False)
    return saturated(np.rint(y), dtype)


def saturated(whole: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return whole numbers as integers of the type `dtype`, clipped to its range."""
    limits = np.iinfo(dtype.name)
    inside = np.clip(
        whole, limits.min, np.nextafter(float(limits.max), 0) if limits.bits > _EXACT_BITS else limits.max
    )
    return np.where(whole >= float(limits.max), dtype.type(limits.max), inside.astype(dtype))
