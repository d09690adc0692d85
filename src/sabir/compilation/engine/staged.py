"""Staged plans: a plan, calls that decide ranks or sizes, and plans of what follows, for what came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sabir.base import ACCIDENTS, CancelledError, SabirError
from sabir.compilation.engine.quick import QuickRuns
from sabir.compilation.plan.entries import Mismatch, PartMissing
from sabir.compilation.runtime.values import copies_of, keep_results, with_copies
from sabir.evaluation import run_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.engine.subplans import SubPlans
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Control
    from sabir.compilation.plan.stage_facts import StageFacts
    from sabir.compilation.protocol import PortableStages, Runnable
    from sabir.evaluation import BoundCall, Run
    from sabir.ir import Array


_FEW_MISSES = 3  # direct runs in turn that fail before most others are left out
_RETRIED = 64  # of so many, one is attempted


class StageSource(Protocol):
    """The program of a staged plan: what tools show, and what is stored."""

    prepared: Prepared

    def later(self) -> frozenset[str]:
        """Return the labels of the nodes that are compiled in a run."""
        ...

    def whole(self) -> Runnable:
        """Return the plan without stages, which shows all nodes."""
        ...

    def portable(self, facts: StageFacts, /) -> PortableStages | None:
        """Return what another process needs to run the plan; None if it cannot be stored."""
        ...


class StagedProgram:
    """A plan in stages; several threads may run it at once. See `sabir.compilation.protocol.Runnable`.

    A plan from the disk has no `source`. Where it lacks a stage, `again` returns the plan with its program;
    it is None if this plan is a stage itself.
    """

    is_native = False

    def __init__(
        self, facts: StageFacts, first: Runnable | None, calls: Sequence[BoundCall],
        constants: Mapping[int, Array], rest: SubPlans, source: StageSource | None = None,
        again: Callable[[], Runnable] | None = None,
    ) -> None:  # fmt: skip
        """Take the first stage, the calls between the stages, and the plans of what follows."""
        self.facts, self.first, self.rest = facts, first, rest
        self.prepared: Prepared | None = None if source is None else source.prepared
        self._calls, self._source, self._again = calls, source, again
        kinds = facts.types()
        sized = [n for n, k in enumerate(kinds) if k is not None and k.known is not None]
        self._quick = QuickRuns(len(kinds), loops=True, sized=sized)
        self._kinds = kinds
        self._whole: Runnable | None = None
        self._instead: Runnable | None = None  # the plan with its program
        self._slots: list[Any] = [constants.get(slot) for slot in range(facts.slots)]
        self._called = frozenset(slot for call in calls for slot in call.outputs)
        self._is_direct = self._has_direct_runs()
        self._misses = 0  # direct runs that failed, one after another
        self._is_last = facts.rest == facts.results  # the second stage has all results

    def _has_direct_runs(self) -> bool:
        """Return whether stages and calls compute all results, and no call has a subgraph."""
        results, made = self.facts.results, {*self.facts.first, *self.facts.rest, *self._called}
        plain = all(not call.nested and call.cost == 1 for call in self._calls)
        return plain and made.issuperset(results) and len({*results}) == len(results)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The slots of the arrays that a run takes."""
        return self.facts.inputs

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the guards of the plan hold for the sizes of some feeds."""
        if self.first is not None and not self.first.fits(sizes):
            return False
        return all(guard.holds(sizes) for guard in self.facts.guards)

    def run(
        self,
        inputs: Sequence[Array | None],
        symbols: Mapping[str, int],
        run: Run,
        control: Control | None = None,
    ) -> list[Any]:
        """Return the outputs; raises as `Runnable.run`."""
        if self._instead is not None:
            return self._instead.run(inputs, symbols, run, control)
        before = run.budget.mark()
        try:
            return self._run(inputs, symbols, run, control)
        except PartMissing:
            if self._again is None:
                raise
            run.budget.return_to(before)
            self._instead = self._again()
            return self._instead.run(inputs, symbols, run, control)

    def _run(
        self,
        inputs: Sequence[Array | None],
        symbols: Mapping[str, int],
        run: Run,
        control: Control | None,
    ) -> list[Any]:
        slots: list[Any] = [*self._slots]
        for slot, value in zip(self.inputs, inputs, strict=True):
            slots[slot] = value
        if self.first is not None:
            found = self._quick.attempt(inputs, run, control)
            if found is None:
                found = self.first.run(inputs, symbols, run, control)
                self._quick.keep(self.first, self._kinds, inputs, symbols, run, control)
            for slot, value in zip(self.facts.first, found, strict=True):
                slots[slot] = value
        sizes = [0] * len(slots)
        for call in self._calls:
            run_call(call, slots, sizes, run)
        if self.facts.rest:
            self._run_rest(slots, run, control)
        run.budget.live_bytes -= sum(sizes)
        return [slots[slot] for slot in self.facts.results]

    def direct(self, inputs: Sequence[Array], allowed: Budget, control: Control | None) -> list[Any] | None:
        """Return the outputs of quick runs and of the calls between them, as new arrays.

        None if one of its plans has no quick run for the shapes that came, if a call fails or has subgraphs,
        or if a run needs more than is allowed. What was computed until then is computed again, so after a few
        such runs most others return None at once. The calls are made without checks: an earlier run has
        compared the types, and counted the needs of these shapes.
        """
        if not self._is_direct or self._instead is not None or allowed.deadline is not None:
            return None
        if self._misses >= _FEW_MISSES and self._misses % _RETRIED:
            self._misses += 1
            return None
        found = self._attempted(inputs, allowed, control)
        self._misses = self._misses + 1 if found is None else 0
        return found

    def _attempted(
        self, inputs: Sequence[Array], allowed: Budget, control: Control | None
    ) -> list[Any] | None:
        if self.facts.looks:
            return self._directly(inputs, allowed, control)
        try:
            with np.errstate(all="ignore"):
                return self._directly(inputs, allowed, control)
        except CancelledError:
            raise
        except (SabirError, *ACCIDENTS):
            return None

    def _directly(
        self, inputs: Sequence[Array], allowed: Budget, control: Control | None
    ) -> list[Any] | None:
        slots: list[Any] = [*self._slots]
        for slot, value in zip(self.facts.inputs, inputs, strict=True):
            slots[slot] = value
        charge = 0
        if self.first is not None:
            quick = self._quick.find(inputs, allowed, control)
            found = None if quick is None else quick.run(inputs)
            if quick is None or found is None:
                return None
            charge = quick.charge
            for slot, value in zip(self.facts.first, found, strict=True):
                slots[slot] = value
        for call in self._calls:
            found = call.function(*[slots[slot] for slot in call.inputs])
            if type(found) is np.ndarray:
                slots[call.outputs[0]] = found
            else:
                keep_results(slots, call.outputs, found)
        if self.facts.rest:
            operands = [slots[slot] for slot in self.facts.live]
            quick = self.rest.find(operands, allowed, control)
            if quick is None or quick.charge + charge > allowed.work:
                return None
            found = quick.run(operands)
            if found is None or self._is_last:
                return found
            for slot, value in zip(self.facts.rest, found, strict=True):
                slots[slot] = value
        called, copied = self._called, copies_of(inputs)
        return [with_copies(slots[s], copied) if s in called else slots[s] for s in self.facts.results]

    def _run_rest(self, slots: list[Any], run: Run, control: Control | None) -> None:
        operands = [slots[slot] for slot in self.facts.live]
        found = self.rest.attempt(operands, run, control)
        if found is None:
            found = self.rest.run(operands, run, control)
        if found is None:
            raise Mismatch("there is no plan for what follows in these shapes")
        for slot, value in zip(self.facts.rest, found, strict=True):
            slots[slot] = value

    def repeat(self, *_: Any, **__: Any) -> None:
        """Return None: no loop of native code runs it."""

    def portable(self) -> PortableStages | None:
        """Return what another process needs to run the plan; None if it cannot be stored."""
        return None if self._source is None else self._source.portable(self.facts)

    def stages(self) -> Iterator[Runnable]:
        """Yield the plans of all stages that are compiled."""
        if self._instead is not None:
            yield from self._instead.stages()
            return
        for program in (self.first, *self.rest):
            if program is not None:
                yield from program.stages()

    def release(self) -> None:
        """Free the memory that runs have left for the next ones."""
        self._quick.clear()
        self.rest.release()
        for program in (self.first, self._instead):
            if program is not None:
                program.release()

    @property
    def later(self) -> frozenset[str]:
        """The labels of the nodes that are compiled in a run."""
        return self.source().later()

    def whole(self) -> Runnable:
        """Return the plan without stages, which shows all nodes."""
        if self._whole is None:
            self._whole = self.source().whole()
        return self._whole

    def source(self) -> StageSource:
        """Return the program, which is made anew for a plan from the disk; raises TypeError for a stage."""
        if self._source is not None:
            return self._source
        if self._instead is None and self._again is not None:
            self._instead = self._again()
        if not isinstance(self._instead, StagedProgram):
            raise TypeError("a stage from the disk has no program")
        return self._instead.source()


__all__ = ["StageSource", "StagedProgram"]
