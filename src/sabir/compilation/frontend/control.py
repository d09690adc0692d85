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
from sabir.loops import Branch, Iterate, IterateSlices, NotLowered, same_shape, shape_of

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
    """A call that repeats a subgraph; `limit`, `condition`, `states` and `slices` are slots of operands.

    A loop over `slices` has `count` iterations; the slices of a `backward` tensor are taken from the end. The
    body of any other loop takes the number of the iteration and the condition first.
    """

    limit: int | None
    condition: int | None
    states: tuple[int, ...]
    body: Inner
    slices: tuple[int, ...] = ()
    backward: tuple[bool, ...] = ()
    count: Size | None = None

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


def controlled(control: Branch | Iterate | IterateSlices, call: CallFacts) -> LoweredControl:
    """Return the control flow of a call with its subgraphs lowered.

    Raises NotLowered if a subgraph cannot be lowered, or the types of results depend on the run.
    """
    match control:
        case Branch():
            return _branch(control, call)
        case Iterate():
            return _loop(control, call)
        case IterateSlices():
            return _loop_over_slices(control, call)


def _branch(control: Branch, call: CallFacts) -> LoweredBranch:
    chosen, otherwise = (call.inner(subgraph, ()) for subgraph in (control.chosen, control.otherwise))
    for inner in (chosen, otherwise):
        if len(inner.results) < len(call.types):
            raise NotLowered("a branch has fewer results")
        for kind, result in zip(call.types, inner.shapes(), strict=False):
            _check(call, kind, *result)
    return LoweredBranch(call.slot_of(control.condition), chosen, otherwise)


def _loop(control: Iterate, call: CallFacts) -> LoweredLoop:
    kinds = (
        TensorType(INT64, control.number),
        TensorType(BOOL, control.going),
        *map(_type_of, control.states),
    )
    body = call.inner(control.body, kinds)
    (again, shape), *results = body.shapes()
    if again != "bool" or any(size != 1 for size in shape):
        raise NotLowered("whether the condition of the body has one element is known at run time only")
    _check_turns(call, control.states, results)
    limit, condition = (None if x is None else call.slot_of(x) for x in (control.limit, control.condition))
    return LoweredLoop(limit, condition, tuple(map(call.slot_of, control.states)), body)


def _loop_over_slices(control: IterateSlices, call: CallFacts) -> LoweredLoop:
    items = (TensorType(element(x.element), x.shape[1:]) for x in control.slices)
    body = call.inner(control.body, (*map(_type_of, control.states), *items))
    _check_turns(call, control.states, body.shapes())
    states, slices = (tuple(map(call.slot_of, found)) for found in (control.states, control.slices))
    return LoweredLoop(None, None, states, body, slices, control.backward, control.count)


def _type_of(x: Expression) -> TensorType:
    return TensorType(element(x.element), x.shape)


def _check_turns(call: CallFacts, states: Sequence[Expression], results: Sequence[tuple[str, Sizes]]) -> None:
    """Raise NotLowered if states change their types, or results of the call have others than inferred."""
    carried = len(states)
    if len(results) < max(carried, len(call.types)):
        raise NotLowered("the body has fewer results")
    for x, (name, shape) in zip(states, results, strict=False):
        if x.element != name or not same_shape(x.shape, shape):
            raise NotLowered("a state changes its type or shape")
    for kind, result in zip(call.types[:carried], results, strict=False):
        _check(call, kind, *result)
    for kind, (name, shape) in zip(call.types[carried:], results[carried:], strict=False):
        count = 0 if kind is None else shape_of(kind)[0]
        if call.is_open(count):
            raise NotLowered("the number of iterations is known at run time only")
        _check(call, kind, name, (count, *shape))


def _check(call: CallFacts, kind: Type | None, name: str, shape: Sizes) -> None:
    if kind is not None:
        call.check(kind, name, shape)
