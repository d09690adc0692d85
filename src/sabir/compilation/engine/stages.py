"""Staged plans: a plan, calls that decide ranks or sizes, and plans of what follows, for what came.

A stage is compiled when a run reaches it, once for each pattern of shapes. So what follows a data-dependent
size or rank runs in native code as what precedes it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sabir.compilation.engine.bodies import bodies_on
from sabir.compilation.engine.cuts import cut_of, is_computed, is_look
from sabir.compilation.engine.expressions import lower, rewritten
from sabir.compilation.engine.quick import QuickRuns
from sabir.compilation.engine.subplans import SubPlans, timed
from sabir.compilation.engine.worth import PlanCost, Reserve
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.protocol import Request
from sabir.evaluation import CallBinder, run_call
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.engine.cuts import Cut
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Control
    from sabir.compilation.protocol import Backend, Bodies, Runnable
    from sabir.compilation.settings import Settings
    from sabir.evaluation import BoundCall, Run
    from sabir.ir import Array


class Compiler:
    """The compilation of prepared calls on a backend: to one plan, or to stages."""

    def __init__(self, backend: Backend, settings: Settings) -> None:
        self._backend, self._settings = backend, settings
        self._reserve = Reserve()  # of the subgraphs that are evaluated

    def bodies(self, constants: Mapping[int, Array]) -> Bodies:
        """Return what runs the subgraphs of evaluated calls of a program with these constants by slot."""
        return bodies_on(self.compiled, self._reserve, constants)

    def compiled(
        self, prepared: Prepared, sizes: Mapping[str, int], cost: PlanCost,
        progress: Callable[[int, int], None] = timed,
    ) -> Runnable:  # fmt: skip
        """Return the plan of prepared calls; raises as `Backend.compile`."""
        found = lower(prepared, sizes)
        cut = cut_of(found)
        if cut is not None:
            return StagedProgram(self, prepared, sizes, cut, cost)
        return self._planned(found, sizes, cost, progress, {}, {})

    def whole(
        self, prepared: Prepared, sizes: Mapping[str, int], cost: PlanCost,
        progress: Callable[[int, int], None] = timed, updates: Mapping[int, int] | None = None,
        caches: Mapping[int, int] | None = None,
    ) -> Runnable:  # fmt: skip
        """Return one plan, whose results of open sizes are computed by the interpreter where it must."""
        return self._planned(lower(prepared, sizes), sizes, cost, progress, updates or {}, caches or {})

    def _planned(
        self, found: Lowered, sizes: Mapping[str, int], cost: PlanCost, progress: Callable[[int, int], None],
        updates: Mapping[int, int], caches: Mapping[int, int],
    ) -> Runnable:  # fmt: skip
        found = rewritten(found, self._backend.passes, self._settings)
        return self._backend.compile(
            Request(found, sizes, self._settings, cost, progress, self.bodies, updates, caches)
        )


class StagedProgram:
    """A plan in stages; several threads may run it at once. See `sabir.compilation.protocol.Runnable`."""

    is_native = False

    def __init__(
        self, compiler: Compiler, prepared: Prepared, sizes: Mapping[str, int], cut: Cut, cost: PlanCost
    ) -> None:
        """Compile the first stage, within a `cost`; raises as `Backend.compile`."""
        self.prepared: Prepared | None = prepared
        self._prepared, self._compiler, self._sizes, self.cut = prepared, compiler, sizes, cut
        self._constants = prepared.constants
        first = prepared._replace(plan=cut.first)
        self.first = compiler.whole(first, sizes, cost) if cut.first.results else None
        binder = CallBinder(strict=False, bodies=compiler.bodies(prepared.constants))
        self._calls: list[BoundCall] = [binder.bind(prepared.program.calls[place]) for place in cut.deciding]
        self.rest = SubPlans(
            prepared.program._replace(constants={}), cut.rest, cut.live, self._constants, compiler.compiled,
            Reserve(math.inf), loops=True, sized=[n for n, slot in enumerate(cut.live) if slot in cut.sized],
        )  # fmt: skip
        kinds = [prepared.types[slot] for slot in prepared.inputs]
        sized = [n for n, k in enumerate(kinds) if isinstance(k, TensorType) and k.known is not None]
        self._quick = QuickRuns(len(kinds), loops=True, sized=sized)
        self._whole: Runnable | None = None
        self._slots = self._with_constants()
        self._inputs = prepared.inputs
        self._looks = frozenset(call.outputs[0] for call in self._calls)  # views of what kernels compute
        self._is_native = self._has_native_runs()
        self._is_last = cut.rest.results == prepared.plan.results  # the second stage has all results

    def _with_constants(self) -> list[Any]:
        """Return the values in all slots before a run."""
        slots: list[Any] = [None] * self._prepared.program.size
        for slot, array in self._constants.items():
            if slot < len(slots):
                slots[slot] = array
        return slots

    def _has_native_runs(self) -> bool:
        """Return whether kernels compute all results; calls between stages only look at what they compute."""
        calls, cut = self._prepared.program.calls, self.cut
        made = {*cut.first.results, *cut.rest.results, *self._looks}
        results = self._prepared.plan.results
        return (
            made.issuperset(results)
            and len({*results}) == len(results)
            and all(is_look(calls[place]) for place in cut.deciding)
        )

    @property
    def inputs(self) -> tuple[int, ...]:
        """The slots of the arrays that a run takes."""
        return self._prepared.inputs

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the guards of the plan hold for the sizes of some feeds."""
        if self.first is not None and not self.first.fits(sizes):
            return False
        return all(guard.holds(sizes) for guard in self._prepared.guards)

    def run(
        self,
        inputs: Sequence[Array | None],
        symbols: Mapping[str, int],
        run: Run,
        control: Control | None = None,
    ) -> list[Any]:
        """Return the outputs; raises as `Runnable.run`."""
        slots: list[Any] = [*self._slots]
        for slot, value in zip(self.inputs, inputs, strict=True):
            slots[slot] = value
        if self.first is not None:
            found = self._quick.attempt(inputs, run, control)
            if found is None:
                found = self.first.run(inputs, symbols, run, control)
                self._quick.keep(self.first, inputs, symbols, run, control)
            for slot, value in zip(self.cut.first.results, found, strict=True):
                slots[slot] = value
        sizes = [0] * len(slots)
        for call in self._calls:
            run_call(call, slots, sizes, run)
        if self.cut.rest.results:
            self._run_rest(slots, run, control)
        run.budget.live_bytes -= sum(sizes)
        return [slots[slot] for slot in self._prepared.plan.results]

    def native(self, inputs: Sequence[Array], allowed: Budget, control: Control) -> list[Any] | None:
        """Return the outputs of a run of quick runs alone, as new arrays.

        None if one of its plans has no quick run for the shapes that came, if the interpreter evaluates a
        call, or if a run needs more than is allowed.
        """
        if not self._is_native or allowed.deadline is not None:
            return None
        slots: list[Any] = [*self._slots]
        for slot, value in zip(self._inputs, inputs, strict=True):
            slots[slot] = value
        charge = 0
        if self.first is not None:
            quick = self._quick.find(inputs, allowed, control)
            found = None if quick is None else quick.run(inputs)
            if quick is None or found is None:
                return None
            charge = quick.charge
            for slot, value in zip(self.cut.first.results, found, strict=True):
                slots[slot] = value
        for call in self._calls:
            slots[call.outputs[0]] = call.function(*[slots[slot] for slot in call.inputs])
        if self.cut.rest.results:
            operands = [slots[slot] for slot in self.cut.live]
            quick = self.rest.find(operands, allowed, control)
            if quick is None or quick.charge + charge > allowed.work:
                return None
            found = quick.run(operands)
            if found is None or self._is_last:
                return found
            for slot, value in zip(self.cut.rest.results, found, strict=True):
                slots[slot] = value
        looks = self._looks
        return [slots[s].copy() if s in looks else slots[s] for s in self._prepared.plan.results]

    def _run_rest(self, slots: list[Any], run: Run, control: Control | None) -> None:
        operands = [slots[slot] for slot in self.cut.live]
        found = self.rest.attempt(operands, run, control)
        if found is None:
            found = self.rest.run(operands, run, control)
        if found is None:
            raise Mismatch("there is no plan for what follows in these shapes")
        for slot, value in zip(self.cut.rest.results, found, strict=True):
            slots[slot] = value

    def repeat(self, *_: Any, **__: Any) -> None:
        """Return None: no loop of native code runs it."""

    def portable(self) -> None:
        """Return None: later stages are compiled for what runs decide."""

    def stages(self) -> Iterator[Runnable]:
        """Yield the plans of all stages that are compiled."""
        for program in (self.first, *self.rest):
            if program is not None:
                yield from program.stages()

    def release(self) -> None:
        """Free the memory that runs have left for the next ones."""
        self._quick.clear()
        self.rest.release()
        if self.first is not None:
            self.first.release()

    @property
    def later(self) -> frozenset[str]:
        """The labels of the nodes that are compiled in a run."""
        calls = self._prepared.program.calls
        return frozenset(calls[place].label for place, _ in self.cut.rest.steps if is_computed(calls[place]))

    def whole(self) -> Runnable:
        """Return the plan without stages, which shows all nodes."""
        if self._whole is None:
            self._whole = self._compiler.whole(self._prepared, self._sizes, PlanCost())
        return self._whole


__all__ = ["Compiler", "StagedProgram"]
