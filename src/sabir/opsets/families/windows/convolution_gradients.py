"""Gradients of convolutions: by the input a transposed one, by the filters one with roles exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sabir.opsets.families.shapes.size_vectors import combined, padded, sizes_of

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.families.shapes.size_vectors import Sizes
    from sabir.opsets.typing import Gradient, Ints


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
    dy, beyond = _with_a_window(g, filters)
    return (
        _spread(g, filters, begin, end),
        of_filters(g, padded(g, x, begin, combined(g, "Add", end, beyond)), dy, filters),
        None if bias is None else of_bias(g),
    )


def _spread(g: Gradient, filters: Filters, begin: Sizes, end: Sizes) -> Value:
    """Return the transposed convolution of the output's gradient, cropped to the size of the input.

    With strides of 1 it is the convolution with the filters turned around.
    """
    turned = _turned(g, filters, begin, end)
    if turned is not None:
        return turned
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


def _turned(g: Gradient, filters: Filters, begin: Sizes, end: Sizes) -> Value | None:
    """Return `_spread` as a convolution that pads the gradient by as much as the other one did not pad.

    None with other strides, in groups, and where sizes are not known or the padding is as wide as a window.
    """
    kernel, rank = filters.kernel, len(filters.strides)
    if filters.group != 1 or any(stride != 1 for stride in filters.strides):
        return None
    if not isinstance(kernel, tuple) or not isinstance(begin, tuple) or not isinstance(end, tuple):
        return None
    reach = [(size - 1) * step for size, step in zip(kernel, filters.dilations, strict=True)]
    pads = [r - n for edges in (begin, end) for r, n in zip(reach, edges, strict=True)]
    windows = sizes_of(g, g.dy)
    if min(pads) < 0 or not isinstance(windows, tuple) or 0 in windows:
        return None
    w = g.Transpose(filters.weights, perm=[1, 0, *range(2, rank + 2)])
    if any(size != 1 for size in kernel):
        starts, ends = [size - 1 for size in kernel], [-size - 1 for size in kernel]
        w = g.Slice(w, starts, ends, [*range(2, rank + 2)], [-1] * rank)
    return g.Conv(g.dy, w, pads=pads, dilations=filters.dilations)


def _with_a_window(g: Gradient, filters: Filters) -> tuple[Value, Sizes]:
    """Return the output's gradient, and zeros for a window along each axis that has none at run time.

    Also returned is what these windows read beyond the others: filters may not be empty, and these
    convolve the image.
    """
    windows = sizes_of(g, g.dy)
    if isinstance(windows, tuple):
        return g.dy, (0,) * len(windows)
    none = (0,) * len(filters.strides)
    added = combined(g, "Max", combined(g, "Sub", (1,) * len(none), windows), 0)
    return padded(g, g.dy, none, added), combined(g, "Mul", added, filters.strides)


def of_bias(g: Gradient) -> Value:
    """Return the gradient of the bias, which each window adds."""
    return g.ReduceSum(g.dy, [0, *range(2, g.rank(g.dy))], keepdims=0)


def of_filters(g: Gradient, image: Value, dy: Value, filters: Filters) -> Value:
    """Return the gradient of filters that slide over a padded image; each window makes an element of `dy`.

    It is a convolution whose batch are the channels of the image: its filters are `dy`, and it exchanges
    strides and dilations. The windows cover all of the image.
    """
    windows = sizes_of(g, dy)
    if isinstance(windows, tuple) and 0 in windows:  # there is no window, and none may have no elements
        return g.zeros(filters.weights)
    exchanged = [1, 0, *range(2, g.rank(image))]
    found = g.Conv(
        _by_channel(g, image, filters), g.Transpose(dy, perm=exchanged),
        group=filters.group, strides=filters.dilations, dilations=filters.strides,
    )  # fmt: skip
    return g.Transpose(found, perm=exchanged)


def _by_channel(g: Gradient, image: Value, filters: Filters) -> Value:
    """Return an image (N, groups * C, ...) as (C, groups * N, ...)."""
    spatial = range(g.rank(image) - 2)
    if filters.group == 1:
        return g.Transpose(image, perm=[1, 0, *(i + 2 for i in spatial)])
    channels, sizes = g.Shape(filters.weights, start=1, end=2), g.Shape(image, start=2)
    count = g.Shape(image, end=1)
    apart = g.Reshape(image, g.Concat(count, [filters.group], channels, sizes, axis=0), allowzero=1)
    turned = g.Transpose(apart, perm=[2, 1, 0, *(i + 3 for i in spatial)])
    merged = g.Concat(channels, g.Mul(count, filters.group), sizes, axis=0)
    return g.Reshape(turned, merged, allowzero=1)
