"""Cuts: where a plan ends because a run decides what follows it.

The branches of an If may have different ranks, and the size of what NonZero returns follows from the contents
of its operand. The calls behind such a call are compiled in a run, for the ranks and sizes that came, as a
plan of their own. Where few integers decide, as the iterations of a Loop or the number of results of TopK, or
the condition of an If, the call itself is a part of that plan: there these integers are sizes, and the
condition is known, so each branch has a plan together with what follows it.

Other calls that are evaluated end a stage as well, if there are few: then all kernels are in plans of kernels
alone, whose runs are fast. Calls that read nothing but feeds run before all kernels, and end no stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.frontend.ahead import calls_ahead
from sabir.compilation.frontend.patterns import MOST_SIZED
from sabir.elements import BOOL, INT32, INT64
from sabir.ir import Expr, TensorType
from sabir.loops import ELEMENTS
from sabir.scheduling import ABSENT, OperatorCall, Plan
from sabir.schema import INTERNAL

if TYPE_CHECKING:
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.ir import Type
    from sabir.scheduling import Program, ScheduledCall


_MOST_STAGES = 64  # of a plan, one inside of the other: each is planned with all that follows it
_FEW = 8  # evaluated calls of a plan, each of which may end a stage


class Cut(NamedTuple):
    """The parts of a plan: `first` the calls before the `deciding` ones (their places), and the `rest`.

    `live` are the slots that the rest reads, `sized` those of them whose contents are sizes for it.
    """

    first: Plan
    deciding: tuple[int, ...]
    rest: Plan
    live: tuple[int, ...]
    sized: frozenset[int]


def cut_of(found: Lowered) -> Cut | None:
    """Return the first cut of a plan; None if the sizes of the feeds decide all others that kernels need."""
    program, results = found.prepared.program, found.prepared.plan.results
    constants = found.prepared.constants.keys()
    sides = _sides(found)
    if not _pays(found, sides):
        return None
    live = _live(program, sides.behind)
    made = {slot for place in sides.before for slot in program.calls[place].outputs} - constants
    needed = {*live, *results, *(s for place in sides.deciding for s in _reads(program.calls[place]))}
    last = {slot for place in sides.behind for slot in program.calls[place].outputs}
    return Cut(
        _part(program, _needed(program, sides.before, made & needed), sorted(made & needed)),
        tuple(sides.deciding),
        _part(program, sides.behind, [slot for slot in dict.fromkeys(results) if slot in last]),
        tuple(slot for slot in live if slot not in constants),
        frozenset(sides.sized),
    )


class _Sides(NamedTuple):
    """The calls on both sides of a cut and between them, and the operands whose contents become sizes."""

    before: list[int]
    deciding: list[int]
    behind: list[int]
    sized: set[int]


def _sides(found: Lowered) -> _Sides:
    program, sides = found.prepared.program, _Sides([], [], [], set())
    evaluated = found.evaluated.keys() - found.controls.keys()
    ahead = calls_ahead(found)
    open_slots = set[int]()
    for place, _ in found.prepared.plan.steps:
        call = program.calls[place]
        if not open_slots.isdisjoint(_reads(call)):
            sides.behind.append(place)
        elif place not in evaluated or place in ahead:
            sides.before.append(place)
            continue
        elif _decides(found, call) and (operands := _sized_operands(found, call)):
            sides.sized.update(operands)
            sides.behind.append(place)
        elif _decides(found, call) or len(evaluated) <= _FEW:
            sides.deciding.append(place)
        else:
            sides.before.append(place)
            continue
        open_slots.update(slot for slot in call.outputs if slot != ABSENT)
    return sides


def _pays(found: Lowered, sides: _Sides) -> bool:
    """Return whether kernels compute something behind a cut, or a result has a size that a call decides."""
    calls = found.prepared.program.calls
    if sum(_decides(found, calls[place]) for place in found.evaluated) > _MOST_STAGES:
        return False
    if sides.behind:
        return any(
            is_computed(calls[place]) and has_numbers(found.prepared, calls[place]) for place in sides.behind
        )
    return any(_decides(found, calls[place]) for place in sides.deciding)


def has_numbers(prepared: Prepared, call: ScheduledCall) -> bool:
    """Return whether a result of a call may be a tensor that kernels store: no text, sequence or map."""
    kinds = [prepared.types[slot] for slot in call.outputs if slot != ABSENT]
    return any(k is None or (isinstance(k, TensorType) and k.element.name in ELEMENTS) for k in kinds)


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


def _sized_operands(found: Lowered, call: ScheduledCall) -> list[int]:
    """Return the operands that a call with kernels may have its sizes or ranks from, if it has any."""
    kinds = ((slot, found.prepared.types[slot]) for slot in call.inputs if slot != ABSENT)
    return [slot for slot, kind in kinds if is_computed(call) and _is_sized(kind)]


def _is_sized(kind: Type | None) -> bool:
    """Return whether a tensor is few integers or a condition, whose contents are not known before a run."""
    if not isinstance(kind, TensorType) or (kind.known is not None and None not in kind.known):
        return False
    if kind.element is BOOL:
        return kind.size == 1
    return kind.element in {INT32, INT64} and isinstance(kind.size, int) and kind.size <= MOST_SIZED


def is_computed(call: ScheduledCall) -> bool:
    """Return whether kernels compute a call where its operands are known."""
    return isinstance(call, OperatorCall) and call.version.find("lower") is not None


def is_look(call: ScheduledCall) -> bool:
    """Return whether a call only looks at its operands, as the operators do that Sabir adds to models.

    Its result is one array.
    """
    is_internal = isinstance(call, OperatorCall) and call.version.operator.domain == INTERNAL
    return is_internal and len(call.outputs) == 1


def _live(program: Program, places: list[int]) -> tuple[int, ...]:
    """Return the slots that some calls read, and that others fill."""
    made = {slot for place in places for slot in program.calls[place].outputs}
    read = dict.fromkeys(slot for place in places for slot in _reads(program.calls[place]))
    return tuple(slot for slot in read if slot not in made)


def _needed(program: Program, places: list[int], wanted: set[int]) -> list[int]:
    """Return those of some calls that the wanted slots depend on."""
    needed, found = set(wanted), list[int]()
    for place in reversed(places):
        if not needed.isdisjoint(program.calls[place].outputs):
            found.append(place)
            needed.update(_reads(program.calls[place]))
    return found[::-1]


def _part(program: Program, places: list[int], results: list[int]) -> Plan:
    """Return the plan of some calls of a program; other calls fill what they read of other slots."""
    cost = sum(program.calls[place].cost for place in places)
    return Plan(tuple((place, ()) for place in places), tuple(results), (), (), cost)
