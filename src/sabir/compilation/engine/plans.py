"""The compiled plans of a model: compiled, or read from the disk, and kept by shape pattern."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.base import (
    ACCIDENTS,
    DEFAULT_LIMITS,
    CancelledError,
    LimitError,
    SabirError,
    budget,
    check_time,
    limits_in_force,
    run_with_limits,
    without_collector,
)
from sabir.compilation.cache.stored import StoredPlans
from sabir.compilation.engine.kept import KeptPlans
from sabir.compilation.engine.restoring import restored
from sabir.compilation.engine.worth import NotYet, PlanCost, allowed_for
from sabir.compilation.faults import report_fault
from sabir.compilation.locks import ProcessLock
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.protocol import Request
from sabir.evaluation import warn
from sabir.opsets import is_standard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from sabir.base import Limits
    from sabir.compilation.cache.stored import PlanPlace
    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.frontend.subject import Subject
    from sabir.compilation.protocol import Backend, Bodies, Runnable
    from sabir.compilation.settings import Settings
    from sabir.ir import Array
    from sabir.schema import Registry


class Plans:
    """The plans of a model, for several threads. `latest` has the pattern and sizes of the newest plan."""

    def __init__(
        self, subject: Subject, registry: Registry, limits: Limits | None, backend: Backend,
        settings: Settings, evaluating: Callable[[], AbstractContextManager[object]], *,
        updates: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._subject, self._registry, self._limits = subject, registry, limits
        self._backend, self._settings = backend, settings
        self._evaluating, self._updates = evaluating, updates
        self._stored = StoredPlans(subject, backend, settings, updates)
        self._kept = KeptPlans()
        self._lock = ProcessLock()
        self._waited = 0.0  # seconds of interpreted runs that no plan has paid for
        self._worth = 0.0  # seconds of interpreted runs after which the next plan is compiled
        self._spent = 0.0  # estimated seconds to compile the newest plan
        self.latest: tuple[ShapePattern, dict[str, int]] | None = None

    def __iter__(self) -> Iterator[Runnable]:
        """Yield the plans that are in memory, of a staged plan those of its stages."""
        for program in self._kept:
            yield from program.stages()

    def release(self) -> None:
        """Free the memory that runs have kept for later runs."""
        for program in self._kept:
            program.release()

    def of(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable | None:
        """Return the compiled plan for a pattern whose guards the sizes satisfy.

        None means that the interpreter must run these shapes; if no plan can be compiled, a warning says so.
        """
        return self._kept.find(pattern, sizes) or self._new(pattern, sizes, None, at_once=False)

    def at_once(
        self, pattern: ShapePattern, sizes: Mapping[str, int], progress: Callable[[int, int], None] | None
    ) -> Runnable | None:
        """Return the plan as `of`, also if interpreted runs have not paid for it yet: it is to be shown."""
        return self._kept.find(pattern, sizes) or self._new(pattern, sizes, progress, at_once=True)

    def _new(
        self, pattern: ShapePattern, sizes: Mapping[str, int], progress: Callable[[int, int], None] | None, *,
        at_once: bool,
    ) -> Runnable | None:  # fmt: skip
        with self._lock:
            found = self._kept.find(pattern, sizes)  # another thread may have compiled it
            if found is not None or not self._kept.admits(pattern, at_once=at_once):
                return found
            if not at_once and self._waited < self._worth:
                return None
            removes = self._kept.removes_one_for(pattern)
            allowed = math.inf if at_once or self._worth else self._waited if removes else None
            program = self._compiled(pattern, sizes, progress, allowed)
            if program is not None:
                if removes or self._worth:
                    self._waited = max(0.0, self._waited - max(self._worth, self._spent))
                self._worth = self._worth if removes else 0.0
                self.latest = pattern, dict(sizes)
                self._kept.add(pattern, program)
            return program

    def interpreted(self, seconds: float) -> None:
        """Add the time of an interpreted run: when all took as long as a plan, the plan is compiled."""
        self._waited += seconds

    def refusal(self, pattern: ShapePattern | None = None) -> str | None:
        """Return why no plan could be compiled for a pattern, by default for the last one refused."""
        return self._kept.refusal(pattern)

    def whole(self, found: Runnable, pattern: ShapePattern, sizes: Mapping[str, int]) -> Runnable:
        """Return the plan with its program, which a plan from the disk lacks."""
        if found.prepared is not None:
            return found
        program = run_with_limits(self._limits, self._new_plan, pattern, sizes)
        with self._lock:
            self._kept.add(pattern, program, instead_of=found)
        return program

    def request(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Request:
        """Return the request for a backend to compile a pattern, without its subgraphs."""
        from sabir.compilation.engine.planning import lowered  # ruff: ignore[import-outside-top-level]  slow to load

        found = lowered(self._prepared(pattern, sizes), sizes, self._backend.passes, self._settings)
        return Request(found, sizes, self._settings, PlanCost(), _timed, _no_bodies)

    def _compiled(
        self, pattern: ShapePattern, sizes: Mapping[str, int], progress: Callable[[int, int], None] | None,
        allowed: float | None,
    ) -> Runnable | None:  # fmt: skip
        """Return the plan, or None; it may cost `allowed` seconds, by default as `allowed_for`."""
        before = budget().mark()
        try:
            return self._planned(pattern, sizes, progress, allowed)
        except CancelledError:
            raise
        except NotYet as error:
            self._worth = error.seconds
            return None
        except (SabirError, AssertionError, Mismatch, *ACCIDENTS) as error:
            if isinstance(error, LimitError) and error.limit == "seconds":
                raise
            reason = f"{type(error).__name__}: {error}"
            self._kept.refuse(pattern, reason)
            if isinstance(error, (SabirError, Mismatch)):
                warn(f"no plan could be compiled, so the interpreter runs it: {reason}")
            else:
                report_fault(error, "planning", result="the interpreter runs the model")
            return None
        finally:
            budget().return_to(before)

    def _planned(
        self, pattern: ShapePattern, sizes: Mapping[str, int], progress: Callable[[int, int], None] | None,
        allowed: float | None,
    ) -> Runnable:  # fmt: skip
        """Return the plan from the disk, or a new one; under limits always a new one, which they count."""
        usual = limits_in_force()._replace(seconds=None) == DEFAULT_LIMITS
        place = self._stored.place(pattern) if usual and is_standard(self._registry) else None
        first_sizes = dict(sizes)

        def again() -> Runnable:
            return run_with_limits(self._limits, self._new_plan, pattern, first_sizes, place=place)

        found = None if place is None else restored(place, self._backend, progress or _timed, again)
        if found is not None and found.fits(sizes):
            self._subject.keep()
            return found
        program = self._new_plan(pattern, sizes, progress, allowed, place)
        if place is not None and self._is_stored(place, program):
            self._subject.keep()
        return program

    @staticmethod
    def _is_stored(place: PlanPlace, program: Runnable) -> bool:
        """Store a new plan; return whether it is stored."""
        prepared = program.prepared
        return prepared is not None and place.write(program, prepared.program.constants)

    def _new_plan(
        self, pattern: ShapePattern, sizes: Mapping[str, int],
        progress: Callable[[int, int], None] | None = None, allowed: float | None = math.inf,
        place: PlanPlace | None = None,
    ) -> Runnable:  # fmt: skip
        self._backend.begin()
        with self._evaluating(), without_collector():  # constants are folded
            # ruff: ignore[import-outside-top-level]  slow to load
            from sabir.compilation.engine.planning import planned

            prepared = self._prepared(pattern, sizes)
            cost = PlanCost(allowed_for(prepared, sizes) if allowed is None else allowed)
            program = planned(
                prepared,
                sizes,
                self._backend,
                self._settings,
                progress or _timed,
                self._updates,
                cost,
                place=place,
            )
        self._spent = cost.seconds
        return program

    def _prepared(self, pattern: ShapePattern, sizes: Mapping[str, int]) -> Prepared:
        from sabir.compilation.engine.planning import prepare  # ruff: ignore[import-outside-top-level]  slow to load

        model, newer_opsets = self._subject.model, self._settings.newer_opsets
        return prepare(model, pattern, sizes, self._registry, newer_opsets=newer_opsets)


def _no_bodies(_: Mapping[int, Array]) -> Bodies:
    raise TypeError("a plan that is only shown runs no subgraph")


def _timed(_done: int, _all: int) -> None:
    """Check the deadline between kernels that are compiled."""
    check_time()
