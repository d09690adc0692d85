"""The compiled engine: plans of native kernels for the shapes that a session is run with."""

from __future__ import annotations

import time
import warnings
from contextlib import nullcontext, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import (
    ACCIDENTS,
    EvaluationError,
    LimitError,
    SabirWarning,
    UnsupportedError,
    budget,
    has_limits,
    quote,
    run_with_limits,
)
from sabir.compilation.backends.cpu.backend import CpuBackend, this_machine
from sabir.compilation.engine.plans import Plans
from sabir.compilation.faults import report_fault
from sabir.compilation.frontend.patterns import pattern_of
from sabir.compilation.frontend.subject import Subject
from sabir.compilation.locks import Stops
from sabir.compilation.native import Control, target_named
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.runtime.fast import FastRun, FedInput, fast_run
from sabir.compilation.runtime.program import CompiledProgram
from sabir.compilation.runtime.running import require_budget
from sabir.compilation.settings import DEFAULT, Settings
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sabir.base import Limits
    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.compilation.inspect.explaining import Explanation
    from sabir.compilation.inspect.inspecting import CompiledPlan
    from sabir.compilation.inspect.profiling import Profile, ProfiledRun
    from sabir.compilation.inspect.roofline import Roofline
    from sabir.compilation.protocol import Backend, Runnable
    from sabir.compilation.runtime.commits import Commit
    from sabir.evaluation import ModelPort, Run, Runner
    from sabir.files import OpenedFile
    from sabir.ir import Array, Model
    from sabir.schema import Registry


_MOST_SHAPES = 16  # whose fast runs are kept


class _EndedRun(NamedTuple):
    """A run on the slow path: its plan, the names of its outputs, its inputs, their pattern and sizes."""

    program: Runnable
    names: tuple[str, ...]
    inputs: Sequence[Any]
    pattern: ShapePattern
    sizes: Mapping[str, int]
    run: Run


