"""The gradient of Resize: the product with its own weights, transposed, one axis after another.

The weights along an axis are the resized identity matrix, for every interpolation and transformation.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sabir.ir import TensorType, known_equal
from sabir.opsets.families.products.axis_products import along, identity_of
from sabir.opsets.families.resampling.resampling import CROP
from sabir.opsets.families.resampling.resizing import STRETCH
from sabir.opsets.families.shapes.shapes import axes_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Value
    from sabir.opsets.typing import Gradient

# transformations and roundings with which a whole scale repeats each element
_REPEATING = {
    ("asymmetric", "floor"),
    *itertools.product(
        ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
        ("round_prefer_floor", "round_prefer_ceil"),
    ),
}


@dataclass(frozen=True, slots=True)
class Resizing:
    """A call of Resize; `roi`, `scales` and `sizes` are None where they are empty or not read."""

    g: Gradient
    x: Value
    roi: Value | None
    scales: Value | None
    sizes: Value | None
    attributes: Mapping[str, Any]

    @classmethod
    def of(
        cls, g: Gradient, x: Value, bounds: tuple[Value | None, ...], attributes: Mapping[str, Any]
    ) -> Resizing:
        """Take the inputs, of which `bounds` are all but the first, and the attributes of a call."""
        crops = attributes["coordinate_transformation_mode"] == CROP
        roi, scales, sizes = (None if v is None or _is_empty(v) else v for v in bounds)
        # elements outside of the tensor have a constant value, which has no gradient
        return cls(g, x, roi if crops else None, scales, sizes, {**attributes, "extrapolation_value": 0.0})

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are resized."""
        rank, named = self.g.rank(self.x), self.attributes["axes"]
        return tuple(range(rank)) if named is None else axes_in(named, rank)

    def gradient(self) -> Value:
        """Return the gradient of `x`."""
        d = self.g.dy
        for index, axis in enumerate(self.axes):
            times = self._repeats(index, axis)
            if times > 1:
                d = self._summed(d, axis, times)
            elif not self._keeps(index, axis):
                d = along(self.g, d, axis, self._weights(index, axis))
        return d

    def _repeats(self, index: int, axis: int) -> int:
        """Return how often each element along an axis is known to be repeated; 1 where that is open."""
        how = (self.attributes["coordinate_transformation_mode"], self.attributes["nearest_mode"])
        if self.attributes["mode"] != "nearest" or how not in _REPEATING:
            return 1
        if self.scales is not None:
            known = self.scales.type.known if isinstance(self.scales.type, TensorType) else None
            scale = known[index] if known is not None else None
            return int(scale) if isinstance(scale, float) and scale.is_integer() else 1
        before, after = (shape and shape[axis] for shape in map(self.g.shape, (self.x, self.g.dy)))
        stretches = self.attributes["keep_aspect_ratio_policy"] == STRETCH
        if not stretches or not isinstance(before, int) or not isinstance(after, int) or not before:
            return 1
        return after // before if after % before == 0 else 1

    def _summed(self, d: Value, axis: int, times: int) -> Value:
        """Add up the copies of each element."""
        g, size = self.g, self.g.Shape(self.x, start=axis, end=axis + 1)
        shape = g.Concat(g.Shape(d, end=axis), size, [times], g.Shape(d, start=axis + 1), axis=0)
        return g.ReduceSum(g.Reshape(d, shape, allowzero=1), [axis + 1], keepdims=0)

    def _keeps(self, index: int, axis: int) -> bool:
        """Whether the elements along an axis are known to stay as they are."""
        before, after = self.g.shape(self.x), self.g.shape(self.g.dy)
        if self.roi is not None or not before or not after or not known_equal(before[axis], after[axis]):
            return False
        if self.scales is None:
            return self.attributes["keep_aspect_ratio_policy"] == STRETCH
        known = self.scales.type.known if isinstance(self.scales.type, TensorType) else None
        return known is not None and known[index] == 1

    def _weights(self, index: int, axis: int) -> Value:
        """Return the weights of the new elements along an axis in the old ones, (old, new)."""
        g = self.g
        options: dict[str, Any] = {**self.attributes, "axes": [1]}
        unit = identity_of(g, self.x, axis)
        if self.sizes is not None and self.attributes["keep_aspect_ratio_policy"] != STRETCH:
            return self._weights_in_ratio(index, axis, unit)
        bounds = [None if v is None else g.Gather(v, [index], axis=0) for v in (self.scales, self.sizes)]
        roi = None if self.roi is None else g.Gather(self.roi, [index, index + len(self.axes)], axis=0)
        return g.Resize(unit, roi, *bounds, **options)

    def _weights_in_ratio(self, index: int, axis: int, unit: Value) -> Value:
        """Return the weights where the sizes of all axes tell the scale: resize the others too."""
        g, axes = self.g, self.axes
        ends = [2**63 - 1 if number == axis else 1 for number in axes]
        lengths = g.Gather(g.sizes(self.x), list(axes), axis=0)
        apart = g.Unsqueeze(unit, [i + 1 for i, _ in enumerate(axes) if i != index])
        whole = g.Expand(apart, g.Concat(g.Shape(unit, end=1), lengths, axis=0))
        options: dict[str, Any] = {**self.attributes, "axes": [i + 1 for i, _ in enumerate(axes)]}
        resized = g.Resize(whole, None, None, self.sizes, **options)
        one = g.Slice(resized, [0] * len(axes), ends, options["axes"])
        return g.Squeeze(one, [i + 1 for i, _ in enumerate(axes) if i != index])


def _is_empty(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.size == 0
