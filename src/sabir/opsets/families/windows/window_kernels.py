"""Convolutions and poolings as tensor expressions, computed with the channels last."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from sabir import loops
from sabir.ir import add, dim_max, floor_div, mul, product, sub
from sabir.loops import INTEGERS, Expression, NotLowered
from sabir.opsets.families.lowering.kernels import unless_finite
from sabir.opsets.families.windows.convolution import kernel_of
from sabir.opsets.families.windows.edge_windows import by_parts, trimmed
from sabir.opsets.families.windows.windows import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Dim
    from sabir.loops import Size, Sizes

    Product: TypeAlias = Callable[[Expression, Expression, int, int], Expression]

_MOST_TAPS = 4096  # of a window that a kernel combines
_LANES = 16  # of the widest vectors, which filters side by side fill
_MIXED = (2, 4, 8)  # channels of a group of which a vector has several, and as many filters
_MOST_FILTERS = 8  # of a channel alone, which is repeated for each: more are a product
_LEAST_CHANNELS = 8  # of an image: with fewer, sums of results cost what they save


def convolved(
    x: Expression, w: Expression, bias: Expression | None, *, group: int,
    kernel_shape: Sequence[int] | None, **attributes: Any,
) -> Expression:  # fmt: skip
    """Return `x` (N, C, ...) convolved with `w` (M, C/group, ...) as Conv does it."""
    window = Window.of(kernel_of(w.shape, kernel_shape), **attributes)
    if not loops.equal(x.shape[1], known(mul(w.shape[1], group))):
        raise NotLowered(
            f"whether {x.shape[1]} channels match weights of {w.shape[1]} is known at run time only"
        )
    filters, y = w, None
    if loops.is_finite(w) is not False:  # products of padding with others are NaN
        w, window = trimmed(x, w, window)
        y = by_parts(x, w, window, _ungrouped) if group == 1 and x.element in loops.FLOATS else None
    leaves_out = y is not None or w is not filters
    if y is None:
        each = filters_of(w, group)
        alone = group > 1 and w.shape[1] == 1 and _are_few(w.shape[2:])
        if alone and isinstance(each, int) and 1 < each <= _MOST_FILTERS:
            x, group, each = _repeated(x, each), group * each, 1
        found = windows_of(x, window, 0, multiplied=True)
        y = channels_first(filtered(found, w, group, each))
    checked = unless_finite(filters) if leaves_out else None
    if checked is not None:
        y = loops.apply("add", y, checked)
    if bias is None:
        return y
    return loops.apply("add", y, loops.reshape(bias, (w.shape[0], *(1,) * len(window.kernel))))


def _ungrouped(x: Expression, w: Expression, window: Window) -> Expression:
    return channels_first(filtered(windows_of(x, window, 0, multiplied=True), w, 1, w.shape[0]))


def _repeated(x: Expression, times: int) -> Expression:
    """Return each channel of `x` (N, C, ...) so many times in turn."""
    batch, channels, *lengths = x.shape
    beside = loops.reshape(x, (batch, channels, 1, *lengths))
    every = loops.expand(beside, (batch, channels, times, *lengths))
    return loops.reshape(every, (batch, channels * times, *lengths))


def filters_of(w: Expression, group: int) -> Size:
    """Return how many filters (M, C/group, ...) a group has."""
    each = loops.divided(w.shape[0], group)
    if each is None:
        raise NotLowered(
            f"whether {w.shape[0]} filters can be divided into {group} groups is known at run time only"
        )
    return each


def filtered(
    found: Expression, w: Expression, group: int, each: Size, product: Product = loops.convolve
) -> Expression:
    """Return the windows (N, windows..., C, taps...) times filters (M, C/group, taps...): (N, windows..., M).

    `each` is M/group. `product` multiplies `[..., rows..., depth...]` by `[..., depth..., N]`.
    """
    taps = w.rank - 2
    if group > 1 and w.shape[1] == 1 and each == 1 and _are_few(w.shape[2:]):
        return loops.slide("sum", found, taps, loops.squeeze(w, [1]))
    if group > 1 and product is loops.convolve and w.shape[1] == each and _are_few(w.shape[2:]):
        mixed = next((loops.slide_mixed(found, taps, w, n) for n in _MIXED if n == each), None)
        if mixed is not None:
            return mixed
    if group > 1:
        return _in_groups(found, w, group, each, product)
    *rows, channel = range(found.rank - taps)
    if _wants_rows(found, w, product):
        return _by_rows(found, w, each)
    if isinstance(found, loops.Windows) and found.is_large:  # in the order in which images lie in memory
        b = loops.permute(w, [*range(1, w.rank), 0])
        return product(found, b, len(rows), 1 + taps)
    a = loops.permute(found, [*rows, *range(channel + 1, found.rank), channel])
    return _products(a, loops.permute(w, [*range(2, w.rank), 1, 0]), taps, len(rows), product)


def _wants_rows(found: Expression, w: Expression, product: Product) -> TypeGuard[loops.Windows]:
    """Whether so few filters read windows beside each other that a vector has room for several taps of each.

    Then the taps along the last axis may be filters of their own, whose results are added afterwards.
    """
    if not isinstance(found, loops.Windows) or found.is_large or product is not loops.convolve:
        return False
    filters, channels, taps = w.shape[0], w.shape[1], w.shape[-1]
    if not isinstance(filters, int) or not isinstance(channels, int) or not isinstance(taps, int):
        return False
    if found.strides[-1] != 1 or channels < _LEAST_CHANNELS or found.element not in loops.FLOATS:
        return False
    return 2 * math.ceil(filters * taps / _LANES) <= taps * math.ceil(filters / _LANES) and taps > 1


def _by_rows(found: loops.Windows, w: Expression, filters: Size) -> Expression:
    """Return the sums over taps along the last axis of the products by the taps along the others."""
    x, axis, taps = found.operand, found.axes[-1], w.shape[-1]
    outer = found.shape[x.rank : -1]
    rows: Expression = x
    if outer:
        counts = [found.shape[n] for n in found.axes[:-1]]
        rows = loops.windows(x, found.axes[:-1], outer, counts, found.strides[:-1], found.dilations[:-1])
    split = loops.permute(w, [w.rank - 1, *range(w.rank - 1)])
    every = filtered(rows, loops.reshape(split, (filters * taps, *split.shape[2:])), 1, filters * taps)
    shape = (*found.shape[: x.rank - 1], filters)
    parts: list[Expression] = []
    for tap in range(taps if isinstance(taps, int) else 0):
        starts: list[Size] = [0] * len(shape)
        starts[axis], starts[-1] = tap * found.dilations[-1], tap * filters
        parts.append(loops.cut(every, starts, shape, (1,) * len(shape)))
    return functools.reduce(functools.partial(loops.apply, "add"), parts)


def _are_few(kernel: Sequence[Size]) -> bool:
    """Whether windows have so few elements that a kernel combines them one by one."""
    sizes = [k for k in kernel if isinstance(k, int)]
    return len(sizes) == len(kernel) and math.prod(sizes) <= _MOST_TAPS


def _in_groups(found: Expression, w: Expression, group: int, each: Size, product: Product) -> Expression:
    """Return the products of each group, side by side."""
    taps = w.rank - 2
    *rows, channel = range(found.rank - taps)
    split = (*found.shape[:channel], group, w.shape[1], *found.shape[channel + 1 :])
    a = loops.reshape(found, split)
    a = loops.permute(a, [channel, *rows, *range(channel + 2, a.rank), channel + 1])
    filters = loops.reshape(w, (group, each, *w.shape[1:]))
    b = loops.permute(filters, [0, *range(3, filters.rank), 2, 1])
    y = _products(a, b, taps, len(rows), product)
    y = loops.permute(y, [*range(1, channel + 1), 0, channel + 1])
    return loops.reshape(y, (*y.shape[:channel], w.shape[0]))


def _products(a: Expression, b: Expression, taps: int, rows: int, product: Product) -> Expression:
    """Return the sums over the taps and the channels, the last axes of `a`; taps of size 1 go."""
    first = a.rank - 1 - taps
    ones = [n for n in range(taps) if a.shape[first + n] == 1]
    a = loops.squeeze(a, [first + n for n in ones])
    b = loops.squeeze(b, [b.rank - 2 - taps + n for n in ones])
    return product(a, b, rows, 1 + taps - len(ones))


def channels_last(x: Expression) -> Expression:
    """Return (N, C, ...) as (N, ..., C)."""
    return loops.permute(x, [0, *range(2, x.rank), 1])


def channels_first(x: Expression) -> Expression:
    """Return (N, ..., C) as (N, C, ...)."""
    return loops.permute(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def windows_of(
    x: Expression, window: Window, number: float | Expression, *, multiplied: bool = False
) -> Expression:
    """Return the windows of `x` (N, C, ...) as (N, windows..., C, taps...); the padding is a number.

    It may be one that a run computes. Windows that are `multiplied` by matrices may be of any size.
    """
    kernel = [known(k) for k in window.kernel]
    if not multiplied and not _are_few(kernel):
        raise NotLowered("the windows are larger than kernels combine, or of unknown size")
    counts = [known(n) for n in window.outputs(x.shape[2:])]
    before, after = padding_of(window, x.shape[2:], counts)
    last = channels_last(x)
    if any(n != 0 for n in (*before, *after)):
        last = _padded(last, (0, *before, 0), (0, *after, 0), number)
    axes = range(1, last.rank - 1)
    return loops.windows(last, axes, kernel, counts, window.strides, window.dilations)


def _padded(
    x: Expression, before: Sequence[Size], after: Sequence[Size], number: float | Expression
) -> Expression:
    """Return a tensor with a number around it; one that a run computes is joined to it."""
    if not isinstance(number, Expression):
        return loops.pad(x, before, after, number)
    found = loops.uniform(number)
    if found is not None:
        return loops.pad(x, before, after, found)
    for axis, pair in enumerate(zip(before, after, strict=True)):
        ends = [loops.expand(number, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in pair]
        parts = [ends[0], x, ends[1]]
        parts = [part for part, n in zip(parts, (pair[0], 1, pair[1]), strict=True) if n != 0]
        x = loops.join(parts, axis) if len(parts) > 1 else x
    return x


def padding_of(
    window: Window, lengths: Sequence[Size], counts: Sequence[Size]
) -> tuple[list[Size], list[Size]]:
    """Return how many elements are added before and after each axis, so that all windows lie inside."""
    before: list[Size] = []
    after: list[Size] = []
    for i, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        reach = add(mul(sub(window.kernel[i], 1), window.dilations[i]), 1)
        whole = add(mul(sub(count, 1), window.strides[i]), reach)
        begin, end = window.pads[i]
        if window.same:
            missing = dim_max(0, sub(whole, length))
            less = floor_div(missing, 2)
            more = sub(missing, less)
            pair = (less, more) if window.same == "UPPER" else (more, less)
        else:
            pair = begin, dim_max(end, sub(whole, add(length, begin))) if window.ceil else end
        before.append(known(pair[0]))
        after.append(known(pair[1]))
    return before, after


def known(size: Dim) -> Size:
    """Return a size; raises NotLowered where it is unknown."""
    if size is None:
        raise NotLowered("a size is too large, or unknown")
    return size


# ---------------------------------------------------------------- poolings


def pooled(x: Expression, window: Window, op: str) -> Expression:
    """Return the elements of each window of `x` (N, C, ...) combined by `sum` or `max`."""
    return channels_first(loops.slide(op, windows_of(x, window, _empty(op, x.element)), len(window.kernel)))


def pooled_with_indices(x: Expression, window: Window) -> tuple[Expression, Expression]:
    """Return the maximum of each window of `x` (N, C, ...), and the number of the first one's place in `x`.

    The number is -1 where a window has no element of `x`.
    """
    taps = len(window.kernel)
    found = windows_of(x, window, _empty("max", x.element))
    best = loops.slide("max", found, taps)
    wide = loops.reshape(best, (*best.shape, *(1,) * taps))
    hit = loops.apply("eq", found, wide)
    if x.is_float:  # NaN is the greatest, and equal to NaN
        missing = loops.apply("and", loops.apply("isnan", found), loops.apply("isnan", wide))
        hit = loops.apply("or", hit, missing)
    place, inside = _places(x, found, window)
    count = loops.sized("int64", product(x.shape[2:]))
    candidates = loops.where(loops.apply("and", hit, inside), place, count)
    first = loops.reshape(loops.reduce("min", candidates, range(found.rank - taps, found.rank)), best.shape)
    channels = loops.sized("int64", x.shape[1])
    plane = loops.apply("mul", loops.count(_along(best, 0), 0), channels)
    plane = loops.apply("add", plane, loops.count(_along(best, best.rank - 1), best.rank - 1))
    numbered = loops.apply("add", loops.apply("mul", plane, count), first)
    indices = loops.where(loops.apply("eq", first, count), loops.number("int64", -1), numbered)
    return channels_first(best), channels_first(indices)


def _along(x: Expression, axis: int) -> Sizes:
    """Return the shape with the size of one axis, and 1 for the others."""
    return tuple(size if i == axis else 1 for i, size in enumerate(x.shape))


def _places(x: Expression, found: Expression, window: Window) -> tuple[Expression, Expression]:
    """Return the number of each tap's place in its plane of `x`, row by row, and whether it is inside."""
    lengths, taps = x.shape[2:], len(window.kernel)
    before, _ = padding_of(window, lengths, found.shape[1 : 1 + taps])
    number: Expression = loops.number("int64", 0)
    inside: Expression = loops.number("bool", 1)
    for i, (length, pad) in enumerate(zip(lengths, before, strict=True)):
        axis, tap = 1 + i, found.rank - taps + i
        start = loops.apply("mul", loops.count(_along(found, axis), axis), window.strides[i])
        offset = loops.apply("mul", loops.count(_along(found, tap), tap), window.dilations[i])
        place = loops.apply("sub", loops.apply("add", start, offset), loops.sized("int64", pad))
        end = loops.sized("int64", length)
        within = loops.apply("and", loops.apply("ge", place, 0), loops.apply("lt", place, end))
        inside = loops.apply("and", inside, within)
        number = loops.apply("add", loops.apply("mul", number, end), place)
    return number, inside


