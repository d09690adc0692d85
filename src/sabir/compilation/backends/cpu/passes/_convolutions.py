"""Convolution algorithms: the replacement of a Filtered (windows times filters) by products or windows.

    Filtered(windows, w, group)
    depthwise, few taps      slide(sum, windows, w)              one vector of channels a window
    groups of 2, 4, 8        slide(sum, windows, w, mixed=2)     several groups in a vector
    few filters, stride 1    sum of cuts of contract(rows, w')   each tap along a row as a separate filter
    larger than the image    contract(windows, w)                as in the gradient of filters
    a gradient, depthwise    sum of windows * w                  one vector of channels a tap
    else                     contract(permute(windows), w')      im2col without a copy, and GEMM

If both operands are quantized, groups of 2, 4 or 8 channels are products, too (see `quantized-products`).
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from sabir import loops
from sabir.compilation.passes import quantized_of
from sabir.loops import Expression, Filtered
from sabir.loops.walk import rebuilt, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.loops import Size

_MOST_TAPS = 4096  # of a window that a sliding kernel reads
_LANES = 16  # of the widest vectors; the same on every processor, so that results are the same
_MIXED = (2, 4, 8)  # channels, and filters, of a group if a vector has the channels of several groups
_LEAST_CHANNELS = 8  # of an image: with fewer, adding the partial results costs more than it saves


def convolution_algorithms(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return expressions by slot without Filtered: it becomes products or sliding windows."""
    return rewrite(expressions, _rule)


def is_filtered(x: Expression) -> bool:
    """Return whether an expression is a convolution without an algorithm."""
    return isinstance(x, Filtered)


def _rule(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
    if not isinstance(x, Filtered):
        return None
    y = rebuilt(x, new)
    return _chosen(y.windows, y.filters, y.group, finite=y.finite) if isinstance(y, Filtered) else None


def _chosen(found: Expression, w: Expression, group: int, *, finite: bool = False) -> Expression:
    taps, each = w.rank - 2, loops.filters_of(w, group)
    if group > 1 and w.shape[1] == 1 and each == 1 and _are_few(w.shape[2:]):
        return loops.slide("sum", found, taps, loops.squeeze(w, [1]))
    is_mixed = group > 1 and w.shape[1] == each and each in _MIXED and _are_few(w.shape[2:])
    if is_mixed and (quantized_of(found) is None or quantized_of(w) is None):
        return loops.slide_mixed(found, taps, w)
    if group == 1 and _wants_rows(found, w):
        return _by_rows(found, w, each)
    if group > 1 and each == 1 and isinstance(found, loops.Windows):
        split = _unmerged(found.operand, found.operand.rank - 1, w.shape[:2])
        if split is not None:
            return _summed(found, split, w)
    if group == 1 and isinstance(found, loops.Windows) and found.is_large:
        b = loops.permute(w, [*range(1, w.rank), 0])  # filters last, channels first
        return loops.convolve(found, b, found.rank - taps - 1, 1 + taps)
    return loops.as_products(found, w, group, _convolve_finite if finite else loops.convolve)


def _convolve_finite(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
    product = loops.convolve(a, b, rows, depth)
    return replace(product, finite=True) if isinstance(product, loops.Contract) else product


def _wants_rows(found: Expression, w: Expression) -> TypeGuard[loops.Windows]:
    """Return whether the taps along the last axis should be separate filters, whose results are added.

    That is if there are so few filters that a vector has room for several taps of each, and windows are
    adjacent along the last axis.
    """
    if not isinstance(found, loops.Windows) or found.is_large:
        return False
    filters, channels, taps = w.shape[0], w.shape[1], w.shape[-1]
    if not isinstance(filters, int) or not isinstance(channels, int) or not isinstance(taps, int):
        return False
    if found.strides[-1] != 1 or channels < _LEAST_CHANNELS or found.element not in loops.FLOATS:
        return False
    return 2 * math.ceil(filters * taps / _LANES) <= taps * math.ceil(filters / _LANES) and taps > 1


def _by_rows(found: loops.Windows, w: Expression, filters: Size) -> Expression:
    """Return the sum over the taps along the last axis of products over the other taps."""
    x, axis, taps = found.operand, found.axes[-1], w.shape[-1]
    outer = found.shape[x.rank : -1]
    rows: Expression = x
    if outer:
        counts = [found.shape[n] for n in found.axes[:-1]]
        rows = loops.windows(x, found.axes[:-1], outer, counts, found.strides[:-1], found.dilations[:-1])
    split = loops.permute(w, [w.rank - 1, *range(w.rank - 1)])
    every = _chosen(rows, loops.reshape(split, (filters * taps, *split.shape[2:])), 1)
    shape = (*found.shape[: x.rank - 1], filters)
    parts: list[Expression] = []
    for tap in range(taps if isinstance(taps, int) else 0):
        starts: list[Size] = [0] * len(shape)
        starts[axis], starts[-1] = tap * found.dilations[-1], tap * filters
        parts.append(loops.cut(every, starts, shape, (1,) * len(shape)))
    return functools.reduce(functools.partial(loops.apply, "add"), parts)


def _summed(found: loops.Windows, split: Expression, w: Expression) -> Expression:
    """Return the sums of windows times the one filter of each group, with channels in the lanes.

    In the gradient of filters the channels of a group are the images of a batch. `split` is the operand of
    the windows with the channels as two axes, groups and images.
    """
    rank = split.rank
    groups, images, *taps = w.shape
    apart = loops.permute(split, [0, rank - 1, *range(1, rank - 1)])
    axes = [axis + 1 for axis in found.axes]
    counts = [found.shape[axis] for axis in found.axes]
    every = loops.windows(apart, axes, taps, counts, found.strides, found.dilations)
    weights = loops.permute(w, [1, 0, *range(2, w.rank)])
    weights = loops.reshape(weights, (1, images, *(1,) * len(taps), groups, *taps))
    products = loops.apply("mul", every, weights)
    sums = loops.reduce("sum", products, [1, *range(rank, every.rank)])
    return loops.reshape(sums, (split.shape[0], *counts, groups))


def _unmerged(x: Expression, axis: int, sizes: Sequence[Size]) -> Expression | None:
    """Return a tensor whose axis has become two again, if a Reshape has merged axes of these sizes."""
    if isinstance(x, loops.Permute):
        inner = x.axes[axis]
        found = _unmerged(x.operand, inner, sizes)
        if found is None:
            return None
        order = [n + (n > inner) for n in x.axes]
        return loops.permute(found, [*order[: axis + 1], inner + 1, *order[axis + 1 :]])
    shape = (*x.shape[:axis], *sizes, *x.shape[axis + 1 :])
    if isinstance(x, loops.Reshape) and loops.same_shape(x.operand.shape, shape):
        return x.operand
    return None


def _are_few(kernel: Sequence[Size]) -> bool:
    """Return whether the number of taps is known and small enough for a sliding kernel."""
    sizes = [k for k in kernel if isinstance(k, int)]
    return len(sizes) == len(kernel) and math.prod(sizes) <= _MOST_TAPS
