"""Control flow: what a room lowers a call to whose subgraphs run once, many times, or not at all.

The subgraphs become parts of the plan, between rows that choose and repeat them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.loops._calls import LoweredSubgraph
    from sabir.loops._expression import Expression, Size, Sizes


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """The results of one of two subgraphs without inputs, by a condition of one element."""

    condition: Expression
    chosen: LoweredSubgraph
    otherwise: LoweredSubgraph


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """The results of a subgraph that is repeated: the last states, and other results, stacked.

    The inputs of the subgraph are the number of the iteration (int64, of the shape `number`), the condition
    (bool, of the shape `going`), and the states; its results are the next condition, the next states, and
    what is stacked. There are at most `limit` iterations, an int64 of one element; None means any number.
    They end when the condition is false; without a first `condition` they do not depend on it.
    """

    body: LoweredSubgraph
    limit: Expression | None
    condition: Expression | None
    states: tuple[Expression, ...]
    number: Sizes
    going: Sizes


@dataclass(frozen=True, slots=True, eq=False)
class IterateSlices:
    """The results of a subgraph that is repeated for the slices of tensors along axis 0: as for `Iterate`.

    The inputs of the subgraph are the states and a slice of each of the `slices`, which have `count` slices;
    its results are the next states, and what is stacked. Those of a `backward` tensor are taken from the end.
    """

    body: LoweredSubgraph
    states: tuple[Expression, ...]
    slices: tuple[Expression, ...]
    backward: tuple[bool, ...]
    count: Size


__all__ = ["Branch", "Iterate", "IterateSlices"]
