"""The gradient of DeformConv: of a product with windows whose elements are sampled at moved coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.resampling.sampling_gradients import (
    SampledAxis,
    corners,
    image_of,
    of_pixels,
    rows_of,
    weight_of,
)
from sabir.opsets.families.shapes.size_vectors import as_value

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.families.resampling.sampling_gradients import Corner
    from sabir.opsets.families.windows.convolution_gradients import Filters
    from sabir.opsets.typing import Gradient


@dataclass(frozen=True)
class Deformation:
    """A call of DeformConv. Samples are in the order: item, offset group, taps, windows."""

    g: Gradient
    x: Value
    offset: Value
    mask: Value | None
    filters: Filters
    begin: tuple[int, ...]  # the padding before each axis
    groups: int  # of offsets

    @property
    def _spatial(self) -> range:
        return range(self.g.rank(self.x) - 2)

    @cached_property
    def _sizes(self) -> dict[str, Value]:
        """The number of items, channels, filters, taps and windows, each as a 1-D tensor."""
        g, weights = self.g, self.filters.weights
        return {
            "items": g.Shape(self.x, end=1),
            "channels": g.Shape(self.x, start=1, end=2),
            "filters": g.Shape(weights, end=1),
            "taps": g.ReduceProd(as_value(g, self.filters.kernel), keepdims=1),
            "windows": g.ReduceProd(g.Shape(g.dy, start=2), keepdims=1),
        }

    def _shaped(self, x: Value, *sizes: str | int | tuple[str, int]) -> Value:
        """Reshape a tensor to sizes that are named; a pair is a size divided by a number."""
        g, named = self.g, self._sizes
        parts: list[Value | list[int]] = []
        for size in sizes:
            if isinstance(size, tuple):
                parts.append(g.Div(named[size[0]], size[1]))
            else:
                parts.append([size] if isinstance(size, int) else named[size])
        return g.Reshape(x, g.Concat(*parts, axis=0), allowzero=1)

    @cached_property
    def _image(self) -> Value:
        """The input with the channels of an offset group as those of an item."""
        g, named = self.g, self._sizes
        shape = [
            g.Mul(named["items"], self.groups), g.Div(named["channels"], self.groups),
            g.Shape(self.x, start=2),
        ]  # fmt: skip
        return g.Reshape(self.x, g.Concat(*shape, axis=0), allowzero=1)

    @cached_property
    def _apart(self) -> Value:
        """The shape of the samples: items, groups, the kernel, the windows."""
        g = self.g
        kernel = as_value(g, self.filters.kernel)
        return g.Concat(self._sizes["items"], [self.groups], kernel, g.Shape(g.dy, start=2), axis=0)

    @cached_property
    def _found(self) -> list[Corner]:
        """The pixels around each sample."""
        g, rank = self.g, len(self._spatial)
        before, after = (
            g.Slice(self._apart, *ends, [0]) for ends in (([0], [2 + rank]), ([2 + rank], [2**31]))
        )
        split = g.Concat(before, [rank], after, axis=0)
        offsets = g.Reshape(self.offset, split, allowzero=1)
        sizes = [g.Shape(self.x, start=i + 2, end=i + 3) for i in self._spatial]
        axes = [
            SampledAxis(g, self.offset, size, aligned=False, padding="zeros", mode="linear").taps(
                g.Reshape(g.Add(g.Gather(offsets, i, axis=2 + rank), self._origin(i)), [-1])
            )
            for i, size in enumerate(sizes)
        ]
        items = g.Range(0, g.Squeeze(g.Mul(self._sizes["items"], self.groups), [0]), 1)
        each = g.Mul(self._sizes["taps"], self._sizes["windows"])
        shape = g.Concat(g.Mul(self._sizes["items"], self.groups), each, axis=0)
        batch = g.Reshape(g.Expand(g.Unsqueeze(items, [1]), shape), [-1])
        return corners(g, batch, sizes, axes)

    def _origin(self, axis: int) -> Value:
        """Return the coordinates along an axis without offsets, (taps of each axis, windows of each axis)."""
        g, rank, filters = self.g, len(self._spatial), self.filters
        taps = g.Range(0, g.Gather(as_value(g, filters.kernel), axis), 1)
        windows = g.Range(0, g.Gather(g.Shape(g.dy), axis + 2), 1)
        starts = g.Sub(g.Mul(windows, filters.strides[axis]), self.begin[axis])
        within = g.Mul(taps, filters.dilations[axis])
        whole = g.Add(
            g.Unsqueeze(within, [i for i in range(2 * rank) if i != axis]),
            g.Unsqueeze(starts, [i for i in range(2 * rank) if i != axis + rank]),
        )
        return g.Cast(whole, to=element_of(self.offset).number)

    @cached_property
    def _values(self) -> Value:
        """The samples without the mask, (samples, channels of a group)."""
        g, rows = self.g, rows_of(self.g, self._image)
        parts = (
            g.Mul(g.Gather(rows, c.number, axis=0), g.Unsqueeze(weight_of(g, c), [1])) for c in self._found
        )
        return reduce(g.Add, parts)

    def _masked(self, values: Value) -> Value:
        if self.mask is None:
            return values
        return self.g.Mul(values, self.g.Reshape(self.mask, [-1, 1]))

    @cached_property
    def _d_columns(self) -> Value:
        """The gradient of the masked samples."""
        g, group = self.g, self.filters.group
        weights = self._shaped(self.filters.weights, group, ("filters", group), -1)
        dy = self._shaped(g.dy, "items", group, ("filters", group), "windows")
        columns = g.MatMul(g.Transpose(weights, perm=[0, 2, 1]), dy)
        apart = self._shaped(columns, "items", self.groups, ("channels", self.groups), "taps", "windows")
        return g.Flatten(g.Transpose(apart, perm=[0, 1, 3, 4, 2]), axis=4)

    def of_input(self) -> Value:
        """Return the gradient of the input."""
        g = self.g
        rows = of_pixels(g, rows_of(g, self._image), self._masked(self._d_columns), self._found)
        return g.Reshape(image_of(g, rows, self._image), g.sizes(self.x), allowzero=1)

    def of_filters(self) -> Value:
        """Return the gradient of the weights."""
        g, group, weights = self.g, self.filters.group, self.filters.weights
        values = self._shaped(
            self._masked(self._values), "items", self.groups, "taps", "windows", ("channels", self.groups)
        )
        columns = g.Transpose(values, perm=[0, 1, 4, 2, 3])
        apart = self._shaped(columns, "items", group, ("channels", group), "taps", "windows")
        inner = g.Flatten(g.Transpose(apart, perm=[1, 2, 3, 0, 4]), axis=3)
        every = g.Mul(self._sizes["items"], self._sizes["windows"])
        shape = g.Concat(
            [group], g.Mul(g.Div(self._sizes["channels"], group), self._sizes["taps"]), every, axis=0
        )
        inner = g.Reshape(inner, shape, allowzero=1)
        dy = self._shaped(g.dy, "items", group, ("filters", group), "windows")
        outer = g.Reshape(
            g.Transpose(dy, perm=[1, 2, 0, 3]),
            g.Concat([group], g.Div(self._sizes["filters"], group), every, axis=0),
            allowzero=1,
        )
        product = g.MatMul(outer, g.Transpose(inner, perm=[0, 2, 1]))
        return g.Reshape(product, g.sizes(weights), allowzero=1)

    def of_offset(self) -> Value:
        """Return the gradient of the offsets."""
        g, rows, dv = self.g, rows_of(self.g, self._image), self._masked(self._d_columns)
        read = [
            g.ReduceSum(g.Mul(dv, g.Gather(rows, c.number, axis=0)), [1], keepdims=0) for c in self._found
        ]
        parts: list[Value] = []
        for axis in self._spatial:
            moved = (g.Mul(v, weight_of(g, c, axis)) for v, c in zip(read, self._found, strict=True))
            total = g.Reshape(reduce(g.Add, moved), self._apart, allowzero=1)
            parts.append(g.Unsqueeze(total, [2 + len(self._spatial)]))
        return g.Reshape(g.Concat(*parts, axis=2 + len(self._spatial)), g.sizes(self.offset), allowzero=1)

    def of_mask(self) -> Value | None:
        """Return the gradient of the mask."""
        if self.mask is None:
            return None
        g = self.g
        total = g.ReduceSum(g.Mul(self._d_columns, self._values), [1], keepdims=0)
        return g.Reshape(total, g.sizes(self.mask), allowzero=1)
