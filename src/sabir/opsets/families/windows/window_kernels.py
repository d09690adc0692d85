"""Convolutions and poolings as tensor expressions, computed in NHWC."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sabir import loops
from sabir.ir import add, dim_max, floor_div, mul, product, sub
from sabir.loops import INTEGERS, Expression, NotLowered
from sabir.opsets.families.lowering.kernels import unless_finite
from sabir.opsets.families.windows.convolution import kernel_of
from sabir.opsets.families.windows.edge_windows import by_parts, trimmed
from sabir.opsets.families.windows.windows import Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim
    from sabir.loops import Size, Sizes

_MOST_TAPS = 4096  # of a window that a kernel combines
_PLANAR, _TAPS = 4, (3, 3)  # the rank and the taps of filters that can be transformed
_CHECKED_WINDOWS = 128  # of an image at least
_MOST_FILTERS = 8  # of a single channel, which is repeated for each; more become a product


def convolved(
    x: Expression, w: Expression, bias: Expression | None, *, group: int,
    kernel_shape: Sequence[int] | None, **attributes: Any,
) -> Expression:  # fmt: skip
    """Return `x` (N, C, ...) convolved with `w` (M, C/group, ...) as Conv."""
    window = Window.of(kernel_of(w.shape, kernel_shape), **attributes)
    if not loops.equal(x.shape[1], known(mul(w.shape[1], group))):
        raise NotLowered(
            f"whether {x.shape[1]} channels match weights of {w.shape[1]} is known at run time only"
        )
    filters, y = w, None
    if loops.is_finite(w) is not False:  # 0 times infinity in the padding is NaN
        w, window = trimmed(x, w, window)
        y = by_parts(x, w, window, _ungrouped) if group == 1 and x.element in loops.FLOATS else None
    must_be_finite = y is not None or w is not filters
    if y is None:
        each = loops.filters_of(w, group)
        alone = group > 1 and w.shape[1] == 1 and _are_few(w.shape[2:])
        if alone and isinstance(each, int) and 1 < each <= _MOST_FILTERS:
            x, group, each = _repeated(x, each), group * each, 1
        found = windows_of(x, window, 0, multiplied=True)
        varies = group == 1 and loops.is_finite(filters) is None
        finite = varies and window.strides == window.dilations and _reads_little_of(filters, found)
        must_be_finite = must_be_finite or finite
        y = channels_first(loops.filtered(found, w, group, finite=finite))
    checked = unless_finite(_whole(filters)) if must_be_finite else None
    if checked is not None:
        y = loops.apply("add", y, checked)
    if bias is None:
        return y
    return loops.apply("add", y, loops.reshape(bias, (w.shape[0], *(1,) * len(window.kernel))))


def _reads_little_of(w: Expression, found: Expression) -> bool:
    """Return whether windows in a plane are so many that a check of the filters costs little beside them.

    Filters that are known to be finite may be transformed, by Winograd's algorithm, to fewer products.
    """
    counts = found.shape[1 : w.rank - 1]
    known_counts = [n for n in counts if isinstance(n, int)]
    is_planar = w.rank == _PLANAR and tuple(w.shape[2:]) == _TAPS and w.element == "float"
    return is_planar and len(known_counts) == len(counts) and math.prod(known_counts) >= _CHECKED_WINDOWS


def _whole(x: Expression) -> Expression:
    """Return what a view shows all elements of, in another order."""
    while isinstance(x, (loops.Permute, loops.Reshape)) or (
        isinstance(x, loops.Slice) and x.shape == x.operand.shape
    ):
        x = x.operand
    return x


def _ungrouped(x: Expression, w: Expression, window: Window) -> Expression:
    return channels_first(loops.filtered(windows_of(x, window, 0, multiplied=True), w, 1))


def _repeated(x: Expression, times: int) -> Expression:
    """Return `x` (N, C, ...) with each channel repeated."""
    batch, channels, *lengths = x.shape
    separate = loops.reshape(x, (batch, channels, 1, *lengths))
    every = loops.expand(separate, (batch, channels, times, *lengths))
    return loops.reshape(every, (batch, channels * times, *lengths))


def _are_few(kernel: Sequence[Size]) -> bool:
    """Return whether windows have so few taps that a kernel unrolls them."""
    sizes = [k for k in kernel if isinstance(k, int)]
    return len(sizes) == len(kernel) and math.prod(sizes) <= _MOST_TAPS


def channels_last(x: Expression) -> Expression:
    """Return NCHW as NHWC."""
    return loops.permute(x, [0, *range(2, x.rank), 1])


def channels_first(x: Expression) -> Expression:
    """Return NHWC as NCHW."""
    return loops.permute(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def windows_of(
    x: Expression, window: Window, number: float | Expression, *, multiplied: bool = False
) -> Expression:
    """Return the windows of `x` (N, C, ...) as (N, windows..., C, taps...); the padding is a number.

    Only a run may know the number. Windows that are `multiplied` by matrices may have any size.
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
    """Return a tensor padded with a number; if only a run computes the number, by joins."""
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
    """Return how many elements are added before and after each axis, so that all windows are inside."""
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
    """Return a size; raises NotLowered if it is unknown."""
    if size is None:
        raise NotLowered("a size is too large, or unknown")
    return size


# ---------------------------------------------------------------- poolings


def pooled(x: Expression, window: Window, op: str) -> Expression:
    """Return the elements of each window of `x` (N, C, ...) combined by `sum` or `max`."""
    return channels_first(loops.slide(op, windows_of(x, window, _empty(op, x.element)), len(window.kernel)))


def pooled_with_indices(x: Expression, window: Window) -> tuple[Expression, Expression]:
    """Return the maximum of each window of `x` (N, C, ...), and the row-major index of the first one in `x`.

    The index is -1 if a window has no element of `x`.
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
    """Return the row-major index of each tap in its plane of `x`, and whether it is inside."""
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
    """Return the neutral element of an operation, for padding."""
    if op == "sum":
        return 0
    if element not in INTEGERS:
        return -math.inf
    return 0 if element.startswith("u") else -(1 << (int(element.removeprefix("int")) - 1))


def averaged(x: Expression, window: Window, *, include_padding: bool) -> Expression:
    """Return the mean of each window of `x` (N, C, ...), of the elements that are inside the input.

    With `include_padding` the elements of the padding count too, but not those past its end.
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
