"""The compilation of prepared calls to one plan, or to stages: calls that decide ranks or sizes end a plan.

A stage is compiled when a run reaches it, once for each pattern of shapes. So what follows a data-dependent
size or rank runs in native code as what precedes it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.cache.calls import stored_call
from sabir.compilation.engine.bodies import bodies_on
from sabir.compilation.engine.cuts import cut_of, has_numbers, is_computed, is_look
from sabir.compilation.engine.expressions import lower, rewritten
from sabir.compilation.engine.staged import StagedProgram, StageSource
from sabir.compilation.engine.subplans import PartSource, SubPlans, timed
from sabir.compilation.engine.worth import PlanCost, Reserve
from sabir.compilation.plan.stage_facts import InputKind, StageFacts
from sabir.compilation.protocol import PortableStages, Request
from sabir.evaluation import CallBinder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation.cache.stored import PlanPlace
    from sabir.compilation.engine.cuts import Cut
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.protocol import Backend, Bodies, Runnable
    from sabir.compilation.settings import Settings
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
        progress: Callable[[int, int], None] = timed, *, place: PlanPlace | None = None,
    ) -> Runnable:  # fmt: skip
        """Return the plan of prepared calls; raises as `Backend.compile`.

        Its stages are stored at a `place`, if there is one.
        """
        found = lower(prepared, sizes)
        cut = cut_of(found)
        if cut is not None:
            return self._staged(_Cutting(prepared, cut, sizes), cost, place)
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

    def _staged(self, cutting: _Cutting, cost: PlanCost, place: PlanPlace | None) -> StagedProgram:
        """Return a plan in stages, the first of which is compiled now."""
        prepared, cut, sizes = cutting
        program, constants = prepared.program, prepared.constants
        first = self.whole(prepared._replace(plan=cut.first), sizes, cost) if cut.first.results else None
        if place is not None and first is not None:
            place.part("first").write(first, program.constants)
        binder = CallBinder(strict=False, bodies=self.bodies(constants))
        facts = _facts_of(prepared, cut)
        rest = SubPlans(
            lambda: PartSource(program, cut.rest, constants, self.compiled), cut.live, Reserve(math.inf),
            loops=True, sized=facts.sized, place=None if place is None else place.part("rest"),
        )  # fmt: skip
        calls = [binder.bind(program.calls[number]) for number in cut.deciding]
        return StagedProgram(facts, first, calls, constants, rest, _Source(self, cutting, first))


class _Cutting(NamedTuple):
    """A program, where it is cut, and the sizes of the feeds then."""

    prepared: Prepared
    cut: Cut
    sizes: Mapping[str, int]


def _facts_of(prepared: Prepared, cut: Cut) -> StageFacts:
    calls = prepared.program.calls
    return StageFacts(
        prepared.inputs,
        tuple(InputKind.of(prepared.types[slot]) for slot in prepared.inputs),
        prepared.plan.results,
        prepared.program.size,
        prepared.guards,
        cut.first.results,
        all(is_look(calls[place]) for place in cut.deciding),
        cut.live,
        tuple(n for n, slot in enumerate(cut.live) if slot in cut.sized),
        cut.rest.results,
    )


class _Source(StageSource):
    """The program that a staged plan was made from."""

    def __init__(self, compiler: Compiler, cutting: _Cutting, first: Runnable | None) -> None:
        self._compiler, self._cutting, self._first = compiler, cutting, first
        self.prepared = cutting.prepared

    def later(self) -> frozenset[str]:
        """Return the labels of the nodes that are compiled in a run."""
        prepared = self.prepared
        calls = [prepared.program.calls[place] for place, _ in self._cutting.cut.rest.steps]
        return frozenset(c.label for c in calls if is_computed(c) and has_numbers(prepared, c))

    def whole(self) -> Runnable:
        """Return the plan without stages, which shows all nodes."""
        return self._compiler.whole(self.prepared, self._cutting.sizes, PlanCost())

    def portable(self, facts: StageFacts) -> PortableStages | None:
        """Return what another process needs; None if the first stage or a call cannot be stored."""
        if self._first is not None and self._first.portable() is None:
            return None
        prepared, deciding = self.prepared, self._cutting.cut.deciding
        made = [stored_call(prepared.program.calls[place]) for place in deciding]
        calls = tuple(call for call in made if call is not None)
        if len(calls) < len(made):
            return None
        read = {*facts.results, *(slot for call in calls for slot in call.inputs)}
        constants = {slot: prepared.constants[slot] for slot in read & prepared.constants.keys()}
        return PortableStages(facts, constants, calls)


__all__ = ["Compiler"]
