"""Subgraphs as compiled plans: the branches of If, the bodies of loops.

A body is compiled for the shapes of its inputs and captures, if these have enough elements that native code
pays: for a small body the interpreter is faster than a native run.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from sabir.base import ACCIDENTS, CancelledError, LimitError, SabirError, budget, check_time
from sabir.compilation.engine.expressions import lowered
from sabir.compilation.engine.kept import KeptPlans
from sabir.compilation.engine.worth import NotYet, PlanCost
from sabir.compilation.faults import report_fault
from sabir.compilation.frontend.body_types import prepare_body
from sabir.compilation.frontend.patterns import pattern_of
from sabir.compilation.locks import ProcessLock
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.protocol import Request
from sabir.elements import element
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.compilation.engine.worth import Reserve
    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.compilation.protocol import Backend, Bodies, Runnable
    from sabir.compilation.runtime.repeating import Repeated
    from sabir.compilation.settings import Settings
    from sabir.evaluation import BoundPlan, Run
    from sabir.ir import Array, Type
    from sabir.scheduling import ScheduledSubgraph

_T = TypeVar("_T")
_ENOUGH = 1 << 14  # elements of the operands from which on native code pays


class CompiledBody:
    """A subgraph that runs as a compiled plan if that pays, else in the interpreter.

    It replaces the interpreter's plan of the subgraph.
    """

    __slots__ = (
        "_backend",
        "_fixed",
        "_interpreted",
        "_kept",
        "_lock",
        "_needed",
        "_plan",
        "_program",
        "_reserve",
        "_settings",
        "_slots",
        "calls",
        "cost",
    )

    def __init__(
        self, subgraph: ScheduledSubgraph, interpreted: BoundPlan, backend: Backend, settings: Settings,
        constants: Mapping[int, Array], reserve: Reserve,
    ) -> None:  # fmt: skip
        """Create a body from a subgraph; `constants` are those of the enclosing program, by slot."""
        self._program, self._plan = subgraph.program, subgraph.plan
        self._interpreted, self._backend, self._settings = interpreted, backend, settings
        self.cost, self.calls = interpreted.cost, interpreted.calls
        captures = zip(self._plan.captures, subgraph.captured, strict=True)
        self._fixed = {slot: constants[outer] for slot, outer in captures if outer in constants}
        self._slots = (*(v.slot for v in self._program.inputs), *self._varying(self._plan.captures))
        self._kept = KeptPlans()
        self._lock = ProcessLock()
        self._reserve = reserve
        self._needed = 0.0  # seconds that the reserve must have before a plan is compiled

    def _varying(self, captured: Iterable[_T]) -> list[_T]:
        """Return the items of the captures that are not constants."""
        found = zip(self._plan.captures, captured, strict=True)
        return [x for slot, x in found if slot not in self._fixed]

    def run(
        self, inputs: Sequence[Any], captured: Iterable[Any], run: Run, declared: None = None
    ) -> tuple[Any, ...]:
        """Return the outputs of the subgraph."""
        outside = list(captured)
        arrays = [*inputs, *[None] * (len(self._program.inputs) - len(inputs)), *self._varying(outside)]
        if sum(x.size for x in (*inputs, *outside) if isinstance(x, np.ndarray)) < _ENOUGH:
            return self._interpret(inputs, outside, run, declared)
        kinds = [_kind(x) for x in arrays]
        pattern, sizes = pattern_of(kinds, arrays)
        program = self._compiled(pattern, sizes)
        if program is None:
            return self._interpret(inputs, outside, run, declared)
        before = run.budget.mark()
        try:
            return tuple(program.run(arrays, sizes, run))
        except Mismatch:
            run.budget.return_to(before)
            return self._interpret(inputs, outside, run, declared)

    def _interpret(
        self, inputs: Sequence[Any], outside: Sequence[Any], run: Run, declared: None
    ) -> tuple[Any, ...]:
        if not self._needed:
            return self._interpreted.run(inputs, outside, run, declared)
        started = time.perf_counter()
        found = self._interpreted.run(inputs, outside, run, declared)
        self._reserve.left += time.perf_counter() - started
        return found

    def repeat(
        self, inputs: Sequence[Any], captured: Iterable[Any], run: Run, *, limit: int | None,
        conditional: bool,
    ) -> Repeated | None:  # fmt: skip
        """Run the subgraph as the body of a loop, up to `limit` times; return the results of the loop.

        The inputs are the iteration, the condition, and the states. The result is None if no native code can
        repeat the subgraph.
        """
        arrays = [*inputs, *self._varying(captured)]
        kinds = [_kind(x) for x in arrays]
        if len(arrays) != len(self._slots) or None in kinds:
            return None
        pattern, sizes = pattern_of(kinds, arrays)
        program = self._compiled(pattern, sizes)
        if program is None:
            return None
        before = run.budget.mark()
        try:
            return program.repeat(
                arrays, sizes, run, carried=len(inputs) - 1, limit=limit, conditional=conditional,
                cost=self.cost,
            )  # fmt: skip
        except Mismatch:
            run.budget.return_to(before)
            return None

    def _compiled(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable | None:
        """Return the program for a pattern whose guards the sizes satisfy; None for the interpreter."""
        with self._lock:
            found = self._kept.find(pattern, sizes)
            if found is not None or self._reserve.left < self._needed or not self._kept.admits(pattern):
                return found
            before = budget().mark()
            try:
                program = self._planned(pattern, sizes)
            except (CancelledError, LimitError):
                raise
            except NotYet as error:
                self._needed = error.seconds
                return None
            except (SabirError, AssertionError, Mismatch, *ACCIDENTS) as error:
                self._kept.refuse(pattern, f"{type(error).__name__}: {error}")
                report_fault(error, "planning a subgraph", result="the interpreter runs the subgraph")
                return None
            finally:
                budget().return_to(before)
            if program is None:
                self._kept.refuse(pattern, "the subgraph is not compiled")
            else:
                self._kept.add(pattern, program)
            return program

    def _planned(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable | None:
        kinds = dict(zip(self._slots, pattern.inputs, strict=True))
        if any(kind is None for kind in kinds.values()):
            return None  # a sequence, or a default
        prepared = prepare_body(self._program, self._plan, kinds, self._fixed)
        if prepared is None:
            return None
        cost = PlanCost(self._reserve.left)
        cost.add_calls(len(prepared.plan.steps))
        found = lowered(prepared, sizes, self._backend.passes, self._settings)
        bodies = partial(bodies_on, self._backend, self._settings, self._reserve)
        program = self._backend.compile(Request(found, sizes, self._settings, cost, _timed, bodies))
        self._reserve.left -= cost.seconds
        self._needed = 0.0
        return program


def _timed(_done: int, _all: int) -> None:
    """Check the deadline between kernels that are compiled."""
    check_time()


def bodies_on(
    backend: Backend, settings: Settings, reserve: Reserve, constants: Mapping[int, Array]
) -> Bodies:
    """Return a function that compiles the subgraphs of a program on a backend, within a reserve.

    `constants` are those of the program by slot. A nested subgraph captures slots of the enclosing one.
    """

    def body(subgraph: ScheduledSubgraph, interpreted: BoundPlan, is_direct: bool) -> CompiledBody:  # ruff: ignore[boolean-type-hint-positional-argument]  the binder passes it
        return CompiledBody(subgraph, interpreted, backend, settings, constants if is_direct else {}, reserve)

    return body


def _kind(value: Any) -> Type | None:
    return TensorType(element(cast("Array", value).dtype)) if isinstance(value, np.ndarray) else None


__all__ = ["CompiledBody", "bodies_on"]
