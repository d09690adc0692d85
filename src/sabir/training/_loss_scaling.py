"""Dynamic loss scaling: gradients are kept within the range of float16, and steps that overflow are skipped.

The scale is halved by a step whose gradients are not finite, and doubled after 2000 steps in turn whose are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.elements import FLOAT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Builder, Value

SCALE = "loss_scale"
SKIPPED = "skipped_steps"

_FIRST = 2.0**16
_LARGEST = 2.0**64
_INTERVAL = 2000
_GROWTH, _BACKOFF = 2.0, 0.5


class LossScaling(NamedTuple):
    """The state variables of the scaling of a loss."""

    scale: Value
    good_steps: Value
    skipped_steps: Value

    @staticmethod
    def begin(new: Callable[[str, object], Value]) -> LossScaling:
        """Return the scaling; `new` makes a state variable of a name and a first value."""
        return LossScaling(
            new(SCALE, np.float32(_FIRST)), new("good_steps", np.int64(0)), new(SKIPPED, np.int64(0))
        )

    def scaled(self, b: Builder, loss: Value) -> Value:
        """Build the loss times the scale."""
        return b.Mul(loss, b.CastLike(self.scale, loss))

    def unscaled(self, b: Builder, gradients: Sequence[Value]) -> list[Value]:
        """Build the gradients of the loss itself."""
        return [b.Div(g, b.CastLike(self.scale, g)) for g in gradients]

    def are_finite(self, b: Builder, gradients: Sequence[Value]) -> Value:
        """Build whether all elements of some gradients are finite, a scalar."""
        faults = [
            b.ReduceMax(b.Cast(b.Or(b.IsNaN(g), b.IsInf(g)), to=FLOAT.number), keepdims=0) for g in gradients
        ]
        return b.Equal(b.Max(*faults), np.float32(0))

    @staticmethod
    def kept(b: Builder, old: Value, new: Value) -> Value:
        """Build the new value of a statistic, or the old one where the new one is not finite."""
        return b.Where(b.Or(b.IsNaN(new), b.IsInf(new)), old, new)

    def updates(self, b: Builder, finite: Value, due: Value | None) -> list[tuple[Value, Value]]:
        """Build what a step assigns to the state; where `due` is false all stays as it is."""
        one, zero = np.int64(1), np.int64(0)
        good = b.Where(finite, b.Add(self.good_steps, one), zero)
        is_full = b.Equal(good, np.int64(_INTERVAL))
        larger = b.Min(b.Mul(self.scale, np.float32(_GROWTH)), np.float32(_LARGEST))
        grown = b.Where(is_full, larger, self.scale)
        pairs = [
            (self.scale, b.Where(finite, grown, b.Mul(self.scale, np.float32(_BACKOFF)))),
            (self.good_steps, b.Where(is_full, zero, good)),
            (self.skipped_steps, b.Where(finite, self.skipped_steps, b.Add(self.skipped_steps, one))),
        ]
        return [(old, new if due is None else b.Where(due, new, old)) for old, new in pairs]


__all__ = ["SCALE", "SKIPPED", "LossScaling"]
