"""Gradients of Fourier transforms: the transform in the other direction, without its factor or with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.building.calls import has_attribute
from sabir.opsets.families.indexing.move_gradients import moved_back, numbers_of
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.size_vectors import padded_along

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Gradient


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis along which tensors are transformed: its number, and as a 1-D tensor of one int64."""

    g: Gradient
    number: int | None  # None where only a run knows it
    value: Value

    def transformed(self, x: Value, *, inverse: int, length: Value | None = None, onesided: int = 0) -> Value:
        """Emit DFT, whose axis is an attribute before operator set 20; `length` has one element."""
        g = self.g
        count = None if length is None else g.Squeeze(length, [0])
        if has_attribute(g, "DFT", "axis"):
            return g.DFT(x, count, inverse=inverse, onesided=onesided, axis=self.number)
        return g.DFT(x, count, g.Squeeze(self.value, [0]), inverse=inverse, onesided=onesided)

    def size(self, x: Value) -> Value:
        """Return the size of the axis."""
        return self.g.Gather(self.g.sizes(x), self.value)

    def fitted(self, x: Value, size: Value) -> Value:
        """Return a tensor with the end of the axis removed, or with zeros there."""
        return padded_along(self.g, x, self.value, (0,), self.g.Sub(size, self.size(x)))

    def factor(self, x: Value, size: Value) -> Value:
        """Return a size as a number of the element type of a tensor."""
        return self.g.Cast(size, to=element_of(x).number)


def axis_of(g: Gradient, axis: Value | int) -> Axis:
    """Return an axis that an attribute or an input states."""
    if isinstance(axis, int):
        return Axis(g, axis, g.initializer("axis", np.array([axis], np.int64)))
    return Axis(g, None, g.Reshape(axis, [1]))


def of_dft(g: Gradient, x: Value, length: Value | None, axis: Axis, *, inverse: int, onesided: int) -> Value:
    """Return the gradient of the input of DFT."""
    if inverse:
        count = axis.size(g.dy)
        d = axis.transformed(g.dy, inverse=0, onesided=onesided)
        share = axis.factor(x, count)
        d = g.Div(g.Mul(d, _multiples(g, axis, d, count)) if onesided else d, share)
    elif onesided:
        count = axis.size(x) if length is None else g.Reshape(length, [1])
        d = of_spectrum(g, g.dy, axis, g.Cast(count, to=7))
    else:
        d = of_spectrum(g, g.dy, axis, axis.size(g.dy))
    return parts_of(g, axis.fitted(d, axis.size(x)), x)


def of_spectrum(g: Gradient, dy: Value, axis: Axis, count: Value) -> Value:
    """Return the gradient of a complex signal of `count` elements, from that of its first frequencies."""
    d = axis.transformed(dy, inverse=1, length=count)
    return g.Mul(d, axis.factor(dy, count))


def parts_of(g: Gradient, d: Value, x: Value) -> Value:
    """Return the real parts alone where a signal has only these."""
    return g.Slice(d, [0], g.Shape(x, start=-1), [-1])


def _multiples(g: Gradient, axis: Axis, spectrum: Value, count: Value) -> Value:
    """Return how often each frequency of a one-sided spectrum occurs in the whole one: once or twice."""
    bins = axis.size(spectrum)
    numbers = g.Range(0, g.Squeeze(bins, [0]), 1)
    once = g.Or(g.Equal(numbers, 0), g.Equal(g.Mul(numbers, 2), count))
    factors = g.Cast(g.Where(once, 1, g.Add(g.Mul(numbers, 0), 2)), to=element_of(spectrum).number)
    ones = g.ConstantOfShape(g.Shape(g.Shape(spectrum)), value=np.ones(1, np.int64))
    front = g.Where(g.Less(axis.value, 0), g.Add(axis.value, g.Shape(g.Shape(spectrum))), axis.value)
    return g.Reshape(factors, g.ScatterElements(ones, front, bins, axis=0))


def of_stft(
    g: Gradient, signal: Value, step: Value, window: Value | None, length: Value | None
) -> tuple[Value, Value | None]:
    """Return the gradients of the signal and of the window of STFT."""
    rank, axis = g.rank(signal), axis_of(g, 2)
    if window is not None:
        frame = g.Shape(window)
    else:
        frame = g.Shape(signal, start=1, end=2) if length is None else g.Reshape(length, [1])
    frame = g.Cast(frame, to=7)
    full = of_spectrum(g, g.dy, axis, frame)  # (batch, frames, frame, 2)
    starts = g.Mul(
        g.Range(0, g.Squeeze(axis_of(g, 1).size(g.dy), [0]), 1), g.Cast(g.Reshape(step, [1]), to=7)
    )
    read = g.Add(g.Unsqueeze(starts, [1]), g.Range(0, g.Squeeze(frame, [0]), 1))
    bare = rank == 2  # ruff: ignore[magic-value-comparison]  real, without a dimension of parts
    x = g.Unsqueeze(signal, [2]) if bare else signal
    d = parts_of(g, full, x)
    d_window = None
    if window is not None:
        d_window = g.ReduceSum(g.Mul(d, g.Gather(x, read, axis=1)), [0, 1, 3], keepdims=0)
        d = g.Mul(d, g.Unsqueeze(window, [1]))
    places = g.Gather(numbers_of(g, x), read, axis=1)
    dx = moved_back(g, x, places, d)
    return g.Squeeze(dx, [2]) if bare else dx, d_window