def _empty(op: str, element: str) -> float:
    """Return what padding contains: it changes no result."""
    if op == "sum":
        return 0
    if element not in INTEGERS:
        return -math.inf
    return 0 if element.startswith("u") else -(1 << (int(element.removeprefix("int")) - 1))


def averaged(x: Expression, window: Window, *, include_padding: bool) -> Expression:
    """Return the mean of each window of `x` (N, C, ...), of the elements that are inside the input.

    With `include_padding` those of the padding count too, but not those past its end.
    """
    total = pooled(x, window, "sum")
    padded = any(n != 0 for pair in window.pads for n in pair)
    if not window.ceil and (include_padding or not (padded or window.same)):
        return loops.apply("div", total, math.prod(k for k in window.kernel if isinstance(k, int)))
    lengths = x.shape[2:]
    counts = total.shape[2:]
    before, after = padding_of(window, lengths, counts)
    if include_padding:
        ends = after if window.same else [end for _, end in window.pads]
        lengths = tuple(b + n + e for b, n, e in zip(before, lengths, ends, strict=True))
        before, after = [0] * len(ends), [a - e for a, e in zip(after, ends, strict=True)]
    ones = loops.expand(loops.number(x.element, 1), (1, *lengths, 1))
    inside = loops.pad(ones, (0, *before, 0), (0, *after, 0), 0)
    kernel = [k for k in window.kernel if isinstance(k, int)]
    found = loops.windows(inside, range(1, inside.rank - 1), kernel, counts, window.strides, window.dilations)
    return loops.apply("div", total, channels_first(loops.slide("sum", found, len(kernel))))
