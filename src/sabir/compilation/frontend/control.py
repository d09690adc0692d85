"""Control flow in a lowered plan: calls whose subgraphs are parts of the plan, lowered on their own.

A subgraph has expressions of its own: what it captures are operands in memory. Its results have the types
that were inferred for the call, so what follows the call is compiled, whichever subgraph runs, and however
often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sabir.elements import BOOL, INT64, element
from sabir.ir import TensorType
from sabir.loops import Branch, Iterate, NotLowered, same_shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.frontend.lowering import Lowered
    from sabir.ir import Type
    from sabir.loops import Expression, LoweredSubgraph, Size, Sizes


@dataclass(frozen=True, slots=True, eq=False)
class Inner:
    """A lowered subgraph.

    `inputs` are the slots of its inputs, `captures` pairs of an outer slot and its own. `results` are slots
    of its expressions, one for each result. `cost` is how many nodes one run of it runs.
    """

    lowered: Lowered
    inputs: tuple[int, ...]
    captures: tuple[tuple[int, int], ...]
    results: tuple[int, ...]
    cost: int

    def shapes(self) -> list[tuple[str, Sizes]]:
        """Return the element type and the shape of each result."""
        found = (self.lowered.expressions[slot] for slot in self.results)
        return [(x.element, x.shape) for x in found]


@dataclass(frozen=True, slots=True, eq=False)
class LoweredBranch:
    """A call that runs one of two subgraphs; `condition` is the slot of one element."""

    condition: int
    chosen: Inner
    otherwise: Inner

    @property
    def inners(self) -> tuple[Inner, ...]:
        """The subgraphs."""
        return self.chosen, self.otherwise


@dataclass(frozen=True, slots=True, eq=False)
class LoweredLoop:
    """A call that repeats a subgraph; its fields are slots of operands, as of `sabir.loops.Iterate`."""

    limit: int | None
    condition: int | None
    states: tuple[int, ...]
    body: Inner

    @property
    def inners(self) -> tuple[Inner, ...]:
        """The subgraphs."""
        return (self.body,)


LoweredControl: TypeAlias = LoweredBranch | LoweredLoop


class CallFacts(NamedTuple):
    """Facts of a call with control flow.

    `types` are the inferred types of its results, None for one that it does not name. `slot_of` returns the
    slot of an operand, `inner` lowers a subgraph for inputs of some types. `check` raises NotLowered if a
    result has another element type or shape than inferred, `is_open` returns whether only a run decides a
    size.
    """

    types: Sequence[Type | None]
    slot_of: Callable[[Expression], int]
    inner: Callable[[LoweredSubgraph, Sequence[TensorType]], Inner]
    check: Callable[[Type, str, Sizes], None]
    is_open: Callable[[Size], bool]


def controlled(control: Branch | Iterate, call: CallFacts) -> LoweredControl:
    """Return the control flow of a call with its subgraphs lowered.

    Raises NotLowered if a subgraph cannot be lowered, or the types of results depend on the run.
    """
    return _branch(control, call) if isinstance(control, Branch) else _loop(control, call)


def _branch(control: Branch, call: CallFacts) -> LoweredBranch:
    chosen, otherwise = (call.inner(subgraph, ()) for subgraph in (control.chosen, control.otherwise))
    for inner in (chosen, otherwise):
        if len(inner.results) < len(call.types):
            raise NotLowered("a branch has fewer results")
        for kind, result in zip(call.types, inner.shapes(), strict=False):
            _check(call, kind, *result)
    return LoweredBranch(call.slot_of(control.condition), chosen, otherwise)


def _loop(control: Iterate, call: CallFacts) -> LoweredLoop:
    carried = len(control.states)
    states = [TensorType(element(x.element), x.shape) for x in control.states]
    kinds = (TensorType(INT64, control.number), TensorType(BOOL, control.going), *states)
    body = call.inner(control.body, kinds)
    if len(body.results) <= max(carried, len(call.types)):
        raise NotLowered("the body has fewer results")
    (again, shape), *results = body.shapes()
    if again != "bool" or any(size != 1 for size in shape):
        raise NotLowered("whether the condition of the body has one element is known at run time only")
    for x, (name, shape) in zip(control.states, results, strict=False):
        if x.element != name or not same_shape(x.shape, shape):
            raise NotLowered("a state changes its type or shape")
    for kind, result in zip(call.types[:carried], results, strict=False):
        _check(call, kind, *result)
    for kind, (name, shape) in zip(call.types[carried:], results[carried:], strict=False):
        count = 0 if kind is None else shape_of(kind)[0]
        if call.is_open(count):
            raise NotLowered("the number of turns is known at run time only")
        _check(call, kind, name, (count, *shape))
    limit, condition = (None if x is None else call.slot_of(x) for x in (control.limit, control.condition))
    return LoweredLoop(limit, condition, tuple(map(call.slot_of, control.states)), body)


def _check(call: CallFacts, kind: Type | None, name: str, shape: Sizes) -> None:
    if kind is not None:
        call.check(kind, name, shape)
