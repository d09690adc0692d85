"""Tensors read at other places than they were sampled at, one axis after another.

A new axis asks for coordinates in the old one; the value there is that of the nearest place, or a weighted
sum over the places around. The weights of an axis do not depend on the others, so each is done by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import check_elements, spend_work
from sabir.ir import floor_div, mul
from sabir.opsets.families.sizes import allotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

_EXACT_BITS = 53  # of a float64; the ends of larger integers are none
_PLACE = 32  # bytes, about, of a coordinate while it is made
_MANY_TAPS, _BLOCK = 64, 1 << 22  # bytes
_PART = 1 << 18  # elements of the result, or of what it is made from, that are computed at a time
_TAP = 48  # bytes, about, of a place in the filter while it is made
_MOST_LEGIBLE = 64  # larger denominators come from scales like 0.6, and would say little in a symbolic size


class Axis(NamedTuple):
    """One axis: its old and new length, the scale between them, and the part of it that is read."""

    size: int
    length: int
    scale: Fraction
    start: float = 0.0
    end: float = 1.0

    def is_kept(self, *, crops: bool) -> bool:
        """Whether nothing happens to this axis."""
        whole = not crops or (self.start, self.end) == (0.0, 1.0)
        return self.scale == 1 and self.size == self.length and whole


@dataclass(frozen=True, slots=True)
class Manner:
    """How values between the old places are made."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


def scaled(dim: Dim, scale: float | Fraction) -> Dim:
    """Return floor(dim * scale), None where the size is a symbol and the scale no simple fraction."""
    exact = Fraction(scale)
    if isinstance(dim, int):
        return math.floor(dim * exact)
    if exact.denominator > _MOST_LEGIBLE:
        return None
    return floor_div(mul(dim, exact.numerator), exact.denominator)


def resample(x: Array, axes: Sequence[Axis], manner: Manner) -> Array:
    """Return `x` with every axis resampled, those first that shrink most."""
    crops = manner.coordinates == CROP
    changed = [i for i, axis in enumerate(axes) if not axis.is_kept(crops=crops)]
    if manner.mode != "nearest" and x.dtype.kind in "bO":
        raise ValueError("flags and strings cannot be interpolated")
    if any(axes[i].size == 0 and axes[i].length for i in changed):
        raise ValueError(f"a shape of {list(x.shape)} has nothing to make {[a.length for a in axes]} from")
    allotted([axis.length for axis in axes], x.dtype, x.size)
    changed.sort(key=lambda i: axes[i].scale)
    if not changed:
        return x.copy()
    y = np.empty([axis.length for axis in axes], x.dtype)
    if not y.size:
        return y
    tables = {i: _table(axes[i], manner) for i in changed}
    for source, target, part in _blocks(axes, tables):
        y[target] = _resampled(x[source], part, x.dtype)
    for i in changed if crops else ():
        places = coordinates(axes[i], CROP)
        beyond = (places < 0) | (places > axes[i].size - 1)
        y[(slice(None),) * i + (beyond,)] = manner.extrapolation
    return y


class Table(NamedTuple):
    """For each new place along an axis the old places that it is made of, and their weights; or just one."""

    places: Array
    weights: Array | None


def _table(axis: Axis, manner: Manner) -> Table:
    places, weights = (_nearest(axis, manner), None) if manner.mode == "nearest" else taps(axis, manner)
    return Table(np.clip(places, 0, axis.size - 1, out=places), weights)  # beyond the ends are the ends


