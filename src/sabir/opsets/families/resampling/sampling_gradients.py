"""The gradients of images that are sampled at computed coordinates, by the image and by the coordinates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple

from sabir.elements import INT64
from sabir.opsets.families.indexing.move_gradients import as_numbers, zeros_of
from sabir.opsets.families.numbers.scalars import Numbers, element_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Value
    from sabir.opsets.typing import Gradient

_FAR = 8  # pixels outside the image: farther coordinates read only padding
_SLOPE = -0.75  # of the cubic kernel
# the cubic kernel up to the distance 1, and from there to 2, by falling powers of the distance
_NEAR = (_SLOPE + 2, -(_SLOPE + 3), 0.0, 1.0)
_OUTER = (_SLOPE, -5 * _SLOPE, 8 * _SLOPE, -4 * _SLOPE)


class Tap(NamedTuple):
    """A pixel near each coordinate along an axis: its index, and its weight, which is 0 outside of the image.

    `slope` is the derivative of the weight by the coordinate.
    """

    pixel: Value
    weight: Value
    slope: Value | None


@dataclass(frozen=True)
class SampledAxis:
    """An axis of images of `size` pixels, and the coordinate of each sample, from -1 to 1."""

    g: Gradient
    coordinate: Value
    size: Value  # one int64
    aligned: bool
    padding: str
    mode: str

    @cached_property
    def _length(self) -> Value:
        return self.g.Cast(self.size, to=element_of(self.coordinate).number)

    @cached_property
    def scale(self) -> Value:
        """The number of pixels for a step of 1."""
        length = self._length
        return self.g.Div(self.g.Sub(length, 1) if self.aligned else length, 2)

    @cached_property
    def _reach(self) -> Value:
        """The distance of the limits at which coordinates are mirrored."""
        return self.g.Sub(self._length, 1) if self.aligned else self._length

    @cached_property
    def _period(self) -> Value:
        """Twice that distance, or another number than 0."""
        return self.g.Mul(self.g.Where(self.g.Greater(self._reach, 0), self._reach, 1), 2)

    def sampled(self) -> tuple[list[Tap], Value | None]:
        """Return the pixels that are read, and the sign of a step; None where nothing depends on it."""
        g = self.g
        at = g.Mul(g.Add(self.coordinate, 1), self.scale)
        at = at if self.aligned else g.Sub(at, 0.5)
        if self.mode == "nearest":
            at = g.Round(at)
        at, sign = self._mirrored(at) if self.padding == "reflection" else (at, None)
        return self.taps(at), None if self.mode == "nearest" else sign

    def taps(self, at: Value) -> list[Tap]:
        """Return the pixels that are read for coordinates in pixels."""
        g, far = self.g, self.g.Add(self._length, _FAR)
        at = g.Min(g.Max(g.Where(g.IsNaN(at), -_FAR, at), -_FAR), far)
        if self.mode == "nearest":
            return [self._tap(at, 0, None, None)]
        before = g.Floor(at)
        part = g.Sub(at, before)
        weights = (_linear if self.mode == "linear" else _cubic)(g, part)
        return [self._tap(before, offset, *weight) for offset, weight in weights]

    def _mirrored(self, at: Value) -> tuple[Value, Value]:
        """Mirror coordinates at the limits until they are inside; return them and their directions."""
        g, reach, period = self.g, self._reach, self._period
        low = 0.0 if self.aligned else -0.5
        phase = g.Mod(g.Sub(at, low), period, fmod=1)
        phase = g.Where(g.Less(phase, 0), g.Add(phase, period), phase)
        ahead = g.LessOrEqual(phase, reach)
        inside = g.Where(ahead, phase, g.Sub(period, phase))
        sign = g.Where(ahead, 1, Numbers.like(g, at)(-1))
        constant = g.LessOrEqual(reach, 0)
        mirrored = g.Add(g.Where(constant, 0, inside), low)
        return mirrored, g.Where(constant, 0, sign)

    def _tap(self, before: Value, offset: int, weight: Value | None, slope: Value | None) -> Tap:
        g, at = self.g, self.g.Add(before, offset) if offset else before
        if self.padding == "reflection":
            at, _ = self._mirrored(at)
        number, last = g.Cast(at, to=INT64.number), g.Sub(self.size, 1)
        pixel = g.Max(g.Min(number, last), 0)
        inside = g.Equal(pixel, number if self.padding != "border" else pixel)
        if weight is None:
            return Tap(pixel, as_numbers(g, inside, self.coordinate), None)
        if self.padding == "border":
            return Tap(pixel, weight, slope)
        return Tap(pixel, g.Where(inside, weight, 0), None if slope is None else g.Where(inside, slope, 0))


def _linear(g: Gradient, part: Value) -> list[tuple[int, tuple[Value, Value]]]:
    """Return the pixels before and after, with weights and their derivatives, by the part of the way."""
    number = Numbers.like(g, part)
    return [(0, (g.Sub(1, part), number(-1))), (1, (part, number(1)))]


def _cubic(g: Gradient, part: Value) -> list[tuple[int, tuple[Value, Value]]]:
    found: list[tuple[int, tuple[Value, Value]]] = []
    for offset, kernel in ((-1, _OUTER), (0, _NEAR), (1, _NEAR), (2, _OUTER)):
        distance = g.Sub(offset, part) if offset > 0 else g.Sub(part, offset)
        slope = _polynomial(g, [n * c for n, c in zip((3, 2, 1), kernel, strict=False)], distance)
        weight = _polynomial(g, kernel, distance)
        found.append((offset, (weight, g.Neg(slope) if offset > 0 else slope)))
    return found


def _polynomial(g: Gradient, coefficients: Sequence[float], x: Value) -> Value:
    first, *rest = coefficients
    value = g.Mul(x, first)
    for number in rest[:-1]:
        value = g.Mul(g.Add(value, number), x)
    return g.Add(value, rest[-1])


class Corner(NamedTuple):
    """One pixel for each sample: its number among those of all images, and its weight along each axis."""

    number: Value
    taps: tuple[Tap, ...]


def corners(g: Gradient, batch: Value, sizes: Sequence[Value], axes: Sequence[Sequence[Tap]]) -> list[Corner]:
    """Return all pixels that the samples read; `batch` has the number of the image of each sample."""
    found: list[Corner] = []
    for taps in itertools.product(*axes):
        number = batch
        for tap, size in zip(taps, sizes, strict=True):
            number = g.Add(g.Mul(number, size), tap.pixel)
        found.append(Corner(number, taps))
    return found


def weight_of(g: Gradient, corner: Corner, derived: int | None = None) -> Value:
    """Return the weight of a corner, or its derivative by one coordinate."""
    factors = [t.slope if i == derived else t.weight for i, t in enumerate(corner.taps)]
    return reduce(g.Mul, (f for f in factors if f is not None))


def of_pixels(g: Gradient, image: Value, dy: Value, found: Sequence[Corner]) -> Value:
    """Return the gradient of pixels (pixels, channels), from that of samples (samples, channels)."""
    updates = [g.Mul(dy, g.Unsqueeze(in_type_of(g, weight_of(g, c), image), [1])) for c in found]
    numbers = [g.Unsqueeze(c.number, [1]) for c in found]
    rows = zeros_of(g, g.Shape(image), image)
    if len(found) == 1:
        return g.ScatterND(rows, numbers[0], updates[0], reduction="add")
    return g.ScatterND(rows, g.Concat(*numbers, axis=0), g.Concat(*updates, axis=0), reduction="add")


def in_type_of(g: Gradient, x: Value, like: Value) -> Value:
    """Return a tensor in the element type of another."""
    kind = element_of(like)
    return x if element_of(x) is kind else g.Cast(x, to=kind.number)


def rows_of(g: Gradient, image: Value) -> Value:
    """Return images (N, C, ...) as pixels (N * ..., C)."""
    rank = g.rank(image)
    return g.Flatten(g.Transpose(image, perm=[0, *range(2, rank), 1]), axis=rank - 1)


def image_of(g: Gradient, rows: Value, like: Value) -> Value:
    """Return pixels (N * ..., C) as images of the shape of `like`."""
    rank, sizes = g.rank(like), g.sizes(like)
    apart = g.Reshape(rows, g.Gather(sizes, [0, *range(2, rank), 1]), allowzero=1)
    return g.Transpose(apart, perm=[0, rank - 1, *range(1, rank - 1)])


def of_grid_sample(
    g: Gradient,
    x: Value,
    grid: Value,
    aligned: bool,  # ruff: ignore[boolean-type-hint-positional-argument]  an attribute
    padding: str,
    mode: str,
) -> tuple[Value, Value]:
    """Return the gradients of images and of the grid of coordinates at which GridSample samples them."""
    rank = g.rank(x) - 2
    sizes = [g.Gather(g.sizes(x), [i + 2]) for i in range(rank)]
    places = [g.Reshape(g.Gather(grid, -1 - i, axis=-1), [-1]) for i in range(rank)]
    axes = [
        SampledAxis(g, place, size, aligned, padding, mode) for place, size in zip(places, sizes, strict=True)
    ]
    sampled = [axis.sampled() for axis in axes]
    found = corners(g, _batches(g, grid), sizes, [taps for taps, _ in sampled])
    image, dy = rows_of(g, x), rows_of(g, g.dy)
    dx = image_of(g, of_pixels(g, image, dy, found), x)
    if mode == "nearest":
        return dx, g.zeros(grid)
    read = [
        in_type_of(g, g.ReduceSum(g.Mul(dy, g.Gather(image, c.number, axis=0)), [1], keepdims=0), grid)
        for c in found
    ]
    d_places: list[Value] = []
    for number, (axis, (_, sign)) in enumerate(zip(axes, sampled, strict=True)):
        parts = [g.Mul(v, weight_of(g, c, number)) for v, c in zip(read, found, strict=True)]
        step = axis.scale if sign is None else g.Mul(axis.scale, sign)
        d_places.append(g.Unsqueeze(g.Mul(g.Sum(*parts), step), [1]))
    return dx, g.Reshape(g.Concat(*reversed(d_places), axis=1), g.sizes(grid), allowzero=1)


def _batches(g: Gradient, grid: Value) -> Value:
    """Return the number of the image that each sample reads."""
    shape = g.Shape(grid, end=-1)
    numbers = g.Range(0, g.Squeeze(g.Shape(grid, end=1), [0]), 1)
    apart = g.Unsqueeze(numbers, [*range(1, g.rank(grid) - 1)])
    return g.Reshape(g.Expand(apart, shape), [-1])
