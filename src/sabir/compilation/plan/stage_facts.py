"""What runs of a staged plan need of its program."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.elements import element
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.frontend.patterns import Guard
    from sabir.ir import Known, Type
    from sabir.loops import Sizes


class InputKind(NamedTuple):
    """The type of an input in a pattern."""

    element: str
    shape: Sizes
    known: Known | None

    @classmethod
    def of(cls, kind: Type | None) -> InputKind | None:
        """Return a type as data; None for one that is no tensor of known rank."""
        if not isinstance(kind, TensorType) or kind.shape is None or None in kind.shape:
            return None
        return cls(kind.element.name, tuple(d for d in kind.shape if d is not None), kind.known)

    def type(self) -> TensorType:
        """Return the type."""
        return TensorType(element(self.element), self.shape, self.known)


class StageFacts(NamedTuple):
    """A staged plan as data: the slots of its inputs, their types, and the slots of its results.

    `slots` is the number of values. The first stage returns the values of the slots `first`; `looks` is
    whether the calls between the stages only look at these. What follows reads `live`, of which those
    numbered in `sized` have contents that are sizes, and returns `rest`.
    """

    inputs: tuple[int, ...]
    kinds: tuple[InputKind | None, ...]
    results: tuple[int, ...]
    slots: int
    guards: tuple[Guard, ...]
    first: tuple[int, ...]
    looks: bool
    live: tuple[int, ...]
    sized: tuple[int, ...]
    rest: tuple[int, ...]

    def types(self) -> Sequence[TensorType | None]:
        """Return the types of the inputs."""
        return [None if kind is None else kind.type() for kind in self.kinds]


__all__ = ["InputKind", "StageFacts"]
