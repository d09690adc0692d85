"""Builders of gradients: shapes, zeros, and the sum that undoes broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import UnsupportedError, check_nodes, check_time, quote
from sabir.differentiation._containers import element_of, total_of, zeros_like
from sabir.differentiation._tiling import joined
from sabir.ir import TensorType, known_equal
from sabir.opsets.typing import ShapedBuilder
from sabir.rewriting import DetachedBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim, Shape, Value


class ShapedDetachedBuilder(ShapedBuilder, DetachedBuilder):
    """A detached builder with the methods that gradients of calls and of bodies share.

    It raises LimitError for too many nodes as they are made: sizes that a model declares decide how many.
    """

    def op(self, *inputs: Any, **options: Any) -> Any:
        """Append a node, as `Builder.op`; raises LimitError where there are too many."""
        check_time()
        check_nodes(len(self.graph))
        return super().op(*inputs, **options)

    def rank(self, value: Value) -> int:
        """Return the rank of a tensor; raises UnsupportedError where it is unknown."""
        shape = self.shape(value)
        if shape is None:
            raise UnsupportedError(f"a gradient needs the rank of {quote(value.name)}, which is unknown")
        return len(shape)

    def shape(self, value: Value) -> Shape | None:
        """Return the shape of a tensor as far as inference knows it."""
        return value.type.shape if isinstance(value.type, TensorType) else None

    def sizes(self, value: Value) -> Value:
        """Return the shape of a tensor as a value: a constant where all sizes are numbers."""
        type_ = value.type
        if isinstance(type_, TensorType) and type_.is_static:
            return self.initializer("shape", np.array(type_.shape, np.int64))
        return self.op("Shape", value)

    def zeros(self, value: Value) -> Value:
        """Return zeros of the shape and element type of a tensor, or of all items of a container."""
        if value.type is not None and not isinstance(value.type, TensorType):
            return zeros_like(self, value)
        zero = self.initializer("zero", np.zeros((), element_of(value).dtype))
        return zero if self.shape(value) == () else self.op("Expand", zero, self.sizes(value))

    def total(self, *parts: Value) -> Value:
        """Return the sum of gradients of one value: of tensors, or of containers item by item."""
        return joined(self, parts) or total_of(self, parts)

    def fit(self, gradient: Value, value: Value, *others: Value) -> Value:
        """Undo broadcasting: sum a gradient, to whose shape `value` broadcasts, to the shape of `value`.

        If `others` are passed, the shape is that to which they and `value` broadcast.
        """
        large, small = self.shape(gradient), self.shape(value)
        beside = [self.shape(other) for other in others]
        axes = None if large is None or small is None else _repeated(large, small, beside)
        if large is None or small is None or axes is None:
            return self._fit_at_run_time(gradient, value)
        lead = len(large) - len(small)
        if not axes:
            return gradient
        if len(axes) == lead:
            return self.op("ReduceSum", gradient, axes, keepdims=0)
        if not lead:
            return self.op("ReduceSum", gradient, axes, keepdims=1)
        total = self.op("ReduceSum", gradient, axes, keepdims=0)
        return self.op("Reshape", total, self.sizes(value), allowzero=1)

    def _fit_at_run_time(self, gradient: Value, value: Value) -> Value:
        """Sum over the axes whose sizes turn out to differ, the missing ones of `value` counting as 1."""
        large, small = self.op("Shape", gradient), self.op("Shape", value)
        missing = self.op("Sub", self.op("Shape", large), self.op("Shape", small))
        ones = self.op("Expand", self.initializer("one", np.ones(1, np.int64)), missing)
        repeated = self.op("Not", self.op("Equal", self.op("Concat", ones, small, axis=0), large))
        axes = self.op("Squeeze", self.op("NonZero", repeated), [0])
        total = self.op("ReduceSum", gradient, axes, keepdims=1, noop_with_empty_axes=1)
        return self.op("Reshape", total, small, allowzero=1)


def _repeated(large: Sequence[Dim], small: Sequence[Dim], others: Sequence[Shape | None]) -> list[int] | None:
    """Return the axes of `large` along which `small` was repeated; None where that depends on sizes.

    `large` is the shape to which `small` and `others` broadcast, if there are others.
    """
    lead = len(large) - len(small)
    axes = list(range(lead))
    for axis, dim in enumerate(small):
        size = large[lead + axis]
        # a number other than 1 was not repeated
        if known_equal(size, dim) or (isinstance(dim, int) and dim != 1):
            continue
        if dim != 1 and others and all(_is_one(shape, axis - len(small)) for shape in others):
            continue
        if dim != 1:
            return None
        axes.append(lead + axis)
    return axes


def _is_one(shape: Shape | None, axis: int) -> bool:
    """Return whether a tensor has size 1 along an axis, counted from the end, or does not have it."""
    return shape is not None and (-axis > len(shape) or shape[axis] == 1)
