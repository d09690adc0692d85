"""Transposed convolutions as tensor expressions: one convolution for each phase of the stride.

With the stride s, the outputs at the distances r, r + s, r + 2s, ... from the first window read the taps t
for which t * dilation = r (mod s), and adjacent ones read adjacent elements. So each r, a phase, is a
convolution of stride 1 with these taps in reverse order, and its results are every s-th output.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.ir import add, ceil_div, dim_max, sub
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering.kernels import unless_finite
from sabir.opsets.families.windows.window_kernels import channels_first, channels_last, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim
    from sabir.loops import Size
    from sabir.opsets.families.windows.transposed import Transposed

_MOST_PHASES = 64  # kernels of one call


class _Phase(NamedTuple):
    """One phase: the taps `last`, `last - step`, ..., and the distance of the element that the last reads.

    Adjacent taps read elements that are `dilation` apart.
    """

    taps: int
    last: int
    step: int
    dilation: int
    before: int


class _TransposedAxis(NamedTuple):
    """One axis: its phases, the number of windows of each, and the begin of the output among all results."""

    phases: tuple[_Phase, ...]
    windows: Size
    begin: Size
    output: Size

    @property
    def before(self) -> int:
        """The padding before the input."""
        return max(p.before for p in self.phases)


def convolved_transposed(
    x: Expression, w: Expression, bias: Expression | None, windows: Transposed, group: int
) -> Expression:
    """Return `x` (N, C, ...) times `w` (C, M/group, ...), added to windows, as ConvTranspose."""
    if not loops.equal(x.shape[1], w.shape[0]) or loops.divided(w.shape[0], group) is None:
        raise NotLowered(
            f"whether {x.shape[1]} channels match {w.shape[0]} in {group} groups is known at run time only"
        )
    lengths = x.shape[2:]
    outputs = windows.outputs(lengths)
    axes = [_axis(windows, i, n, o) for i, (n, o) in enumerate(zip(lengths, outputs, strict=True))]
    phases = list(itertools.product(*(axis.phases for axis in axes)))
    if len(phases) > _MOST_PHASES:
        raise NotLowered("the strides are larger than kernels interleave")
    padded, is_padded = _padded(x, axes)
    filters = _filters(w, group)
    addends = [] if bias is None else [loops.reshape(bias, (filters.shape[0],))]
    if is_padded:  # zeros of the padding must not add NaN to results
        if loops.is_finite(w) is False:
            raise NotLowered("filters that are infinite or NaN make NaN of zeros around the input")
        checked = unless_finite(w)
        addends += [] if checked is None else [checked]
    parts = [_phase(padded, filters, addends, axes, chosen, group) for chosen in phases]
    return channels_first(_interleaved(parts, axes))


def _axis(windows: Transposed, i: int, length: Size, output: Dim) -> _TransposedAxis:
    window = windows.window
    stride, distance, size = window.strides[i], window.dilations[i], window.kernel[i]
    kernel = None if size is None else loops.fixed(size)
    if kernel is None:
        raise NotLowered("the size of a window is unknown")
    begin: Dim = window.pads[i][0]
    if windows.output_shape or window.same:
        reach = (kernel - 1) * distance + 1 + windows.added[i]
        beyond = sub(add((length - 1) * stride, reach), output)
        cut = None if beyond is None else loops.larger(beyond, 0)
        if beyond is None or cut is None or not loops.at_least(max(stride, distance) - 1, -beyond):
            raise NotLowered("how much of the output is cut off is known at run time only")
        begin = cut // 2 if windows.upper else cut - cut // 2
    if stride > _MOST_PHASES:
        raise NotLowered("the strides are larger than kernels interleave")
    if output is None or not loops.at_least(output, 0):
        raise NotLowered("whether padding leaves elements is known at run time only")
    phases = tuple(_taps(r, stride, distance, kernel) for r in range(stride))
    return _TransposedAxis(phases, known(ceil_div(add(output, begin), stride)), begin, known(output))


def _taps(distance: int, stride: int, dilation: int, kernel: int) -> _Phase:
    found = [t for t in range(kernel) if t * dilation % stride == distance]
    if not found:
        return _Phase(0, 0, 1, 1, 0)
    common = math.gcd(stride, dilation)
    return _Phase(
        len(found),
        found[-1],
        stride // common,
        dilation // common,
        (found[-1] * dilation - distance) // stride,
    )


def _padded(x: Expression, axes: Sequence[_TransposedAxis]) -> tuple[Expression, bool]:
    """Return `x` as NHWC, padded with zeros so that all phases read inside, and whether it is padded."""
    last = channels_last(x)
    before = [axis.before for axis in axes]
    after = [known(dim_max(0, sub(axis.windows, n))) for axis, n in zip(axes, x.shape[2:], strict=True)]
    if all(n == 0 for n in (*before, *after)):
        return last, False
    return loops.pad(last, (0, *before, 0), (0, *after, 0), 0), True


def _filters(w: Expression, group: int) -> Expression:
    """Return weights (C, M/group, ...) as filters (M, C/group, ...)."""
    channels, each = w.shape[0], w.shape[1]
    if group == 1:
        return loops.permute(w, [1, 0, *range(2, w.rank)])
    split = loops.reshape(w, (group, loops.divided(channels, group) or 0, *w.shape[1:]))
    transposed = loops.permute(split, [0, 2, 1, *range(3, split.rank)])
    return loops.reshape(transposed, (each * group, *transposed.shape[2:]))


def _phase(
    x: Expression, w: Expression, addends: Sequence[Expression], axes: Sequence[_TransposedAxis],
    chosen: Sequence[_Phase], group: int,
) -> Expression:  # fmt: skip
    """Return the results of one phase, (N, counts..., M), plus the addends."""
    counts = [axis.windows for axis in axes]
    if any(p.taps == 0 for p in chosen):
        y = loops.expand(loops.number(x.element, 0), (x.shape[0], *counts, w.shape[0]))
    else:
        starts = [axis.before - p.before for axis, p in zip(axes, chosen, strict=True)]
        sizes = [axis.windows + (p.taps - 1) * p.dilation for axis, p in zip(axes, chosen, strict=True)]
        part = loops.cut(x, (0, *starts, 0), (x.shape[0], *sizes, x.shape[-1]), (1,) * x.rank)
        kernel = [p.taps for p in chosen]
        found = loops.windows(
            part, range(1, part.rank - 1), kernel, counts, (1,) * len(axes), [p.dilation for p in chosen]
        )
        taps = loops.cut(
            w, (0, 0, *(p.last for p in chosen)), (*w.shape[:2], *kernel), (1, 1, *(-p.step for p in chosen))
        )
        y = loops.filtered(found, taps, group)
    for addend in addends:
        y = loops.apply("add", y, addend)
    return y


def _interleaved(parts: Sequence[Expression], axes: Sequence[_TransposedAxis]) -> Expression:
    """Return the phases interleaved along all axes: the output (N, ..., M)."""
    batch, *counts, channels = parts[0].shape
    lines, wide = [*parts], channels  # of the axes so far, with the later axes merged
    for place in reversed(range(len(axes))):
        steps = len(axes[place].phases)
        joined = [loops.join(lines[n : n + steps], place + 2) for n in range(0, len(lines), steps)]
        wide *= counts[place] * steps
        lines = [loops.reshape(line, (batch, *counts[:place], wide)) for line in joined]
    whole = (n * len(axis.phases) for n, axis in zip(counts, axes, strict=True))
    y = loops.reshape(lines[0], (batch, *whole, channels))
    starts, sizes = [axis.begin for axis in axes], [axis.output for axis in axes]
    return loops.cut(y, (0, *starts, 0), (y.shape[0], *sizes, y.shape[-1]), (1,) * y.rank)
