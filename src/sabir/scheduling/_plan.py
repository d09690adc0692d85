"""Plans: the calls of a program that some values depend on, and the last use of each slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import ACCIDENTS, InferenceError, SabirError, SchemaError
from sabir.scheduling._program import InvalidCall, OperatorCall
from sabir.schema import Call, as_results, check_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.scheduling._program import Program, ScheduledCall, Slots


class Plan(NamedTuple):
    """The calls of a program that the slots `results` depend on.

    `steps` has the place of each call in the program, in order, with the slots that no later call reads.
    `captured` are the places, among the program's captures, of those that are read; `captures` are their
    slots. `cost` is how many nodes one run of the plan runs, each run of a subgraph counted once.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> make_plan(program, [program.outputs[0].slot]).steps
    ((0, ()),)
    """

    steps: tuple[tuple[int, Slots], ...]
    results: Slots
    captured: tuple[int, ...]
    captures: Slots
    cost: int


def make_plan(program: Program, wanted: Sequence[int]) -> Plan:
    """Return the plan that computes the slots `wanted`.

    Raises SchemaError or UnsupportedError for a call that is needed and invalid.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> make_plan(program, [program.outputs[0].slot]).cost
    1
    """
    calls = program.calls
    places = _needed(program, wanted)
    read = {*wanted, *(slot for place in places for slot in (*calls[place].inputs, *calls[place].captures))}
    captured = tuple(i for i, slot in enumerate(program.captures) if slot in read)
    kept = {*wanted, *(slot for slot in range(program.size) if slot not in program.producers)}
    return Plan(
        steps=_with_last_uses(calls, places, kept),
        results=tuple(wanted),
        captured=captured,
        captures=tuple(program.captures[i] for i in captured),
        cost=sum(calls[place].cost for place in places),
    )


def _needed(program: Program, wanted: Iterable[int]) -> list[int]:
    """Return the places of the calls that the wanted slots depend on, in order."""
    producers = program.producers
    needed = set[int]()
    pending = [producers[slot] for slot in wanted if slot in producers]
    while pending:
        place = pending.pop()
        if place in needed:
            continue
        needed.add(place)
        call = program.calls[place]
        _check(call)
        pending += [producers[s] for s in (*call.inputs, *call.captures) if s in producers]
    return sorted(needed)


def _check(call: ScheduledCall) -> None:
    if isinstance(call, InvalidCall):
        raise call.error.located(call.label) from call.error
    if isinstance(call, OperatorCall) and not any(call.inputs) and not call.problem:
        _check_constant(call)


def _check_constant(call: OperatorCall) -> None:
    """Raise SchemaError where the output of a call without operands has a type that its version refuses."""
    binding = call.version.binding("infer")
    try:
        arguments = binding.fill(call.attributes)
        results = as_results(binding((), arguments, Call(call.named, call.version.since)))
    except (SabirError, *ACCIDENTS):
        return  # the run reports it
    try:
        check_results(call.version, (), results)
    except InferenceError as error:
        raise SchemaError(f"{call.label}: {error}") from error


def _with_last_uses(
    calls: Sequence[ScheduledCall], places: Sequence[int], kept: set[int]
) -> tuple[tuple[int, Slots], ...]:
    """Pair each place with the slots that no later call reads; `kept` slots are never dead."""
    seen, steps = set(kept), list[tuple[int, tuple[int, ...]]]()
    for place in reversed(places):
        call = calls[place]
        touched = {*call.inputs, *call.outputs, *call.captures}
        steps.append((place, tuple(touched - seen)))
        seen |= touched
    return tuple(steps[::-1])
