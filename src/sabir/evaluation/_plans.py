"""Plans bound to behaviours: what a run walks over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.evaluation._calls import SlotValues, run_call, run_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sabir.evaluation._calls import BoundCall, Run
    from sabir.evaluation._declared import Declaration
    from sabir.scheduling import Plan, Program


class BoundPlan:
    """A plan, ready to run; several threads may run it at once.

    `cost` is how many nodes one run goes through, each run of a subgraph counted once.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> from sabir.scheduling import schedule
    >>> from sabir.evaluation._binding import BoundProgram
    >>> program = schedule(model, STANDARD).program
    >>> BoundProgram(program, CallBinder(strict=False)).plan([program.outputs[0].slot]).cost
    1
    """

    __slots__ = ("_captures", "_constants", "_inputs", "_results", "calls", "cost")

    def __init__(
        self, program: Program, plan: Plan, constants: list[Any], calls: Sequence[BoundCall]
    ) -> None:
        """Take a plan, the program's arrays by slot (None where a run fills it), and the plan's calls."""
        self.cost = plan.cost
        self._inputs = tuple(v.slot for v in program.inputs)
        self._captures, self._results = plan.captures, plan.results
        self._constants, self.calls = constants, tuple(calls)

    def run(
        self,
        inputs: Iterable[Any],
        captured: Iterable[Any],
        run: Run,
        declared: dict[int, tuple[str, Declaration]] | None = None,
        observe: Callable[[BoundCall, SlotValues], None] | None = None,
    ) -> tuple[Any, ...]:
        """Return the requested values; an input passed as None keeps its default.

        `declared` has the declarations to compare computed values with, by slot. `observe` is called after
        each call with the values by slot; those that no later call reads are gone.
        """
        slots: SlotValues = self._constants.copy()
        for slot, value in zip(self._inputs, inputs, strict=False):
            if value is not None:
                slots[slot] = value
        for slot, value in zip(self._captures, captured, strict=True):
            slots[slot] = value
        sizes = [0] * len(slots)
        if declared or observe is not None:
            for call in self.calls:
                run_call(call, slots, sizes, run)
                _compare(call, slots, declared or {}, run)
                if observe is not None:
                    observe(call, slots)
        else:
            run_calls(self.calls, slots, sizes, run)
        run.budget.live_bytes -= sum(sizes)
        return tuple([slots[slot] for slot in self._results])


def _compare(
    call: BoundCall, slots: SlotValues, declared: dict[int, tuple[str, Declaration]], run: Run
) -> None:
    for slot in call.outputs:
        if slot in declared and slot not in call.dead:
            where, declaration = declared[slot]
            problem = declaration.conflict(slots[slot], where, run.dims, strict=run.strict)
            if problem:
                run.mismatch(where, problem)
