"""Subgraphs of evaluated calls as compiled plans: the branches of If, the bodies of loops.

A body is compiled for the shapes of its inputs and captures, if these have so many elements that native code
pays at once, or if it runs often for the same shapes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sabir.compilation.engine.subplans import PartSource, SubPlans, kind_of
from sabir.compilation.plan.entries import Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.compilation.engine.subplans import Compile
    from sabir.compilation.engine.worth import Reserve
    from sabir.compilation.protocol import Bodies
    from sabir.compilation.runtime.repeating import Repeated
    from sabir.evaluation import BoundPlan, Run
    from sabir.ir import Array
    from sabir.scheduling import ScheduledSubgraph

_T = TypeVar("_T")
_ENOUGH = 1 << 14  # elements of the operands from which on native code pays at once
_OFTEN = 16  # runs with operands of the same shapes after which native code pays
_MOST_COUNTED = 64  # shapes whose runs are counted


class CompiledBody:
    """A subgraph that runs as a compiled plan if that pays, else in the interpreter.

    It replaces the interpreter's plan of the subgraph.
    """

    __slots__ = (
        "_fixed",
        "_interpreted",
        "_plan",
        "_plans",
        "_program",
        "_reserve",
        "_runs",
        "calls",
        "cost",
    )

    def __init__(
        self, subgraph: ScheduledSubgraph, interpreted: BoundPlan, compiler: Compile, reserve: Reserve,
        constants: Mapping[int, Array],
    ) -> None:  # fmt: skip
        """Create a body from a subgraph; `constants` are those of the enclosing program, by slot."""
        self._program, self._plan = subgraph.program, subgraph.plan
        self._interpreted = interpreted
        self.cost, self.calls = interpreted.cost, interpreted.calls
        captures = zip(self._plan.captures, subgraph.captured, strict=True)
        self._fixed = {slot: constants[outer] for slot, outer in captures if outer in constants}
        slots = (*(v.slot for v in self._program.inputs), *self._varying(self._plan.captures))
        self._reserve = reserve
        source = PartSource(self._program, self._plan, self._fixed, compiler)
        self._plans = SubPlans(lambda: source, slots, reserve, loops=False)
        self._runs: dict[tuple[tuple[int, ...], ...], int] = {}

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
        found = self._plans.attempt(arrays, run)
        if found is not None:
            return tuple(found)
        if not self._pays(arrays, outside):
            return self._interpret(inputs, outside, run, declared)
        before = run.budget.mark()
        try:
            found = self._plans.run(arrays, run)
        except Mismatch:
            run.budget.return_to(before)
            found = None
        return self._interpret(inputs, outside, run, declared) if found is None else tuple(found)

    def _pays(self, arrays: Sequence[Any], outside: Sequence[Any]) -> bool:
        """Return whether operands have enough elements for a plan, or their shapes have come often enough."""
        if not all(isinstance(x, np.ndarray) for x in arrays):
            return False  # a sequence, or a default
        inputs = arrays[: len(self._program.inputs)]
        if sum(x.size for x in (*inputs, *outside) if isinstance(x, np.ndarray)) >= _ENOUGH:
            return True
        shapes = tuple([x.shape for x in arrays])
        count = self._runs[shapes] = self._runs.get(shapes, 0) + 1
        if len(self._runs) > _MOST_COUNTED:
            self._runs.clear()
        return count >= _OFTEN

    def _interpret(
        self, inputs: Sequence[Any], outside: Sequence[Any], run: Run, declared: None
    ) -> tuple[Any, ...]:
        if not self._plans.needed:
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
        if len(inputs) < len(self._program.inputs) or any(kind_of(x) is None for x in arrays):
            return None
        found = self._plans.plan_for(arrays)
        if found is None:
            return None
        program, sizes = found
        before = run.budget.mark()
        try:
            return program.repeat(
                arrays, sizes, run, carried=len(inputs) - 1, limit=limit, conditional=conditional,
                cost=self.cost,
            )  # fmt: skip
        except Mismatch:
            run.budget.return_to(before)
            return None


def bodies_on(compiler: Compile, reserve: Reserve, constants: Mapping[int, Array]) -> Bodies:
    """Return a function that compiles the subgraphs of a program, within a reserve.

    `constants` are those of the program by slot. A nested subgraph captures slots of the enclosing one.
    """

    def body(subgraph: ScheduledSubgraph, interpreted: BoundPlan, is_direct: bool) -> CompiledBody:  # ruff: ignore[boolean-type-hint-positional-argument]  the binder passes it
        return CompiledBody(subgraph, interpreted, compiler, reserve, constants if is_direct else {})

    return body


__all__ = ["CompiledBody", "bodies_on"]
