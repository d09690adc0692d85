"""Cuts: where a plan ends because a run decides what follows it.

The branches of an If may have different ranks, and NonZero has as many results as its operand has elements
that are not 0. The calls behind such a call are compiled in a run, for the ranks and sizes that came, as a
plan of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Expr, TensorType
from sabir.scheduling import ABSENT, OperatorCall, make_plan

if TYPE_CHECKING:
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.scheduling import Plan, Program, ScheduledCall


class Cut(NamedTuple):
    """The parts of a plan: `first` the calls before the `deciding` ones (their places), and the `rest`.

    `live` are the slots that the rest reads.
    """

    first: Plan
    deciding: tuple[int, ...]
    rest: Plan
    live: tuple[int, ...]


def cut_of(found: Lowered) -> Cut | None:
    """Return the first cut of a plan; None if the sizes of the feeds decide all others that kernels need."""
    prepared = found.prepared
    program, plan = prepared.program, prepared.plan
    before, deciding, behind = list[int](), list[int](), list[int]()
    open_slots: set[int] = set()
    for place, _ in plan.steps:
        call = program.calls[place]
        if not open_slots.isdisjoint(_reads(call)):
            behind.append(place)
        elif place in found.evaluated and place not in found.controls and _decides(found, call):
            deciding.append(place)
        else:
            before.append(place)
            continue
        open_slots.update(slot for slot in call.outputs if slot != ABSENT)
    if not deciding or (behind and not any(_is_computed(program.calls[place]) for place in behind)):
        return None
    live = _live(program, behind)
    made = {slot for place in before for slot in program.calls[place].outputs} - prepared.constants.keys()
    needed = {*live, *plan.results, *(s for place in deciding for s in _reads(program.calls[place]))}
    results = [slot for slot in dict.fromkeys(plan.results) if program.producers.get(slot) in set(behind)]
    return Cut(
        make_plan(program, sorted(made & needed)),
        tuple(deciding),
        _part(program, behind, results),
        tuple(slot for slot in live if slot not in prepared.constants),
    )


def _reads(call: ScheduledCall) -> tuple[int, ...]:
    return tuple(slot for slot in (*call.inputs, *call.captures) if slot != ABSENT)


def _decides(found: Lowered, call: ScheduledCall) -> bool:
    """Return whether a call has results whose rank or sizes only it determines."""
    for slot in call.outputs:
        kind = found.prepared.types[slot] if slot != ABSENT else None
        if not isinstance(kind, TensorType):
            continue
        if kind.shape is None:
            return True
        if any(isinstance(d, Expr) and not d.symbols.isdisjoint(found.prepared.unknown) for d in kind.shape):
            return True
    return False


def _is_computed(call: ScheduledCall) -> bool:
    """Return whether kernels compute a call where its operands are known."""
    return isinstance(call, OperatorCall) and call.version.find("lower") is not None


def _live(program: Program, places: list[int]) -> tuple[int, ...]:
    """Return the slots that some calls read, and that others fill."""
    made = {slot for place in places for slot in program.calls[place].outputs}
    read = dict.fromkeys(slot for place in places for slot in _reads(program.calls[place]))
    return tuple(slot for slot in read if slot not in made)


def _part(program: Program, places: list[int], results: list[int]) -> Plan:
    """Return the plan of some calls of a program."""
    return make_plan(program, results)._replace(
        steps=tuple((place, ()) for place in places),
        cost=sum(program.calls[place].cost for place in places),
    )
