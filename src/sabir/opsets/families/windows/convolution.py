"""Convolution as matrix products over gathered windows, and its transpose, which scatters windows."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import may_be_equal, mod, mul
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.opsets.families.windows.windows import AUTO_PAD, DILATIONS, LEAST_RANK, PADS, STRIDES, Window
from sabir.schema import Attribute, at_least

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Dim, Shape, TensorType
    from sabir.opsets.families.windows.windows import WindowAxis, WindowRange
    from sabir.opsets.typing import Array

GROUP = Attribute(
    "group",
    "int",
    "The number of groups of channels; each has its own filters.",
    default=1,
    values=at_least(1),
)
FILTER_SHAPE = Attribute(
    "kernel_shape",
    "ints",
    "The spatial shape of the filters, (k1, ..., kn); by default that of the weights.",
    values=at_least(1),
)
ATTRIBUTES = (GROUP, PADS, AUTO_PAD, STRIDES, DILATIONS, FILTER_SHAPE)

# Bytes of windows gathered at a time: the product is faster on blocks that stay in the cache than on one
# large block. Large weights are read again for each block, so blocks grow with the weights, up to a limit.
_BLOCK = 4 << 20
_PRODUCTS = 128  # multiplications of bytes that BLAS does while numpy writes one byte
_LARGEST_BLOCK = 32 << 20
_MOST_PHASES = 4  # for each tap; with more phases no tap would read most of them


def convolved_shape(
    x: TensorType,
    w: TensorType,
    bias: TensorType | None,
    *,
    group: int,
    kernel_shape: Sequence[int] | None,
    **window: Any,
) -> Shape | None:
    """Return the shape of `x` (N, C, ...) convolved with `w` (M, C/group, ...); None for an unknown rank.

    `window` contains the other attributes of the window. Raises InferenceError for shapes that do not match.
    """
    rank = spatial_rank(x, w, kernel_shape)
    if rank is None:
        return None
    lengths = (None,) * (rank + 2) if x.shape is None else x.shape
    filters = (None,) * (rank + 2) if w.shape is None else w.shape
    left = mod(filters[0], group)
    if not may_be_equal(lengths[1], mul(filters[1], group)) or (isinstance(left, int) and left):
        raise InferenceError(f"{lengths[1]} channels do not match weights {w} in {group} groups")
    outputs = Window.of(kernel_of(filters, kernel_shape), **window).outputs(lengths[2:])
    check_shape("B", bias, filters[0])
    count = same_dim((filters[0], None if bias is None or bias.shape is None else bias.shape[0]), "filters")
    return lengths[0], count, *outputs


def spatial_rank(x: TensorType, w: TensorType, kernel_shape: Sequence[int] | None) -> int | None:
    """Return the number of spatial axes that `x`, `w` or `kernel_shape` has; None where none is known."""
    ranks = [t.rank for t in (x, w) if t.rank is not None] + ([len(kernel_shape) + 2] if kernel_shape else [])
    if any(r != ranks[0] or r < LEAST_RANK for r in ranks):
        raise InferenceError(
            f"X {x}, W {w} and kernel_shape {kernel_shape} must have the same spatial rank, 1 or more"
        )
    return ranks[0] - 2 if ranks else None


def kernel_of(filters: Sequence[Dim], kernel_shape: Sequence[int] | None) -> list[Dim]:
    """Return the spatial shape of weights (..., ..., k1, ..., kn), which must equal `kernel_shape`."""
    sizes = zip(filters[2:], kernel_shape or (None,) * (len(filters) - 2), strict=True)
    return [same_dim(pair, "kernel_shape and the shape of W") for pair in sizes]


def convolve(x: Array, w: Array, axes: Sequence[WindowAxis], group: int) -> Array:
    """Return `x` (N, C, *lengths) convolved with `w` (M, C/group, *kernel), with the windows of `axes`."""
    if w.shape[0] % group or x.shape[1] != w.shape[1] * group:
        raise InferenceError(f"{x.shape[1]} channels and weights {w.shape} do not match {group} groups")
    counts = [a.windows for a in axes]
    matrix = w.reshape(group, w.shape[0] // group, math.prod(w.shape[1:]))
    if all(a.kernel == 1 and a.begin == a.end == 0 for a in axes):
        _spend(len(x) * math.prod(counts) * w.size, w)
        picked = x[..., *(slice(0, a.windows * a.stride, a.stride) for a in axes)]
        y = matrix @ picked.reshape(len(x), group, w.shape[1], math.prod(counts))
        return y.reshape(len(x), w.shape[0], *counts)
    dtype = np.result_type(x, w)
    y = np.empty(allotted((len(x), *matrix.shape[:2], math.prod(counts)), dtype, x.size), dtype)
    if not y.size:  # an empty batch may have very many windows
        return y.reshape(len(x), w.shape[0], *counts)
    split = x.reshape(len(x), group, w.shape[1], *x.shape[2:])
    _spend(y.size * matrix.shape[2], w)  # before the list of blocks, which may be very long
    if math.prod(w.shape[2:]) > math.prod(counts) and all(a.begin == a.end == 0 for a in axes):
        _fill_by_window(y, split, matrix, axes)
        return y.reshape(len(x), w.shape[0], *counts)
    columns = _Columns(axes, w.dtype)
    blocks = list(_blocks(matrix.shape, counts, w.nbytes, w.itemsize))
    spend_operations(len(x) * len(blocks) * math.prod(w.shape[2:]))
    for item in range(len(x)):
        phases, result = _phases(split[item], axes[-1]), y[item]
        for groups, box, target in blocks:
            gathered = columns.gather([p[groups] for p in phases], box)
            np.matmul(matrix[groups], gathered, out=result[groups, :, target])
    return y.reshape(len(x), w.shape[0], *counts)


def _fill_by_window(y: Array, x: Array, matrix: Array, axes: Sequence[WindowAxis]) -> None:
    """Fill `y` (N, groups, M, windows) where windows have more elements than there are windows.

    The elements of one window of all items are a matrix.
    """
    spend_operations(y.shape[-1])
    weights = matrix.transpose(0, 2, 1)
    for place, corner in enumerate(np.ndindex(*(a.windows for a in axes))):
        window = (
            slice(n * a.stride, n * a.stride + a.dilation * (a.kernel - 1) + 1, a.dilation)
            for n, a in zip(corner, axes, strict=True)
        )
        rows = x[..., *window].reshape(*x.shape[:2], matrix.shape[2])
        y[..., place] = np.matmul(rows.transpose(1, 0, 2), weights).transpose(1, 0, 2)


def convolve_transposed(x: Array, w: Array, axes: Sequence[WindowAxis], group: int) -> Array:
    """Add each element of `x` (N, C, *windows), times `w` (C, M/group, *kernel), to its window of the output.

    `axes` are the windows along each axis of the output.
    """
    if x.shape[1] % group or x.shape[1] != w.shape[0]:
        raise InferenceError(f"{x.shape[1]} channels and weights {w.shape} do not match {group} groups")
    kernel, outer, lengths = w.shape[2:], w.shape[1], [a.length for a in axes]
    matrix = w.reshape(group, w.shape[0] // group, math.prod(w.shape[1:])).transpose(0, 2, 1)
    dtype = np.result_type(x, w)
    y = np.zeros(allotted((len(x), group, outer, *lengths), dtype, x.size), dtype)
    if not x.size:
        return y.reshape(len(x), group * outer, *lengths)
    split = x.reshape(len(x), group, w.shape[0] // group, math.prod(x.shape[2:]))
    _spend(x.size * w[0].size, w, len(x) * math.prod(kernel))
    shape = (group, w.shape[0] // group, matrix.shape[1])
    buffers: dict[tuple[int, ...], Array] = {}
    for groups, box, target in _blocks(shape, x.shape[2:], w.nbytes, w.itemsize):
        sizes = [b.stop - b.start for b in box]
        size = (groups.stop - groups.start, matrix.shape[1], target.stop - target.start)
        columns = buffers.setdefault(size, np.empty(size, y.dtype))
        for item in range(len(x)):
            np.matmul(matrix[groups], split[item, groups, :, target], out=columns)
            scatter(columns.reshape(size[0], outer, *kernel, *sizes), y[item, groups], axes, box)
    return y.reshape(len(x), group * outer, *lengths)


def _spend(products: int, w: Array, operations: int = 0) -> None:
    """Count multiplications by weights as work."""
    spend_operations(operations, products * w.itemsize // _PRODUCTS)


def scatter(columns: Array, image: Array, axes: Sequence[WindowAxis], box: Sequence[slice]) -> None:
    """Add windows (..., *kernel, *windows in `box`) to the part of `image` (..., *lengths) they cover."""
    runs = [[a.run(t, b.start, b.stop) for t in range(a.kernel)] for a, b in zip(axes, box, strict=True)]
    taps = np.ndindex(*(a.kernel for a in axes))
    for tap, chosen in zip(taps, itertools.product(*runs), strict=True):
        inside = (slice(r.start - b.start, r.stop - b.start) for b, r in zip(box, chosen, strict=True))
        target = image[..., *(r.source for r in chosen)]
        target += columns[..., *tap, *inside]


def _phases(image: Array, last: WindowAxis) -> list[Array]:
    """Split the last axis by its stride, once: each tap then reads adjacent elements."""
    if last.stride == 1 or last.kernel == 1 or last.stride >= min(last.length, _MOST_PHASES * last.kernel):
        return [image]
    return [np.ascontiguousarray(image[..., p :: last.stride]) for p in range(last.stride)]


class _Columns:
    """The windows of an image as the columns of a matrix, in buffers that blocks of one shape share."""

    def __init__(self, axes: Sequence[WindowAxis], dtype: np.dtype[np.generic]) -> None:
        self.axes, self.dtype = axes, dtype
        self.kernel = tuple(a.kernel for a in axes)
        self.buffers: dict[tuple[int, ...], Array] = {}

    def gather(self, phases: Sequence[Array], box: Sequence[slice]) -> Array:
        """Return (groups, channels * taps, windows) of the windows in `box`."""
        sizes = tuple(b.stop - b.start for b in box)
        groups, channels = phases[0].shape[:2]
        shape = (groups, channels, *self.kernel, *sizes)
        if shape not in self.buffers:
            self.buffers[shape] = np.zeros(shape, self.dtype)
        buffer = self.buffers[shape]
        runs = [
            [a.run(t, b.start, b.stop) for t in range(a.kernel)] for a, b in zip(self.axes, box, strict=True)
        ]
        for tap, chosen in zip(np.ndindex(self.kernel), itertools.product(*runs), strict=True):
            self._copy(buffer[:, :, *tap], phases, box, chosen)
        return buffer.reshape(groups, channels * math.prod(self.kernel), math.prod(sizes))

    def _copy(
        self, column: Array, phases: Sequence[Array], box: Sequence[slice], runs: Sequence[WindowRange]
    ) -> None:
        """Copy what one tap reads; its padding is 0 already unless an earlier block overwrote it."""
        if any(
            b.stop - b.start < a.windows and r.stop - r.start < b.stop - b.start
            for a, b, r in zip(self.axes, box, runs, strict=True)
        ):
            column[...] = 0
        *outer, last = (r.source for r in runs)
        image = phases[0]
        if len(phases) > 1:
            begin: int = last.start
            first, phase = divmod(begin, len(phases))
            image, last = phases[phase], slice(first, first + runs[-1].stop - runs[-1].start)
        target = (slice(r.start - b.start, r.stop - b.start) for b, r in zip(box, runs, strict=True))
        column[..., *target] = image[..., *outer, last]


def _blocks(
    weights: tuple[int, int, int], counts: Sequence[int], weight_bytes: int, itemsize: int
) -> Iterator[tuple[slice, tuple[slice, ...], slice]]:
    """Yield for each block its groups, its windows, and the flat position of these windows in the output."""
    group, _, taps = weights
    fitting = max(1, min(max(_BLOCK, weight_bytes), _LARGEST_BLOCK) // (itemsize * max(1, taps)))  # columns
    whole = math.prod(counts)
    several = min(group, max(1, fitting // max(1, whole)))
    steps = _steps(counts, fitting)
    starts = [range(0, n, s) for n, s in zip(counts, steps, strict=True)]
    for first in range(0, group, several):
        for corner in itertools.product(*starts):
            box = tuple(slice(c, min(c + s, n)) for c, s, n in zip(corner, steps, counts, strict=True))
            target = int(np.ravel_multi_index(corner, counts))
            size = math.prod(b.stop - b.start for b in box)
            yield slice(first, min(first + several, group)), box, slice(target, target + size)


def _steps(counts: Sequence[int], most: int) -> list[int]:
    """Return the sizes of a block of at most `most` windows that is contiguous in the output."""
    steps: list[int] = []
    for i, n in enumerate(counts):
        inner = math.prod(counts[i + 1 :])
        fitting = min(n, max(1, most // max(1, inner)))
        blocks = max(1, -(-n // max(1, fitting)))
        steps.append(max(1, -(-n // blocks)))  # blocks of equal size share a buffer
        if inner <= most:
            return [*steps, *(max(1, c) for c in counts[i + 1 :])]
    return steps
