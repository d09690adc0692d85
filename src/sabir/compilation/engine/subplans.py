"""The plans of a part of a program, compiled in a run for the types and shapes of its operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from sabir.base import ACCIDENTS, CancelledError, LimitError, SabirError, budget, check_time
from sabir.compilation.engine.kept import KeptPlans
from sabir.compilation.engine.quick import QuickRuns
from sabir.compilation.engine.worth import NotYet, PlanCost
from sabir.compilation.faults import report_fault
from sabir.compilation.frontend.patterns import judge_of, pattern_of
from sabir.compilation.locks import ProcessLock
from sabir.compilation.plan.entries import Mismatch, PartMissing
from sabir.elements import element
from sabir.ir import TensorType, above_one, judging

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.cache.stored import PlanPlace
    from sabir.compilation.engine.quick import QuickRun
    from sabir.compilation.engine.worth import Reserve
    from sabir.compilation.frontend.patterns import Guard, ShapePattern
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Control
    from sabir.compilation.protocol import Runnable
    from sabir.evaluation import Run
    from sabir.ir import Array, Type
    from sabir.scheduling import Plan, Program

    Restore = Callable[[PlanPlace], Runnable | None]


class Compile(Protocol):
    """What returns the plan of prepared calls, whose stages are stored at a place."""

    def __call__(
        self, prepared: Prepared, sizes: Mapping[str, int], cost: PlanCost, /, *,
        place: PlanPlace | None = None,
    ) -> Runnable:  # fmt: skip
        """Return the plan; raises as `Backend.compile`."""
        ...


class PartSource(NamedTuple):
    """A part of a program, its constants by slot, and what compiles it."""

    program: Program
    plan: Plan
    fixed: Mapping[int, Array]
    compiler: Compile


class SubPlans:
    """The plans of some calls of a program by pattern; several threads may run them.

    `source` returns the part of the program; it raises `Mismatch` where a plan from the disk has none.
    `slots` are those of the operands, in the order in which runs take them. All plans together may cost what
    the `reserve` has. `loops` is as for `QuickRuns`. `sized` numbers the operands of few integers whose
    contents are sizes. The plans are stored at a `place`, and `restore` reads them there.
    """

    def __init__(
        self, source: Callable[[], PartSource], slots: Sequence[int], reserve: Reserve, *, loops: bool,
        sized: Collection[int] = (), place: PlanPlace | None = None, restore: Restore | None = None,
    ) -> None:  # fmt: skip
        self._source, self._slots = source, tuple(slots)
        self._reserve, self._place, self._restore = reserve, place, restore
        self._kept = KeptPlans()
        self._lock = ProcessLock()
        self._quick = QuickRuns(len(self._slots), loops=loops, sized=sized)
        self._sized = sized
        self.needed = 0.0  # seconds that the reserve must have before a plan is compiled

    def __iter__(self) -> Iterator[Runnable]:
        """Yield the plans that are in memory."""
        return iter(self._kept)

    def attempt(self, arrays: Sequence[Any], run: Run, control: Control | None = None) -> list[Any] | None:
        """Return the results of a quick run; None if no run for such operands has ended before."""
        return self._quick.attempt(arrays, run, control)

    def find(self, arrays: Sequence[Any], allowed: Budget, control: Control | None) -> QuickRun | None:
        """Return the quick run for operands, as `QuickRuns.find`."""
        return self._quick.find(arrays, allowed, control)

    def run(self, arrays: Sequence[Any], run: Run, control: Control | None = None) -> list[Any] | None:
        """Return the results for operands; None if they have no plan. Raises as `Runnable.run`.

        Later runs with operands of these shapes are quick.
        """
        pattern, sizes = self._pattern_of(arrays)
        program = self._compiled(pattern, sizes)
        if program is None:
            return None
        results = program.run(arrays, sizes, run, control)
        self._quick.keep(program, pattern.inputs, arrays, sizes, run, control)
        return results

    def plan_for(self, arrays: Sequence[Any]) -> tuple[Runnable, dict[str, int]] | None:
        """Return the plan for operands, and their sizes by symbol; None without one."""
        pattern, sizes = self._pattern_of(arrays)
        program = self._compiled(pattern, sizes)
        return None if program is None else (program, sizes)

    def _pattern_of(self, arrays: Sequence[Any]) -> tuple[ShapePattern, dict[str, int]]:
        return pattern_of([kind_of(x) for x in arrays], arrays, self._sized)

    def release(self) -> None:
        """Free the memory that runs have kept for later runs."""
        self._quick.clear()
        for program in self._kept:
            program.release()

    def _compiled(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable | None:
        """Return the program for a pattern whose guards the sizes satisfy; None for the interpreter."""
        with self._lock:
            found = self._kept.find(pattern, sizes)
            if found is not None or self._reserve.left < self.needed or not self._kept.admits(pattern):
                return found
            before = budget().mark()
            try:
                program = self._stored(pattern, sizes) or self._planned(pattern, sizes)
            except PartMissing:
                raise
            except (CancelledError, LimitError):
                raise
            except NotYet as error:
                self.needed = error.seconds
                return None
            except (SabirError, AssertionError, Mismatch, *ACCIDENTS) as error:
                self._kept.refuse(pattern, f"{type(error).__name__}: {error}")
                report_fault(error, "planning a part of a model", result="the interpreter runs it")
                return None
            finally:
                budget().return_to(before)
            self._kept.add(pattern, program)
            return program

    def _stored(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable | None:
        """Return the plan for a pattern from the disk; None if there is none for the sizes."""
        if self._place is None or self._restore is None:
            return None
        found = self._restore(self._place.part("", pattern))
        return found if found is not None and found.fits(sizes) else None

    def _planned(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable:
        # ruff: ignore[import-outside-top-level]  plans from the disk need no planning
        from sabir.compilation.frontend.body_types import prepare_body
        from sabir.compilation.frontend.chosen import written_out  # ruff: ignore[import-outside-top-level]  as above

        kinds = dict(zip(self._slots, pattern.inputs, strict=True))
        guards: dict[Guard, None] = {}
        source = self._source()
        with above_one(sizes), judging(judge_of(sizes, guards)):
            prepared = prepare_body(source.program, source.plan, kinds, source.fixed)
            while (found := written_out(prepared)) is not None:
                prepared = prepare_body(found.program, found.plan, kinds, source.fixed)
        cost = PlanCost(self._reserve.left)
        cost.add_calls(len(prepared.plan.steps))
        place = None if self._place is None else self._place.part("", pattern)
        program = source.compiler(prepared._replace(guards=tuple(guards)), sizes, cost, place=place)
        if place is not None:
            place.write(program, prepared.program.constants)
        self._reserve.left -= cost.seconds
        self.needed = 0.0
        return program


def kind_of(value: Any) -> Type | None:
    """Return the type of an operand without its shape; None for one that is no tensor."""
    return TensorType(element(cast("Array", value).dtype)) if isinstance(value, np.ndarray) else None


def timed(_done: int, _all: int) -> None:
    """Check the deadline between kernels that are compiled."""
    check_time()


__all__ = ["Compile", "PartSource", "SubPlans", "kind_of", "timed"]
