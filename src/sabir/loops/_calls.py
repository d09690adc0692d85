"""The arguments of a room's `lower`: facts of the call, and its subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sabir.ir import TensorType
from sabir.loops._operations import NotLowered

if TYPE_CHECKING:
    from sabir.ir import Type
    from sabir.loops._expression import Expression, Sizes


class Lowering(NamedTuple):
    """Facts of a call that is lowered: which outputs the node names, the opset, the inferred output types.

    `key` is two uint32 words that differ in each run, for an operator that draws random numbers.
    """

    outputs: tuple[bool, ...]
    opset: int
    types: tuple[Type | None, ...]
    key: Expression | None = None

    def wants(self, index: int) -> bool:
        """Return whether the node names its output number `index`."""
        return index < len(self.outputs) and self.outputs[index]

    def shape(self, index: int = 0) -> Sizes:
        """Return the inferred shape of an output; raises NotLowered where a size is unknown."""
        return shape_of(self.types[index])


class LoweredSubgraph(Protocol):
    """A subgraph attribute, as a function of expressions."""

    @property
    def inputs(self) -> tuple[Type | None, ...]:
        """The declared types of its inputs."""
        ...

    @property
    def captured(self) -> tuple[Expression, ...]:
        """The values of the enclosing graphs that it reads."""
        ...

    def __call__(self, *operands: Expression) -> tuple[Expression, ...]:
        """Return its results; raises NotLowered where a call in it has no kernel."""
        ...


def shape_of(kind: Type | None) -> Sizes:
    """Return the shape of a type; raises NotLowered if the rank or a size is unknown."""
    if not isinstance(kind, TensorType) or kind.shape is None:
        raise NotLowered("the rank of an output is unknown")
    sizes = tuple(d for d in kind.shape if d is not None)
    if len(sizes) < len(kind.shape):
        raise NotLowered("a size of an output is unknown")
    return sizes
