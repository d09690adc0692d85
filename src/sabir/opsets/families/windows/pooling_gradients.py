"""Gradients of poolings: what each window receives is spread over its elements."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sabir.opsets.families.indexing.move_gradients import moved_back
from sabir.opsets.families.products.axis_products import along, identity_of
from sabir.opsets.families.shapes.size_vectors import as_value, combined, padded, padded_along, sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Value
    from sabir.opsets.families.shapes.size_vectors import Sizes
    from sabir.opsets.typing import Gradient

_MOST_TAPS = 16  # of windows side by side whose maxima are found by comparison
_BY_AXIS = ("kernel_shape", "strides", "dilations")


@dataclass(frozen=True, slots=True)
class Pooling:
    """The windows of a pooling over the spatial axes of `x`, by the attributes that describe them."""

    g: Gradient
    x: Value
    attributes: Mapping[str, Any]

    @property
    def kernel(self) -> tuple[int, ...]:
        """The size of a window along each axis."""
        return tuple(self.attributes["kernel_shape"])

    @property
    def may_be_empty(self) -> bool:
        """Whether a window may contain only padding."""
        return self._is_set("pads") or self._is_set("ceil_mode") or self._pads_by_size

    @property
    def is_tiling(self) -> bool:
        """Whether the windows are side by side and without gaps, from the first element on."""
        ones = (1,) * len(self.kernel)
        steps, gaps = (tuple(self.attributes.get(name) or ones) for name in ("strides", "dilations"))
        return steps == self.kernel and gaps == ones and not self.may_be_empty

    @property
    def _pads_by_size(self) -> bool:
        return self.attributes["auto_pad"].startswith("SAME")

    def _is_set(self, name: str) -> bool:
        value = self.attributes.get(name) or 0
        return any(value) if not isinstance(value, int) else bool(value)

    def sums(self, op: str, values: Value, **options: Any) -> Value:
        """Return for each element of `x` the sum of the values of its windows, times its weight in them.

        The pooling `op` of the identity matrix tells the weights along one axis, for every kind of padding.
        """
        for axis, _ in enumerate(self.kernel):
            unit = self.g.Unsqueeze(identity_of(self.g, self.x, axis + 2), [0])
            weights = self.g.op(op, unit, **self._along(axis), **options)
            values = along(self.g, values, axis + 2, self.g.Squeeze(weights, [0]))
        return values

    def _along(self, axis: int) -> dict[str, Any]:
        """Return the attributes of the windows along one axis alone."""
        found = dict(self.attributes)
        for name in _BY_AXIS:
            if found.get(name):
                found[name] = [found[name][axis]]
        if found.get("pads"):
            found["pads"] = [found["pads"][axis], found["pads"][axis + len(self.kernel)]]
        return found

    def repeated(self, values: Value) -> Value:
        """Return for each element of `x` the value of its window, where these are side by side."""
        g, spatial = self.g, range(len(self.kernel))
        apart = g.Unsqueeze(values, [2 * i + 3 for i in spatial])
        return self._joined(g.Expand(apart, [1, 1, *itertools.chain(*((1, k) for k in self.kernel))]), values)

    def _joined(self, blocks: Value, windows: Value) -> Value:
        """Return blocks (N, C, O1, k1, ..., On, kn) side by side, and zeros for elements without a window."""
        g, zero = self.g, (0,) * len(self.kernel)
        covered = combined(g, "Mul", sizes_of(g, windows), self.kernel)
        image = g.Reshape(
            blocks, g.Concat(g.Shape(windows, end=2), as_value(g, covered), axis=0), allowzero=1
        )
        return padded(g, image, zero, combined(g, "Sub", sizes_of(g, self.x), covered))

    def of_first_maxima(self, y: Value) -> Value:
        """Return the gradient of the first maximum of each window, where these are side by side."""
        g, spatial = self.g, range(len(self.kernel))
        ends = combined(g, "Mul", sizes_of(g, y), self.kernel)
        axes = [i + 2 for i in spatial]
        parts: list[Value] = []
        found: Value | None = None
        for tap in itertools.product(*map(range, self.kernel)):
            stop = as_value(g, combined(g, "Add", ends, tap))
            equal = g.Equal(g.Slice(self.x, list(tap), stop, axes, list(self.kernel)), y)
            first = equal if found is None else g.And(equal, g.Not(found))
            found = equal if found is None else g.Or(found, equal)
            parts.append(g.Unsqueeze(g.Where(first, g.dy, 0), [2]))
        taps = g.Concat(*parts, axis=2)
        split = g.Concat(g.Shape(y, end=2), list(self.kernel), g.Shape(y, start=2), axis=0)
        order = itertools.chain(*((len(spatial) + i, i) for i in axes))
        blocks = g.Transpose(g.Reshape(taps, split, allowzero=1), perm=[0, 1, *order])
        return self._joined(blocks, y)


def of_maxima(g: Gradient, x: Value, storage_order: int, attributes: Mapping[str, Any]) -> Value:
    """Return the gradient of MaxPool: that of the first maximum of each window, as in PyTorch."""
    pooling = Pooling(g, x, attributes)
    if pooling.is_tiling and math.prod(pooling.kernel) <= _MOST_TAPS:
        return pooling.of_first_maxima(g.y())
    places = g.op("MaxPool", x, outputs=2, **attributes)[1] if storage_order else g.y(1)
    if not pooling.may_be_empty:
        return moved_back(g, x, places)
    return moved_back(g, x, g.Max(places, 0), g.Where(g.Less(places, 0), 0, g.dy))


def of_first_maximum(g: Gradient, x: Value) -> Value:
    """Return the gradient of GlobalMaxPool."""
    flat = g.Flatten(x, axis=2)
    size = g.Shape(flat, start=1)
    shape = g.shape(flat)
    if shape is None or not isinstance(shape[1], int) or not shape[1]:  # ArgMax needs an element
        missing = g.Sub(1, g.Min(size, 1))
        flat = padded_along(g, flat, [1], (0,), missing)
    places = g.ArgMax(flat, axis=1, keepdims=1)
    d = g.ScatterElements(g.zeros(flat), places, g.Flatten(g.dy, axis=2), axis=1)
    return g.Reshape(g.Slice(d, [0], size, [1]), g.sizes(x), allowzero=1)


def of_means(g: Gradient, x: Value, count_include_pad: int, attributes: Mapping[str, Any]) -> Value:
    """Return the gradient of AveragePool."""
    pooling = Pooling(g, x, attributes)
    if pooling.is_tiling:
        return pooling.repeated(g.Div(g.dy, float(math.prod(pooling.kernel))))
    return pooling.sums("AveragePool", g.dy, count_include_pad=count_include_pad)


def of_norms(g: Gradient, x: Value, p: int, attributes: Mapping[str, Any]) -> Value:
    """Return the gradient of LpPool."""
    pooling = Pooling(g, x, attributes)
    shares = shares_of_norms(g, g.y(), p)
    spread = pooling.repeated(shares) if pooling.is_tiling else pooling.sums("LpPool", shares, p=1)
    return g.Mul(spread, slopes_of_powers(g, x, p))


def shares_of_norms(g: Gradient, y: Value, p: int) -> Value:
    """Return `dy * y ** (1 - p)`, zero where the norm is: there PyTorch's gradient of the norm is zero."""
    if p == 1:
        return g.dy
    zero = g.Equal(y, 0)
    norm = g.Where(zero, 1, y)
    return g.Where(zero, 0, g.Div(g.dy, norm if p == 2 else g.Pow(norm, float(p - 1))))  # ruff: ignore[magic-value-comparison]  squares


def slopes_of_powers(g: Gradient, x: Value, p: int) -> Value:
    """Return the derivative of `|x| ** p / p`."""
    if p == 1:
        return g.Sign(x)
    return x if p == 2 else g.Mul(x, g.Pow(g.Abs(x), float(p - 2)))  # ruff: ignore[magic-value-comparison]  squares


def of_positions(g: Gradient, indices: Value, covered: Sizes | None) -> Value:
    """Return the gradient of MaxUnpool, for its indices into a part of the output of the sizes `covered`."""
    rank = g.rank(g.dy)
    dy = g.dy if covered is None else g.Slice(g.dy, [0] * (rank - 2), as_value(g, covered), [*range(2, rank)])
    return g.Gather(g.Reshape(dy, [-1]), indices)
