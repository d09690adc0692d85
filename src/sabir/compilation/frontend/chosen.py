"""Branches that are known before a run, written out in the program around them.

    c, y = call (x) <then_branch = { b = Neg (x) }, else_branch = ...>     with a condition that is true
    y = Neg (x)

So the calls of the branch are planned together with those before and behind it: one of them may decide sizes,
and end a stage, as the calls of the program itself do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import ACCIDENTS, SabirError
from sabir.ir import TensorType
from sabir.loops import ELEMENTS, Lowering, NotLowered, Stored, shape_of
from sabir.scheduling import ABSENT, OperatorCall, Plan, Program, ScheduledSubgraph
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.frontend.prepare import Prepared
    from sabir.ir import Type
    from sabir.loops import Expression


class WrittenOut(NamedTuple):
    """A program in which branches are written out, and its plan."""

    program: Program
    plan: Plan


def written_out(prepared: Prepared) -> WrittenOut | None:
    """Return the program of a plan with the branches that are known; None if there are none."""
    program, steps = prepared.program, list[tuple[int, tuple[int, ...]]]()
    for place, dead in prepared.plan.steps:
        call = program.calls[place]
        chosen = _chosen(call, prepared) if isinstance(call, OperatorCall) else None
        found = None if chosen is None else _with_branch(program, call.outputs, chosen)
        if found is None:
            steps.append((place, dead))
            continue
        program, added = found
        steps += ((number, ()) for number in added)
    if program is prepared.program:
        return None
    cost = sum(program.calls[place].cost for place, _ in steps)
    return WrittenOut(program, prepared.plan._replace(steps=tuple(steps), cost=cost))


class _Chosen(Exception):
    """A lowering has called a subgraph in the place of its call."""

    def __init__(self, subgraph: ScheduledSubgraph) -> None:
        super().__init__()
        self.subgraph = subgraph


class _Probe:
    """A subgraph without inputs, for a lowering that is asked which one it calls."""

    def __init__(self, subgraph: ScheduledSubgraph) -> None:
        self._subgraph = subgraph
        self.inputs = ()

    @property
    def captured(self) -> tuple[Expression, ...]:
        raise NotLowered("a lowering that is asked which branch it calls reads no values")

    def __call__(self, *inputs: Expression) -> tuple[Expression, ...]:
        raise NotLowered("the branch has inputs") if inputs else _Chosen(self._subgraph)


def _chosen(call: OperatorCall, prepared: Prepared) -> ScheduledSubgraph | None:
    """Return the subgraph without inputs that a call means, if its operands are known."""
    graphs = [value for value in call.attributes.values() if isinstance(value, ScheduledSubgraph)]
    if not graphs or any(graph.program.inputs for graph in graphs) or call.version.find("lower") is None:
        return None
    operands = [_known(prepared.types[slot], slot) for slot in call.inputs]
    if None in operands:
        return None
    binding = call.version.binding("lower")
    attributes = {
        name: _Probe(value) if isinstance(value, ScheduledSubgraph) else value
        for name, value in call.attributes.items()
    }
    facts: Any = Lowering(
        call.named, call.version.since, tuple(prepared.types[s] for s in call.outputs), None
    )
    try:
        as_results(binding(operands, binding.fill(attributes), facts))
    except _Chosen as found:
        return found.subgraph
    except (NotLowered, SabirError, *ACCIDENTS):
        return None
    return None


def _known(kind: Type | None, slot: int) -> Stored | None:
    """Return an operand whose contents are numbers before a run."""
    if not isinstance(kind, TensorType) or kind.element.name not in ELEMENTS or not kind.is_static:
        return None
    if kind.known is None or not all(isinstance(item, (bool, int, float)) for item in kind.known):
        return None
    return Stored(kind.element.name, shape_of(kind), slot, kind.known)


def _with_branch(
    program: Program, outputs: Sequence[int], subgraph: ScheduledSubgraph
) -> tuple[Program, range] | None:
    """Return a program with the calls of a subgraph behind its own, which fill some slots; None if it cannot.

    Each result must be the result of a call of the subgraph, and only one of them.
    """
    inner, plan = subgraph.program, subgraph.plan
    slots = [ABSENT, *range(program.size + 1, program.size + inner.size)]
    for own, outer in zip(plan.captures, subgraph.captured, strict=True):
        slots[own] = outer
    if len({*plan.results}) < len(plan.results) or not inner.producers.keys() >= {*plan.results}:
        return None
    for own, outer in zip(plan.results, outputs, strict=False):
        slots[own] = outer or slots[own]
    added = [_moved(inner.calls[place], slots.__getitem__) for place, _ in plan.steps]
    first = len(program.calls)
    constants = {slots[slot]: tensor for slot, tensor in inner.constants.items()}
    made = {slot: first + n for n, call in enumerate(added) for slot in call.outputs if slot != ABSENT}
    found = program._replace(
        size=program.size + inner.size,
        constants={**program.constants, **constants},
        calls=(*program.calls, *added),
        producers={**program.producers, **made},
    )
    return found, range(first, first + len(added))


def _moved(call: Any, moved: Callable[[int], int]) -> Any:
    """Return a call with other slots."""
    fields = {name: tuple(map(moved, getattr(call, name))) for name in ("inputs", "outputs", "captures")}
    if isinstance(call, OperatorCall):
        attributes = {name: _moved_value(value, moved) for name, value in call.attributes.items()}
        return call._replace(**fields, attributes=attributes)
    return call._replace(**fields)


def _moved_value(value: Any, moved: Callable[[int], int]) -> Any:
    if isinstance(value, ScheduledSubgraph):
        return replace(value, captured=tuple(map(moved, value.captured)))
    if isinstance(value, tuple):
        return tuple(_moved_value(item, moved) for item in cast("tuple[Any, ...]", value))
    return value


__all__ = ["WrittenOut", "written_out"]
