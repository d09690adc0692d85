"""Deformable convolution as tensor expressions: im2col with interpolated taps, then a product."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.loops import NotLowered
from sabir.opsets.families.windows.tap_kernels import Images, Pixels, combined
from sabir.opsets.families.windows.window_kernels import (
    channels_first,
    known,
    padding_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression, Size, Sizes
    from sabir.opsets.families.windows.windows import Window
    from sabir.opsets.typing import Array


def deformed(
    x: Expression, w: Expression, offset: Expression, mask: Expression | None, window: Window, group: int,
    offset_group: int,
) -> Expression:  # fmt: skip
    """Return DeformConv of `x` (N, C, ...) by `w` (M, C/group, ...), without its bias."""
    if not loops.equal(x.shape[1], known(w.shape[1] * group)):
        raise NotLowered(
            f"whether {x.shape[1]} channels match weights of {w.shape[1]} is known at run time only"
        )
    each = loops.divided(x.shape[1], offset_group)
    sizes = [None if k is None else loops.fixed(k) for k in window.kernel]
    kernel = [k for k in sizes if k is not None]
    if each is None or len(kernel) < len(window.kernel):
        raise NotLowered("the channels of a group, or the size of the windows, is unknown")
    batch, rank = x.shape[0], len(kernel)
    pixels = combined(_pixels(x, offset, window, kernel, offset_group), x.shape[2:])
    images = Images.of(loops.reshape(x, (batch * offset_group, each, *x.shape[2:])))
    numbers = images.numbers(pixels, _image(batch, offset_group, rank))
    samples = images.read(numbers, pixels.inside, pixels.weights)
    if mask is not None:  # after the sum: a factor may be infinite, and the weight of a corner 0
        parts = loops.reshape(mask, (batch, offset_group, math.prod(kernel), *mask.shape[2:]))
        factors = loops.permute(parts, _turned(rank))
        samples = loops.apply("mul", samples, loops.reshape(factors, (batch, 1, *factors.shape[1:])))
    columns = _by_channels(samples, x.shape[1])
    filters = loops.reshape(w, (*w.shape[:2], math.prod(kernel)))
    return channels_first(loops.filtered(columns, filters, group))


def _turned(rank: int) -> tuple[int, ...]:
    """Return the permutation that moves the groups of offsets behind windows and taps."""
    return (0, *range(3, 3 + rank), 2, 1)


def _pixels(
    x: Expression, offset: Expression, window: Window, kernel: Sequence[int], groups: int
) -> list[Pixels]:
    """Return the pixels around the taps of all windows, along each axis."""
    counts = tuple(known(n) for n in window.outputs(x.shape[2:]))
    before, _ = padding_of(window, x.shape[2:], counts)
    rank, many = len(kernel), math.prod(kernel)
    offsets = loops.reshape(offset, (x.shape[0], groups, many, rank, *counts))
    found: list[Pixels] = []
    for i, size in enumerate(x.shape[2:]):
        moved = loops.permute(loops.squeeze(loops.narrow(offsets, 3, i, 1), [3]), _turned(rank))
        start = loops.apply("mul", loops.count(_along(counts, i), i + 1), window.strides[i])
        start = loops.apply("sub", start, loops.sized("int64", before[i]))
        taps = np.indices(kernel)[i].reshape(many, 1) * window.dilations[i]
        origin = loops.cast(loops.apply("add", start, loops.tensor(taps.astype(np.int64))), moved.element)
        corner = np.indices((2,) * rank)[i].reshape(-1)
        found.append(_around(loops.apply("add", moved, origin), size, corner))
    return found


def _along(counts: Sizes, axis: int) -> Sizes:
    """Return a shape [N, windows..., taps, groups] in which one axis of windows counts."""
    return (1, *(n if i == axis else 1 for i, n in enumerate(counts)), 1, 1)


def _image(batch: Size, groups: int, rank: int) -> Expression | None:
    """Return the number of the image that each sample reads: an item of the batch and a group of channels."""
    if batch == 1 and groups == 1:
        return None
    ones = (1,) * (rank + 1)
    item = loops.apply("mul", loops.count((batch, *ones, 1), 0), groups)
    return loops.apply("add", item, loops.count((1, *ones, groups), rank + 2))


def _around(at: Expression, size: Size, corner: Array) -> Pixels:
    """Return the pixels around coordinates along an axis, with the weight of each corner."""
    side = loops.tensor(corner.astype(np.float64).reshape(-1, *(1,) * at.rank))
    pixels = loops.apply("add", loops.apply("floor", at), loops.cast(side, at.element))
    inside = loops.apply("ge", pixels, 0), loops.apply("lt", pixels, loops.sized(at.element, size))
    within = loops.apply("and", *inside)
    share = loops.apply("sub", 1, loops.apply("abs", loops.apply("sub", at, pixels)))
    places = loops.cast(loops.where(within, pixels, 0), "int64")
    return Pixels(places, within, loops.where(within, share, 0))


def _by_channels(y: Expression, channels: Size) -> Expression:
    """Return samples [N, C/groups, windows..., taps, groups] as windows [N, windows..., C, taps]."""
    rank = y.rank
    y = loops.permute(y, (0, *range(2, rank), 1))
    y = loops.reshape(y, (*y.shape[:-2], channels))
    return loops.permute(y, (*range(y.rank - 2), y.rank - 1, y.rank - 2))
