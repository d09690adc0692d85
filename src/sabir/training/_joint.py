"""Losses of several values of a model: what they have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError
from sabir.training._losses import Loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value


@dataclass(frozen=True, slots=True)
class JointLoss(Loss):
    """A loss that reads other values of the model than the output too, and may have no target."""

    @property
    @abstractmethod
    def others(self) -> tuple[str, ...]:
        """The names of the other values."""

    @property
    def has_target(self) -> bool:
        """Whether the loss compares with a target."""
        return True

    @abstractmethod
    def build_of(self, b: Builder, values: Sequence[Value], target: Value | None) -> Value:
        """Build the loss, a scalar, of the output and the other values."""

    def build(self, b: Builder, scores: Value, target: Value) -> Value:
        """Raise UnsupportedError: the loss needs the other values too."""
        del b, scores, target
        raise UnsupportedError(f"{type(self).__name__} reads several values of the model")


__all__ = ["JointLoss"]
