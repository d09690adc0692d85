"""Weighted sums of a few gathered elements, at different indices for each result.

The pixels of images are rows of channels (NHWC). If there are few channels, the pixels are columns (NCHW)
instead, so that vectors have adjacent results.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.ir import product
from sabir.opsets.families.windows.window_kernels import channels_first, channels_last

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression, Size, Sizes

_MOST = 8  # taps that are unrolled; more are reduced by a fold
_FEW = 8  # channels
_LARGEST = 1 << 31  # of 32-bit indices
_COMBINE = {"sum": "add", "max": "max"}


def weighted(
    x: Expression, axis: int, indices: Expression, weights: Expression | None, op: str = "sum"
) -> Expression:
    """Return the sum or maximum over taps of elements along an axis times weights.

    Indices and weights are [taps, ...], where `...` replaces the axis in the shape of the result.
    """
    tail, count = (1,) * (x.rank - axis - 1), indices.shape[0]
    factors = None if weights is None else loops.cast(weights, x.element)
    if not isinstance(count, int) or count > _MOST:
        last = (*range(1, indices.rank), 0)
        terms = loops.take(x, loops.permute(indices, last), axis)
        if factors is not None:
            factors = loops.permute(factors, last)
            terms = loops.apply("mul", terms, loops.reshape(factors, (*factors.shape, *tail)))
        taps = axis + indices.rank - 1
        return loops.squeeze(loops.reduce(op, terms, [taps]), [taps])
    found: Expression | None = None
    for tap in range(count):
        term = loops.take(x, _tap(indices, tap), axis)
        if factors is not None:
            factor = _tap(factors, tap)
            term = loops.apply("mul", term, loops.reshape(factor, (*factor.shape, *tail)))
        found = term if found is None else loops.apply(_COMBINE[op], found, term)
    return x if found is None else found


def _tap(x: Expression, number: int) -> Expression:
    return loops.squeeze(loops.narrow(x, 0, number, 1), [0])


# ---------------------------------------------------------------- images


class Pixels(NamedTuple):
    """The pixels around samples along one axis of images: int64 indices, which are inside, and weights."""

    places: Expression
    inside: Expression
    weights: Expression


def combined(found: Sequence[Pixels], sizes: Sizes) -> Pixels:
    """Return the pixels around samples as row-major numbers in an image, from those along each axis."""
    number, inside, weight = found[0]
    for along, size in zip(found[1:], sizes[1:], strict=True):
        inside = loops.apply("and", inside, along.inside)
        number = loops.apply("add", loops.apply("mul", number, loops.sized("int64", size)), along.places)
        weight = loops.apply("mul", weight, along.weights)
    return Pixels(number, inside, weight)


class Images(NamedTuple):
    """The pixels of images (N, C, ...) as rows of channels or, if there are few channels, as columns.

    `pixels` is their number in all images, `each` in one image. `axis` is the axis of pixels.
    """

    flat: Expression
    pixels: Size
    each: Size
    axis: int

    @classmethod
    def of(cls, x: Expression) -> Images:
        """Return images (N, C, ...) in the layout for their number of channels."""
        channels, each = x.shape[1], product(x.shape[2:]) or 0
        count = x.shape[0] * each
        if isinstance(channels, int) and channels < _FEW:
            transposed = loops.permute(x, (1, 0, *range(2, x.rank)))
            return cls(loops.reshape(transposed, (channels, count)), count, each, 1)
        flat = loops.reshape(channels_last(x), (count, channels))
        if x.shape[0] == 1:  # else it is a view with distant channels: one more row makes it a copy
            flat = loops.pad(flat, (0, 0), (1, 0), 0)
        return cls(flat, count, each, 0)

    def numbers(self, found: Pixels, image: Expression | None) -> Expression:
        """Return the numbers of pixels, 0 for those outside; `image` is None for a single image."""
        number = found.places
        if image is not None:
            number = loops.apply("add", number, loops.apply("mul", image, loops.sized("int64", self.each)))
        number = loops.where(found.inside, number, 0)
        small = isinstance(self.pixels, int) and self.pixels < _LARGEST
        return loops.cast(number, "int32") if small else number

    def read(
        self, numbers: Expression, inside: Expression, weights: Expression | None, op: str = "sum"
    ) -> Expression:
        """Return the pixels [taps, N, ...] at numbers times weights, summed, as (N, C, ...).

        Pixels that are not inside count as 0.
        """
        flat, count = self.flat, numbers.shape[0]
        if self.pixels == 0:
            flat = loops.pad(flat, (0, 0), (0, 1) if self.axis else (1, 0), 0)
        if isinstance(count, int) and 0 < count <= _MOST:
            each = [[None if x is None else _tap(x, n) for x in (inside, weights)] for n in range(count)]
            terms = [self._terms(flat, _tap(numbers, n), *own) for n, own in enumerate(each)]
            y = functools.reduce(functools.partial(loops.apply, _COMBINE[op]), terms)
        else:
            last = (*range(1, numbers.rank), 0)
            own = [None if x is None else loops.permute(x, last) for x in (inside, weights)]
            terms = self._terms(flat, loops.permute(numbers, last), *own)
            taps = self.axis + numbers.rank - 1
            y = loops.squeeze(loops.reduce(op, terms, [taps]), [taps])
        if self.axis == 0:
            return channels_first(y)
        return loops.permute(y, (1, 0, *range(2, y.rank)))

    def _terms(
        self, flat: Expression, numbers: Expression, inside: Expression | None, weights: Expression | None
    ) -> Expression:
        """Return the pixels at numbers times weights, with the axis of channels first or last."""
        found = loops.take(flat, numbers, self.axis)
        shape = (*numbers.shape, 1) if self.axis == 0 else numbers.shape
        if inside is not None:
            found = loops.where(loops.reshape(inside, shape), found, 0)
        if weights is None:
            return found
        return loops.apply("mul", found, loops.reshape(loops.cast(weights, found.element), shape))