class Compiled:
    """A model compiled to native kernels: a snapshot, which several threads may run at once.

    A plan is compiled for each shape pattern, on the first run that needs it. The interpreter runs the rest:
    requests for other values than the outputs, and feeds that contradict the declarations.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> Compiled(model).run({'x': np.float32([-1, 2])})['y']
    array([0., 2.], dtype=float32)
    """

    def __init__(
        self,
        model: Model | Subject,
        registry: Registry = STANDARD,
        limits: Limits | None = None,
        *,
        threads: int | None = None,
        file: OpenedFile | None = None,
        evaluating: Callable[[], AbstractContextManager[object]] = nullcontext,
        updates: Mapping[str, str] | None = None,
        settings: Settings = DEFAULT,
        backend: Backend | None = None,
    ) -> None:
        """Compile a model; raises the errors of the interpreter, and UnsupportedError for another machine.

        `file` is the file of the model, if the model is unchanged since it was loaded. Calls of numpy run in
        the context that `evaluating` returns. `updates` maps outputs to the inputs whose new values they are:
        `run_fast` may write these outputs over the inputs. The default `backend` is the CPU of this machine,
        with `threads` threads. Raises UnsupportedError for settings with a pass that does not exist.
        """
        self._backend = this_machine(threads) if backend is None else backend
        _check_passes(settings.without, self._backend)
        self._settings = settings
        self._registry, self._limits = registry, limits
        self._evaluating = evaluating
        self._subject = subject = (
            model
            if isinstance(model, Subject)
            else _bound(model, registry, limits, file, newer_opsets=settings.newer_opsets)
        )
        self._defaults = subject.defaults
        self._front = subject.front
        # the constants of subgraphs count as in the interpreter, which may take long to count them
        if subject.has_turns:
            self._front.numbers = run_with_limits(limits, lambda: self._runner.numbers)
        self._plans = Plans(
            subject, registry, limits, self._backend, settings, evaluating, updates=updates or {}
        )  # fmt: skip
        self._stops = Stops()
        self._fast: FastRun | None = None
        self._fast_runs: dict[tuple[CompiledProgram, tuple[tuple[str, tuple[int, ...]], ...]], FastRun] = {}
        self._last: tuple[CompiledProgram, dict[str, int]] | None = None  # the last run on the slow path
        self._types = [p.type for p in self._front.inputs]
        self._sized = frozenset(n for n, p in enumerate(self._front.inputs) if p.name in settings.sizes)

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs of the model."""
        return self._front.inputs

    @property
    def outputs(self) -> tuple[ModelPort, ...]:
        """The outputs of the model."""
        return self._front.outputs

    @cached_property
    def _runner(self) -> Runner:
        """The interpreter, for requests without a plan, under the limits in force."""
        from sabir.evaluation import Runner  # ruff: ignore[import-outside-top-level]  few sessions run it

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SabirWarning)  # this session has issued them
            return Runner(self._subject.model, self._registry, newer_opsets=self._settings.newer_opsets)

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default), as the interpreter would."""
        return run_with_limits(self._limits, self._requested, feeds, outputs)

    def _requested(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None) -> dict[str, Any]:
        names = tuple(self._front.output_slots)
        before = budget().mark()
        failure: Exception | None = None
        with self._stops.run() as control:
            if outputs is None or tuple(outputs) == names:
                try:
                    found = self._tried(feeds, names, control)
                except ACCIDENTS as error:
                    found, failure = None, error
                if found is not None:
                    return found
            runner = self._runner
            budget().return_to(before)
            started = time.perf_counter()
            with self._evaluating():
                results = runner.run(feeds, outputs)  # it reports invalid feeds
            self._plans.interpreted(time.perf_counter() - started)
        if failure is not None:
            report_fault(failure, "a run of the plan", result="the interpreter ran the model")
        return results

    def _tried(
        self, feeds: Mapping[str, Any], names: tuple[str, ...], control: Control
    ) -> dict[str, Any] | None:
        """Return the results of a run of a plan; None if the interpreter must run the request.

        Raises one of ACCIDENTS for an error of the plan.
        """
        try:
            return self._run(feeds, names, control)
        except (Mismatch, EvaluationError):
            return None
        except LimitError as error:
            if error.limit == "seconds" or (
                error.limit == "iterations" and not self._subject.model.functions
            ):
                raise  # the interpreter would run into the same limit
            return None

    def _run(self, feeds: Mapping[str, Any], names: tuple[str, ...], control: Control) -> dict[str, Any]:
        run, inputs, arrays, pattern, sizes = self._started(feeds)
        program = self._plans.of(pattern, sizes)
        if program is None:
            raise Mismatch("there is no plan for these shapes")
        with np.errstate(all="ignore"), nullcontext() if program.is_native else self._evaluating():
            results = program.run(arrays, sizes, run, control)
        found = self._front.finish(names, results, inputs, run)
        self._remember(_EndedRun(program, names, inputs, pattern, sizes, run))
        return found

    @property
    def in_place(self) -> Mapping[str, str]:
        """The inputs that `run_fast` may overwrite now, by the names of the outputs."""
        return {} if self._fast is None else self._fast.in_place

    def run_fast(
        self,
        feeds: Mapping[str, Any],
        buffers: Mapping[str, Array] | None = None,
        commit: Commit[Any] | None = None,
    ) -> dict[str, Any] | None:
        """Return all outputs for feeds of the shapes of the last run, without checks; None for other feeds.

        An output is written into its array in `buffers`, if that has the right type and shape and shares no
        memory with a feed, else into a new array. With a `commit` that array may be the feed that `in_place`
        names: then the run writes all such feeds at its end, or none of them.
        """
        fast = self._fast
        if fast is None or (self._limits is None and has_limits()):
            return None  # only `run` checks the limits of a caller
        try:
            return fast.run(feeds, buffers, commit)
        except MemoryError:
            return None  # `run` reports what does not fit into memory

    def prepare_fast(self, feeds: Mapping[str, Any]) -> None:
        """Prepare `run_fast` before the first run, if one plan of kernels computes the outputs for the feeds.

        So the first run, too, can write over what `in_place` names. Raises FeedError as a run.
        """
        if self._fast is None:
            run_with_limits(self._limits, self._prepare_fast, feeds)

    def _prepare_fast(self, feeds: Mapping[str, Any]) -> None:
        with (
            suppress(Mismatch, EvaluationError, LimitError, *ACCIDENTS),  # the run meets them again
            self._stops.run(),
        ):
            run, inputs, _, pattern, sizes = self._started(feeds)
            program = self._plans.of(pattern, sizes)
            if isinstance(program, CompiledProgram) and program.is_native and len(program.parts) == 1:
                require_budget(run.budget, program.layout(0, RunSizes(sizes)), program.team.threads)
                names = tuple(self._front.output_slots)
                self._remember(_EndedRun(program, names, inputs, pattern, sizes, run))

    def cancel(self) -> None:
        """Cancel the runs of other threads: they raise CancelledError."""
        self._stops.cancel()
        self.release()

    def release(self) -> None:
        """Free the memory that runs have kept for later runs."""
        self._fast = self._last = None
        self._fast_runs = {}
        self._plans.release()

    def _remember(self, ended: _EndedRun) -> None:
        """Prepare `run_fast` for feeds of the same shapes, or after several also for others."""
        program = ended.program
        if self._limits is not None and self._limits.seconds is not None:
            return
        if not isinstance(program, CompiledProgram):
            self._remember_stages(ended)
            return
        if self._front.compares_items:
            return
        kept = [x is None and d is not None for x, d in zip(ended.inputs, self._defaults, strict=True)]
        ports = [
            (p, k) for p, k, d in zip(self._front.inputs, ended.pattern.inputs, kept, strict=True) if not d
        ]
        arrays = [x for x, default in zip(ended.inputs, kept, strict=True) if not default]
        fed = [
            FedInput(port.name, slot, cast("Array", x), kind)
            for (port, kind), slot, x in zip(ports, program.inputs, arrays, strict=True)
            if isinstance(x, np.ndarray) and kind is not None
        ]
        if len(fed) < len(arrays):
            return
        key = program, tuple((each.name, each.feed.shape) for each in fed)
        runs, control = self._fast_runs, self._stops.control
        fast = runs.get(key)
        if fast is None or fast.control is not control:
            fast = self._growing(program, ended, fed, control) or self._fixed(program, ended, fed, control)
            if fast is None:
                return
            if len(runs) >= _MOST_SHAPES:
                runs.clear()
            runs[key] = fast
        self._stops.keep(control, partial(setattr, self, "_fast", fast))

    def _remember_stages(self, ended: _EndedRun) -> None:
        """Prepare `run_fast` for feeds of the same shapes, if the plan has stages."""
        # ruff: ignore[import-outside-top-level]  few plans have stages
        from sabir.compilation.engine.staged_runs import StagedProgram, StagedRun, staged_run

        feeds = {p.name: x for p, x in zip(self._front.inputs, ended.inputs, strict=True)}
        if not isinstance(ended.program, StagedProgram) or self._front.is_strict or self._sized:
            return
        if not all(isinstance(x, np.ndarray) for x in feeds.values()):
            return
        stages = StagedRun(ended.program, feeds, ended.sizes, ended.names, self._evaluating)
        control = self._stops.control
        fast = staged_run(stages, self._front, self._limits, control)
        self._stops.keep(control, partial(setattr, self, "_fast", fast))

    def _growing(
        self, program: CompiledProgram, ended: _EndedRun, fed: Sequence[FedInput], control: Control
    ) -> FastRun | None:
        """Return the fast runs for all sizes after runs of different ones, or where sizes are contents."""
        last, self._last = self._last, (program, dict(ended.sizes))
        follows = last is not None and last[0] is program
        if self._front.is_strict or not (follows or self._sized):
            return None
        # ruff: ignore[import-outside-top-level]  few sessions run for several sizes
        from sabir.compilation.runtime.growing import growing_run

        before = last[1] if last is not None and follows else ended.sizes
        outputs = list(zip(ended.names, program.executable.results, strict=True))
        allowed = ended.run.budget.as_at_first()
        return growing_run(program, ended.sizes, before, fed, outputs, control, allowed, limits=self._limits)

    def _fixed(
        self, program: CompiledProgram, ended: _EndedRun, fed: Sequence[FedInput], control: Control
    ) -> FastRun | None:
        """Return the fast runs for the shapes of a run."""
        if self._sized:
            return None
        known = RunSizes(ended.sizes)
        outputs = list(zip(ended.names, program.executable.results, strict=True))
        layout = program.layout(0, known) if len(program.parts) == 1 else None
        names = [(each.name, each.slot, each.feed) for each in fed]
        allowed = ended.run.budget.as_at_first()
        return fast_run(program, layout, known, names, outputs, control, allowed=allowed, limits=self._limits)

    def _started(
        self, feeds: Mapping[str, Any]
    ) -> tuple[Run, list[Any], list[Any], ShapePattern, dict[str, int]]:
        """Return a new run, all inputs, the arrays that the plan reads, and their pattern and sizes."""
        run, inputs = self._front.start(feeds)
        pattern, sizes = pattern_of(self._types, inputs, self._sized)
        arrays = [x for x, d in zip(inputs, self._defaults, strict=True) if x is not None or d is None]
        return run, inputs, arrays, pattern, sizes

    # ------------------------------------------------------------ looking inside

    def compile(
        self,
        feeds: Mapping[str, Any],
        progress: Callable[[int, int], None] | None = None,
        *,
        target: str | None = None,
    ) -> CompiledPlan:
        """Compile the plan for feeds of these shapes, unless it is compiled already; nothing is run.

        `progress` is called with the number of loaded kernels and of all kernels. With the name of a
        processor as `target` the plan is compiled for that one: this machine can show it, and not run it.
        Raises FeedError for feeds that a run would refuse, UnsupportedError for an unknown target, and the
        errors of the constructor.
        """
        return run_with_limits(self._limits, self._compile, feeds, progress, target)

    def _compile(
        self, feeds: Mapping[str, Any], progress: Callable[[int, int], None] | None, target: str | None
    ) -> CompiledPlan:
        _, _, _, pattern, sizes = self._started(feeds)
        return (
            self._inspected(pattern, sizes, progress)
            if target is None
            else self._shown(pattern, sizes, target)
        )

    def _shown(self, pattern: ShapePattern, sizes: Mapping[str, int], target: str) -> CompiledPlan:
        from sabir.compilation.inspect.inspecting import CompiledPlan  # ruff: ignore[import-outside-top-level]  for tools

        found = self._cpu().foreign(self._plans.request(pattern, sizes), target_named(target))
        return CompiledPlan(found, sizes, self._settings, lambda: found)

    def _inspected(
        self,
        pattern: ShapePattern,
        sizes: Mapping[str, int],
        progress: Callable[[int, int], None] | None = None,
    ) -> CompiledPlan:
        from sabir.compilation.inspect.inspecting import CompiledPlan  # ruff: ignore[import-outside-top-level]  for tools

        found = self._required(pattern, sizes, progress)
        whole = partial(self._whole, found, pattern, sizes)
        later = getattr(self._plans.at_once(pattern, sizes, None), "later", ())
        return CompiledPlan(found, sizes, self._settings, whole, later)

    def _required(
        self,
        pattern: ShapePattern,
        sizes: Mapping[str, int],
        progress: Callable[[int, int], None] | None = None,
    ) -> CompiledProgram:
        """Return the plan for a pattern; raises UnsupportedError if there is none."""
        self._cpu()
        found = self._plans.at_once(pattern, sizes, progress)
        whole = getattr(found, "whole", None)
        found = found if whole is None else whole()
        if not isinstance(found, CompiledProgram):
            raise _no_plan("these shapes", self._plans.refusal(pattern))
        return found

    def _whole(
        self, program: CompiledProgram, pattern: ShapePattern, sizes: Mapping[str, int]
    ) -> CompiledProgram:
        """Return the plan with its program, which a plan from the disk lacks."""
        found = self._plans.whole(program, pattern, sizes)
        if not isinstance(found, CompiledProgram):
            raise TypeError("the backend of CPUs compiles programs of kernels")
        return found

    def _cpu(self) -> CpuBackend:
        """Return the CPU backend, whose plans can be shown; raises UnsupportedError for another one."""
        if not isinstance(self._backend, CpuBackend):
            raise UnsupportedError(f"plans of {self._backend.key} cannot be shown")
        return self._backend

    def explain(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Explanation:
        """Return which nodes became which kernel, which are evaluated instead, and why.

        The explained plan is that for the `shapes` of the inputs by name. Without them it is the plan
        compiled last, or before the first run the plan for the declared shapes. Raises FeedError for a size
        that is neither declared nor in `shapes`.
        """
        from sabir.compilation.frontend.placeholders import placeholder_feeds  # ruff: ignore[import-outside-top-level]  for tools

        if shapes is None and self._plans.latest is None:
            refusal = self._plans.refusal()
            if refusal is not None:
                raise _no_plan("the shapes of the last run", refusal)
        if shapes is not None or self._plans.latest is None:
            return self.compile(placeholder_feeds(self.inputs, shapes or {})).explain()
        return self._inspected(*self._plans.latest).explain()

    def profile(self, feeds: Mapping[str, Any], runs: int = 10) -> Profile:
        """Run the model `runs` times, each kernel and each evaluated call alone, and return their times.

        Raises what a run raises, and UnsupportedError if only the interpreter can run these feeds.
        """
        from sabir.compilation.inspect.profiling import profile_of  # ruff: ignore[import-outside-top-level]  for tools

        last = run_with_limits(self._limits, self._profiled, feeds)  # the first run maps memory pages
        alone: list[list[float]] = []
        whole: list[float] = []
        for _ in range(max(runs, 1)):
            last = run_with_limits(self._limits, self._profiled, feeds)
            alone.append(last.times)
            started = time.perf_counter()
            self.run(feeds)
            whole.append(time.perf_counter() - started)
        return profile_of(last, alone, whole)

    def _profiled(self, feeds: Mapping[str, Any]) -> ProfiledRun:
        from sabir.compilation.inspect.profiling import ProfiledRun  # ruff: ignore[import-outside-top-level]  for tools

        run, _, arrays, pattern, sizes = self._started(feeds)
        program = self._whole(self._required(pattern, sizes), pattern, sizes)
        found = ProfiledRun(program, arrays, sizes, run, Control())
        found.measure()
        return found

    def roofline(self) -> Roofline:
        """Return the limits of this machine, measured with the threads of the engine."""
        from sabir.compilation.inspect.roofline import roofline  # ruff: ignore[import-outside-top-level]  for tools

        return roofline(self._cpu().team)


def _check_passes(names: Collection[str], backend: Backend) -> None:
    """Raise UnsupportedError for a name that is no pass, or a required one."""
    passes = {each.name: each for each in backend.passes} if names else {}
    for name in names:
        if name not in passes:
            raise UnsupportedError(f"there is no pass {quote(name)}; the passes are {', '.join(passes)}")
        if passes[name].required:
            raise UnsupportedError(
                f"the pass {quote(name)} is required: kernels cannot compute what it replaces"
            )


def _no_plan(shapes: str, reason: str | None) -> UnsupportedError:
    because = f": {reason}" if reason else ""
    return UnsupportedError(f"there is no plan for {shapes}, and only the interpreter can run them{because}")


def _bound(
    model: Model, registry: Registry, limits: Limits | None, file: OpenedFile | None, *,
    newer_opsets: bool,
) -> Subject:  # fmt: skip
    # ruff: ignore[import-outside-top-level]  a file that the cache describes is not bound
    from sabir.compilation.frontend.binding import bound_subject

    return bound_subject(model, registry, limits, file, newer_opsets=newer_opsets)
