"""What a room's `lower` may ask about its call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sabir.ir import TensorType
from sabir.loops._operations import NotLowered

if TYPE_CHECKING:
    from sabir.ir import Type
    from sabir.loops._expression import Expression, Sizes


class Lowering(NamedTuple):
    """A call that is lowered: the outputs that the node names, the opset, the inferred output types.

    `key` has two words of uint32 that differ in each run, for an operator that draws random numbers.
    """

    outputs: tuple[bool, ...]
    opset: int
    types: tuple[Type | None, ...]
    key: Expression | None = None

    def wants(self, index: int) -> bool:
        """Whether the node names its output number `index`."""
        return index < len(self.outputs) and self.outputs[index]

    def shape(self, index: int = 0) -> Sizes:
        """Return the inferred shape of an output; raises NotLowered where a size is unknown."""
        return shape_of(self.types[index])


class LoweredSubgraph(Protocol):
    """A subgraph attribute, as a function of expressions."""

    @property
    def captured(self) -> tuple[Expression, ...]:
        """What it reads of the graph around it."""
        ...

    def __call__(self, *operands: Expression) -> tuple[Expression, ...]:
        """Return its results; raises NotLowered where a call in it has no kernel."""
        ...


def shape_of(kind: Type | None) -> Sizes:
    """Return the shape of a type without unknown sizes; raises NotLowered where there is none."""
    if not isinstance(kind, TensorType) or kind.shape is None:
        raise NotLowered("the rank of an output is unknown")
    sizes = tuple(d for d in kind.shape if d is not None)
    if len(sizes) < len(kind.shape):
        raise NotLowered("a size of an output is unknown")
    return sizes
