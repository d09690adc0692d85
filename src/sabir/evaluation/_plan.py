"""Plans: the steps of a program that some wanted values need, and where each value is last read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import SchemaError
from sabir.evaluation._steps import Frame, Later, Step, Unbound, run_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.evaluation._declared import Declaration
    from sabir.evaluation._program import Program
    from sabir.evaluation._steps import Run


class Plan:
    """A program ready to give some of its values; `run` may be called from several threads at once.

    `cost` is how many nodes one run goes through, those of functions and subgraphs included, each call of a
    subgraph once. `captured` are the places, among the program's captures, of what the steps read.
    """

    __slots__ = ("_captures", "_constants", "_inputs", "_results", "captured", "cost", "steps")

    def __init__(self, program: Program, wanted: Sequence[int]) -> None:
        """Plan for the values in the slots `wanted`; raises the error of a needed node that is unbound."""
        steps = _needed(program, wanted)
        self.cost = sum(step.cost for step in steps)
        read = {*wanted, *(slot for step in steps for slot in (*step.inputs, *step.captured))}
        self.captured = tuple(i for i, slot in enumerate(program.captures) if slot in read)
        self._captures = tuple(program.captures[i] for i in self.captured)
        self._results, self._inputs, self._constants = tuple(wanted), program.inputs, program.constants
        kept = {*wanted, *program.kept}
        self.steps = _with_last_reads(steps, kept)

    def run(
        self,
        inputs: Iterable[Any],
        captured: Iterable[Any],
        run: Run,
        declared: dict[int, tuple[str, Declaration]] | None = None,
    ) -> tuple[Any, ...]:
        """Return the wanted values; an input given as None keeps its default.

        `declared` has the declarations to compare computed values with, by slot.
        """
        frame: Frame = self._constants.copy()
        for slot, value in zip(self._inputs, inputs, strict=False):
            if value is not None:
                frame[slot] = value
        for slot, value in zip(self._captures, captured, strict=True):
            frame[slot] = value
        sizes = [0] * len(frame)
        for step in self.steps:
            run_step(step, frame, sizes, run)
            if declared:
                _compare(step, frame, declared, run)
        run.budget.live_bytes -= sum(sizes)
        return tuple([frame[slot] for slot in self._results])


def _compare(step: Step, frame: Frame, declared: dict[int, tuple[str, Declaration]], run: Run) -> None:
    for slot in step.outputs:
        if slot in declared and slot not in step.dead:
            where, declaration = declared[slot]
            problem = declaration.conflict(frame[slot], where, run.dims, strict=run.strict)
            if problem:
                run.mismatch(where, problem)


def _needed(program: Program, wanted: Iterable[int]) -> list[Step]:
    """Return the steps that the wanted slots depend on, in order."""
    needed: dict[int, Step] = {}
    pending = [program.producers[slot] for slot in wanted if slot in program.producers]
    while pending:
        place = pending.pop()
        if place in needed:
            continue
        step = needed[place] = _bound(program.steps[place])
        pending += [program.producers[s] for s in (*step.inputs, *step.captured) if s in program.producers]
    return [needed[place] for place in sorted(needed)]


def _bound(step: Step | Unbound | Later) -> Step:
    """Return a step that can be called; raises what is wrong with a node that cannot."""
    if isinstance(step, Step):
        return step
    if isinstance(step, Unbound):
        raise step.error.within(step.label) from step.error
    try:
        return step.bind()
    except SchemaError as error:
        raise error.within(step.label) from error


def _with_last_reads(calls: Sequence[Step], kept: set[int]) -> list[Step]:
    """Add to each step the slots that no later step reads."""
    seen, steps = set(kept), list[Step]()
    for step in reversed(calls):
        touched = {*step.inputs, *step.outputs, *step.captured}
        dead = tuple(touched - seen)
        seen |= touched
        steps.append(step._replace(dead=dead))
    return steps[::-1]
