"""Gradients of convolutions: by the input another convolution, by the filters one matrix product.

The product is that of the output's gradient and of all windows, whose taps are sliced from the input one axis
at a time. A convolution with the roles exchanged computes the same, many times slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sabir.opsets.families.size_vectors import as_value, combined, padded, sizes_of

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.families.size_vectors import Sizes
    from sabir.opsets.typing import Gradient, Ints

_FRONT = 3  # axes before the spatial ones: group, channels of the group with their taps, batch

_MOST_TAPS = 64  # along one axis: each is a node


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a convolution (M, C/group, ...) and the steps of their windows."""

    weights: Value
    kernel: Sizes
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    group: int

    @classmethod
    def of(
        cls,
        g: Gradient,
        weights: Value,
        *,
        group: int,
        kernel_shape: Ints,
        strides: Ints,
        dilations: Ints,
    ) -> Filters:
        """Read the attributes."""
        ones = (1,) * (g.rank(weights) - 2)
        kernel = tuple(kernel_shape) if kernel_shape else sizes_of(g, weights)
        return cls(weights, kernel, tuple(strides or ones), tuple(dilations or ones), group)

    def covered(self, g: Gradient, windows: Sizes) -> Sizes:
        """Return how many elements so many windows cover along each axis."""
        steps = combined(g, "Mul", combined(g, "Sub", windows, 1), self.strides)
        reach = combined(g, "Mul", combined(g, "Sub", self.kernel, 1), self.dilations)
        return combined(g, "Add", combined(g, "Add", steps, reach), 1)


def begins(g: Gradient, missing: Sizes, *, upper: bool) -> Sizes:
    """Return the padding before each axis where it follows from what is missing; `upper`: less than after."""
    whole = combined(g, "Max", missing, 0)
    less = combined(g, "Div", whole, 2)
    return less if upper else combined(g, "Sub", whole, less)


def gradient_of_convolution(
    g: Gradient, x: Value, bias: Value | None, filters: Filters, begin: Sizes | None, *, upper: bool
) -> tuple[Value, Value, Value | None]:
    """Return the gradients of the input, the filters and the bias; without `begin` it is computed."""
    covered = filters.covered(g, sizes_of(g, g.dy))
    missing = combined(g, "Sub", covered, sizes_of(g, x))
    begin = begins(g, missing, upper=upper) if begin is None else begin
    end = combined(g, "Sub", missing, begin)
    return (
        _spread(g, filters, begin, end),
        of_filters(g, padded(g, x, begin, end), g.dy, filters),
        None if bias is None else of_bias(g),
    )


def _spread(g: Gradient, filters: Filters, begin: Sizes, end: Sizes) -> Value:
    """Return the transposed convolution of the output's gradient, cropped to the size of the input."""
    options: dict[str, Any] = {
        "group": filters.group,
        "strides": filters.strides,
        "dilations": filters.dilations,
    }
    if isinstance(begin, tuple) and isinstance(end, tuple):
        pads = (*begin, *(max(0, e) for e in end))
        unread = [max(0, -e) for e in end]
        return g.ConvTranspose(g.dy, filters.weights, pads=pads, output_padding=unread, **options)
    whole = g.ConvTranspose(g.dy, filters.weights, **options)
    zero = combined(g, "Mul", begin, 0)
    return padded(g, whole, combined(g, "Sub", zero, begin), combined(g, "Sub", zero, end))


def of_bias(g: Gradient) -> Value:
    """Return the gradient of the bias, which each window adds."""
    return g.ReduceSum(g.dy, [0, *range(2, g.rank(g.dy))], keepdims=0)


def of_filters(g: Gradient, image: Value, dy: Value, filters: Filters) -> Value:
    """Return the gradient of filters that slide over a padded image; each window makes an element of `dy`."""
    spatial = range(g.rank(image) - 2)
    channels = g.Shape(filters.weights, start=1, end=2)
    rows = g.Transpose(image, perm=[1, 0, *(i + 2 for i in spatial)])
    shape = g.Concat([filters.group], channels, g.Shape(rows, start=1), axis=0)
    rows = g.Reshape(rows, shape, allowzero=1)
    for axis in reversed(spatial):  # the last first: the taps of the first axis become the outermost
        rows = _windows(g, rows, axis, filters, sizes_of(g, dy))
    columns = g.Transpose(g.Reshape(rows, [0, 0, -1]), perm=[0, 2, 1])
    by_filter = g.Transpose(dy, perm=[1, 0, *(i + 2 for i in spatial)])
    count = g.Shape(filters.weights, end=1)
    outer = g.Concat([filters.group], g.Div(count, filters.group), g.Shape(columns, start=1, end=2), axis=0)
    product = g.MatMul(g.Reshape(by_filter, outer, allowzero=1), columns)
    by_tap = g.Reshape(product, g.Concat(count, as_value(g, filters.kernel), channels, axis=0))
    return g.Transpose(by_tap, perm=[0, len(spatial) + 1, *(i + 1 for i in spatial)])


def _windows(g: Gradient, rows: Value, axis: int, filters: Filters, counts: Sizes) -> Value:
    """Return the taps of all windows along one axis, each in the place of the axis, one after another."""
    number, stride, dilation = axis + _FRONT, filters.strides[axis], filters.dilations[axis]
    known = isinstance(counts, tuple)
    count = as_value(g, counts[axis : axis + 1]) if known else g.Gather(counts, [axis])
    if not isinstance(filters.kernel, tuple) or filters.kernel[axis] > _MOST_TAPS:
        return _windows_of_unknown(g, rows, axis, filters, count)
    if filters.kernel[axis] == stride == 1:
        return rows
    reach = g.Mul(count, stride)
    taps = [
        g.Slice(rows, [first], g.Add(reach, first), [number], [stride])
        for first in range(0, filters.kernel[axis] * dilation, dilation)
    ]
    return taps[0] if len(taps) == 1 else g.Concat(*taps, axis=1)


def _windows_of_unknown(g: Gradient, rows: Value, axis: int, filters: Filters, count: Value) -> Value:
    """Gather the windows where only a run knows how many taps there are, or where these are very many."""
    number = axis + _FRONT
    taps = g.Gather(as_value(g, filters.kernel), axis, axis=0)
    firsts = g.Mul(g.Range(0, taps, 1), filters.dilations[axis])
    starts = g.Mul(g.Range(0, g.Squeeze(count, [0]), 1), filters.strides[axis])
    read = g.Gather(rows, g.Add(g.Unsqueeze(firsts, [1]), starts), axis=number)
    rank = g.rank(rows)
    apart = g.Transpose(read, perm=[0, number, *range(1, number), *range(number + 1, rank + 1)])
    merged = g.Mul(g.Shape(apart, start=1, end=2), g.Shape(apart, start=2, end=3))
    shape = g.Concat(g.Shape(apart, end=1), merged, g.Shape(apart, start=3), axis=0)
    return g.Reshape(apart, shape, allowzero=1)
