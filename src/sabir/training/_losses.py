"""What a loss is, and a loss that is a function of the builder."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sabir.base import UnsupportedError
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Array, Builder, Value

    Function: TypeAlias = Callable[[Builder, Value, Value], Value]
    """A loss or a metric: builds a scalar with the builder, of the scores and the target."""

LOSS = "loss"  # the name of the loss in a prepared model
SUMS = "_sums"  # after the name of a metric: the output with the sums that it is computed from


@dataclass(frozen=True, slots=True)
class Loss(ABC):
    """A loss of an output of the model and a target; the mean over the elements.

    >>> print(MeanSquaredError().target(sabir.ir.tensor_type('float', ['N', 2])))
    float[N,2]
    """

    def of_output(self, output: Value, kind: TensorType) -> Loss:
        """Return the loss with what it finds out about an output of a type; raises UnsupportedError."""
        del output, kind
        return self

    def scores(self, output: Value) -> Value:
        """Return what the loss is computed from: the output, or what the model computes it from."""
        return output

    def target(self, output: TensorType) -> TensorType:
        """Return the type of the target for an output."""
        return TensorType(output.element, output.shape)

    @property
    def ignored(self) -> float | None:
        """The number of a target that counts for nothing, None where all count."""
        return None

    def counted(self, b: Builder, target: Value) -> Value | None:
        """Build where a target counts, None where all do."""
        if self.ignored is None:
            return None
        if math.isnan(self.ignored):
            return b.Not(b.IsNaN(target))
        return b.Not(b.Equal(target, number(b, target, self.ignored)))

    @abstractmethod
    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        """Build the loss, a scalar."""

    def right(self, b: Builder, scores: Value, target: Value) -> tuple[Value, Value | None]:
        """Build which answers are right, and which of them count, None where all do.

        Raises UnsupportedError where no answer is right or wrong.
        """
        del b, scores, target
        raise UnsupportedError(f"the loss {type(self).__name__} has no accuracy")


@dataclass(frozen=True, slots=True)
class LossFunction(Loss):
    """A loss of one's own: `function(b, scores, target)` builds a scalar with the builder `b`.

    `target_type` is by default the type of the output; the scores are the output itself. `prepare`
    also takes the function alone.

    >>> loss = LossFunction(lambda b, scores, target: b.ReduceMax(b.Abs(b.Sub(scores, target)), keepdims=0))
    >>> print(loss.target(sabir.ir.tensor_type('float', ['N', 2])))
    float[N,2]
    """

    function: Function
    target_type: TensorType | None = None

    def target(self, output: TensorType) -> TensorType:
        return self.target_type or TensorType(output.element, output.shape)

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        return built_scalar(self.function, "loss", b, scores, target)


def built_scalar(function: Function, what: str, b: Builder, scores: Value, target: Value) -> Value:
    """Return what a function builds; raises UnsupportedError where it is no scalar of numbers."""
    value = function(b, scores, target)
    kind = b.type_of(value)
    if isinstance(kind, TensorType) and kind.element.is_float and not kind.shape:
        return value
    raise UnsupportedError(
        f"the function of the {what} builds {kind or 'an unknown type'}; it must be a scalar"
    )


def number(b: Builder, like: Value, value: float) -> Array:
    """Return a scalar of the element type of a value."""
    return np.asarray(value, dtype_of(b, like))


def dtype_of(b: Builder, value: Value) -> np.dtype:
    """Return the element type of a value, float where inference does not know it."""
    kind = b.type_of(value)
    return kind.element.dtype if isinstance(kind, TensorType) else np.dtype(np.float32)


def check_number(what: str, value: float, *, least: float = 0.0, most: float = np.inf) -> None:
    """Raise UnsupportedError for an option that is not a number from `least` to `most`."""
    if not least <= value <= most:
        limit = f"from {least:g} to {most:g}" if most < np.inf else f"of {least:g} or more"
        raise UnsupportedError(f"{what} is a number {limit}; got {value}")


__all__ = [
    "LOSS",
    "SUMS",
    "Function",
    "Loss",
    "LossFunction",
    "built_scalar",
    "check_number",
    "dtype_of",
    "number",
]