def _blocks(
    axes: Sequence[Axis], tables: Mapping[int, Table]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...], dict[int, Table]]]:
    """Cut the result along its longest axis; yield what each part is read from, its place, and its tables."""
    along = max(range(len(axes)), key=lambda i: axes[i].length)
    length, whole = axes[along].length, (slice(None),) * along
    step = max(1, _PART * length // math.prod(max(a.length, a.size) for a in axes))
    for first in range(0, length, step):
        target = slice(first, first + step)
        if along not in tables:
            yield (*whole, target), (*whole, target), dict(tables)
            continue
        places, weights = tables[along]
        places = places[target]
        low, high = int(places.min()), int(places.max())
        part = Table(places - low, None if weights is None else weights[target])
        yield (*whole, slice(low, high + 1)), (*whole, target), {**tables, along: part}


def _resampled(x: Array, tables: Mapping[int, Table], dtype: np.dtype[Any]) -> Array:
    """Read one part along each axis that changes, in the order of `tables`."""
    for i, (places, weights) in tables.items():
        x = np.take(x, places, i) if weights is None else _interpolated(_floating(x), i, places, weights)
    return _rounded(x, dtype)


# ---------------------------------------------------------------- coordinates

CROP = "tf_crop_and_resize"
_HALF = Fraction(1, 2)


class Line(NamedTuple):
    """Coordinates at equal distances, as exact numbers, since an error would tip a tie between two places."""

    step: Fraction
    first: Fraction

    def points(self, count: int) -> Array:
        """Return so many coordinates, each rounded once."""
        whole = math.lcm(self.step.denominator, self.first.denominator)
        steps = np.arange(count, dtype=np.float64) * float(self.step * whole)
        return (steps + float(self.first * whole)) / float(whole)


def coordinates(axis: Axis, name: str) -> Array:
    """Return for each new place along an axis where it lies in the old one."""
    check_elements(axis.length, axis.length, what="the coordinates", width=_PLACE)
    return COORDINATES[name](axis).points(axis.length)


def _half_pixel(axis: Axis) -> Line:
    return Line(1 / axis.scale, _HALF / axis.scale - _HALF)


def _half_pixel_symmetric(axis: Axis) -> Line:
    """Keep the middle in the middle where the scale gives a length that is no whole number."""
    adjustment = axis.length / (axis.scale * axis.size)
    step, first = _half_pixel(axis)
    return Line(step, first + _HALF * axis.size * (1 - adjustment))


def _pytorch_half_pixel(axis: Axis) -> Line:
    return _half_pixel(axis) if axis.length > 1 else _POINT


def _align_corners(axis: Axis) -> Line:
    """The last new place is the one that the scale asks for, also where there is no whole one."""
    return Line((axis.size - 1) / (axis.scale * axis.size - 1), Fraction(0)) if axis.length > 1 else _POINT


def _tf_crop_and_resize(axis: Axis) -> Line:
    start, end = (Fraction(side) * (axis.size - 1) for side in (axis.start, axis.end))
    if axis.length <= 1:
        return Line(Fraction(0), (start + end) / 2)
    return Line((end - start) / (axis.length - 1), start)


_POINT = Line(Fraction(0), Fraction(0))
COORDINATES: dict[str, Callable[[Axis], Line]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": lambda axis: Line(1 / axis.scale, Fraction(0)),
    "tf_half_pixel_for_nn": lambda axis: Line(1 / axis.scale, _HALF / axis.scale),
    CROP: _tf_crop_and_resize,
}

# ---------------------------------------------------------------- values

ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda places: np.ceil(places - 0.5),
    "round_prefer_ceil": lambda places: np.floor(places + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
OUTWARD = "outward"  # before opset 11: down where the axis grows, up where it shrinks


def _nearest(axis: Axis, manner: Manner) -> Array:
    name = manner.nearest if manner.nearest != OUTWARD else "ceil" if axis.scale < 1 else "floor"
    return ROUNDINGS[name](coordinates(axis, manner.coordinates)).astype(np.int64)


def _interpolated(x: Array, i: int, places: Array, weights: Array) -> Array:
    """Add up one tap after another, each a whole tensor; where there are very many, a few at a time."""
    length, count = places.shape
    y = np.zeros((*x.shape[:i], length, *x.shape[i + 1 :]), x.dtype)
    column: tuple[int, ...] = (-1, *(1,) * (x.ndim - i - 1))
    spend_work(count * y.nbytes)
    if count > _MANY_TAPS:
        several = max(1, min(count, _BLOCK // y.nbytes))
        spend_work(0, -(-count // several))
        for first in range(0, count, several):
            chosen = slice(first, first + several)
            around = np.take(x, places[:, chosen], i)
            around *= weights[:, chosen].reshape(length, -1, *column[1:]).astype(x.dtype)
            y += around.sum(axis=i + 1)
        return y
    part = np.empty_like(y)
    for tap in range(count):
        np.take(x, places[:, tap], i, out=part, mode="clip")  # no place is; without a mode `out` is copied
        part *= weights[:, tap].reshape(column).astype(x.dtype)
        y += part
    return y


def taps(axis: Axis, manner: Manner) -> tuple[Array, Array]:
    """Return for each new place the old ones that it is made of, also beyond the ends, and their weights.

    An antialiasing filter is the same kernel, stretched until it covers what one new place stands for.
    """
    radius, _ = _KERNELS[manner.mode]
    at = coordinates(axis, manner.coordinates)[:, None]
    stretch = float(max(Fraction(1), 1 / axis.scale)) if manner.antialias else 1.0
    reach = math.ceil(radius * stretch)
    check_elements(axis.length * 2 * reach, axis.size, what="the filter", width=_TAP)
    places: Array = (np.floor(at) + np.arange(1 - reach, reach + 1, dtype=np.float64)).astype(np.int64)
    weights = kernel(manner.mode, np.abs(places - at) / stretch, manner.cubic)
    if manner.exclude_outside:
        weights = np.where((places < 0) | (places >= axis.size), 0.0, weights)
    if manner.exclude_outside or manner.antialias:
        sums: Array = weights.sum(axis=1, keepdims=True)
        weights /= np.where(sums == 0, 1.0, sums)
    return places, weights


def kernel(mode: str, distance: Array, a: float) -> Array:
    """Return the weights of places at some distances; `a` is the slope of the cubic kernel at 1."""
    return _KERNELS[mode][1](distance, a)


def _hat(distance: Array, _: float) -> Array:
    return np.maximum(0.0, 1.0 - distance)


def _cubic(distance: Array, a: float) -> Array:
    """Keys' convolution kernel."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))  # ruff: ignore[magic-value-comparison]  its radius


_KERNELS: dict[str, tuple[int, Callable[[Array, float], Array]]] = {"linear": (1, _hat), "cubic": (2, _cubic)}


def _floating(x: Array) -> Array:
    """Return an array to compute with: halves as float32, integers as float64."""
    if x.dtype.kind in "iu":
        return x.astype(np.float64)
    return (
        x.astype(np.promote_types(x.dtype, np.float32), copy=False)
        if x.dtype.kind != "V"
        else x.astype(np.float32)
    )


def _rounded(y: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return the result in its type, rounded to whole numbers for integers."""
    if dtype.kind not in "iu" or y.dtype == dtype:
        return y.astype(dtype, copy=False)
    return saturated(np.rint(y), dtype)


def saturated(whole: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return whole numbers as integers of this type, those beyond its range as its ends."""
    limits = np.iinfo(dtype.name)
    inside = np.clip(
        whole, limits.min, np.nextafter(float(limits.max), 0) if limits.bits > _EXACT_BITS else limits.max
    )
    return np.where(whole >= float(limits.max), dtype.type(limits.max), inside.astype(dtype))
