"""The compiled engine: plans of native kernels for the shapes that a session is run with."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import run_with_limits
from sabir.compilation._assumed import stand_ins
from sabir.compilation._building import build
from sabir.compilation._explaining import explain
from sabir.compilation._inspecting import CompiledPlan
from sabir.compilation._lowering import lower
from sabir.compilation._prepare import pattern_of, prepare
from sabir.compilation._profiling import ProfiledRun, profile_of
from sabir.compilation._program import CompiledProgram, Mismatch
from sabir.compilation._roofline import roofline
from sabir.compilation.native import host, team
from sabir.evaluation import Runner
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.base import Limits
    from sabir.compilation._explaining import Explanation
    from sabir.compilation._prepare import Pattern
    from sabir.compilation._profiling import Profile
    from sabir.compilation._roofline import Roofline
    from sabir.evaluation import ModelPort, Run
    from sabir.ir import Model
    from sabir.schema import Registry


class Compiled:
    """A model compiled to native kernels: a snapshot, which several threads may run at once.

    A plan is compiled for each pattern of shapes, at the latest when a run first needs it. What it cannot do
    the interpreter does: requests of other values than the outputs, and runs that contradict the declarations.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> Compiled(model).run({'x': np.float32([-1, 2])})['y']
    array([0., 2.], dtype=float32)
    """

    def __init__(
        self,
        model: Model,
        registry: Registry = STANDARD,
        limits: Limits | None = None,
        *,
        threads: int | None = None,
        newer_opsets: bool = False,
    ) -> None:
        """Compile a model; raises what the interpreter raises, and UnsupportedError for another machine."""
        self._host = host()
        self._model = model.clone()
        self._registry, self._limits, self._newer_opsets = registry, limits, newer_opsets
        self._runner = Runner(model, registry, limits, newer_opsets=newer_opsets)
        self._team = team(threads or self._host.cores)
        self._programs: dict[Pattern, tuple[CompiledProgram, ...]] = {}
        self._latest: CompiledProgram | None = None
        self._lock = threading.RLock()
        self._types = [p.type for p in self._runner.inputs]

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs of the model."""
        return self._runner.inputs

    @property
    def outputs(self) -> tuple[ModelPort, ...]:
        """The outputs of the model."""
        return self._runner.outputs

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default), as the interpreter does."""
        names = tuple(p.name for p in self._runner.outputs)
        if outputs is not None and tuple(outputs) != names:
            return self._runner.run(feeds, outputs)
        return run_with_limits(self._limits, self._run, feeds, names)

    def _run(self, feeds: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        run, inputs, arrays = self._started(feeds)
        pattern, sizes = pattern_of(self._types, arrays)
        program = self.program(pattern, sizes)
        try:
            with np.errstate(all="ignore"):
                results = program.run(arrays, sizes, run)
        except Mismatch:
            return self._runner.run(feeds)
        return self._runner.finish(names, results, inputs, run)

    def _started(self, feeds: Mapping[str, Any]) -> tuple[Run, list[Any], list[Any]]:
        """Return the state of a new run, the feeds as values, and these with the defaults of the inputs."""
        run, inputs = self._runner.start(feeds)
        return run, inputs, [self._runner.default(i) if x is None else x for i, x in enumerate(inputs)]

    # ------------------------------------------------------------ plans

    def program(
        self, pattern: Pattern, sizes: Mapping[str, int], progress: Callable[[int, int], None] | None = None
    ) -> CompiledProgram:
        """Return the compiled plan for a pattern of shapes whose guards hold for these sizes."""
        for found in self._programs.get(pattern, ()):
            if found.fits(sizes):
                return found
        with self._lock:
            for found in self._programs.get(pattern, ()):
                if found.fits(sizes):
                    return found
            made = self._latest = self._compiled(pattern, sizes, progress)
            self._programs[pattern] = (*self._programs.get(pattern, ()), made)
            return made

    def _compiled(
        self, pattern: Pattern, sizes: Mapping[str, int], progress: Callable[[int, int], None] | None
    ) -> CompiledProgram:
        prepared = prepare(self._model, pattern, sizes, self._registry, newer_opsets=self._newer_opsets)
        lowered = lower(prepared)
        plan = build(lowered, [v.slot for v in prepared.program.outputs], self._host)
        return CompiledProgram(prepared, plan, self._team, frozenset(sizes), progress)

    # ------------------------------------------------------------ looking inside

    def compile(
        self, feeds: Mapping[str, Any], progress: Callable[[int, int], None] | None = None
    ) -> CompiledPlan:
        """Compile the plan for feeds of these shapes, unless a run has done so; nothing is run.

        `progress` is called with the number of kernels that are loaded and of all. Raises FeedError for feeds
        that a run would refuse, and what the constructor raises.
        """
        return run_with_limits(self._limits, self._compile, feeds, progress)

    def _compile(self, feeds: Mapping[str, Any], progress: Callable[[int, int], None] | None) -> CompiledPlan:
        _, _, arrays = self._started(feeds)
        pattern, sizes = pattern_of(self._types, arrays)
        return CompiledPlan(self.program(pattern, sizes, progress), sizes)

    def explain(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Explanation:
        """Return which nodes became which kernel, and what is evaluated instead, and why.

        That is the plan for the `shapes` of the inputs by name. Without them it is the plan compiled last, or
        before the first run the one for the declared shapes. Raises FeedError where a size is not declared
        and `shapes` does not have it.
        """
        if shapes is None and self._latest is not None:
            return explain(self._latest.prepared, self._latest.plan)
        return self.compile(stand_ins(self.inputs, shapes or {})).explain()

    def profile(self, feeds: Mapping[str, Any], runs: int = 10) -> Profile:
        """Run the model `runs` times, each kernel and each evaluated call alone, and return their times.

        Raises what a run raises, and UnsupportedError where only the interpreter can run these feeds.
        """
        last = run_with_limits(self._limits, self._profiled, feeds)  # it touches memory for the first time
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
        run, _, arrays = self._started(feeds)
        pattern, sizes = pattern_of(self._types, arrays)
        found = ProfiledRun(self.program(pattern, sizes), arrays, sizes, run)
        found.measure()
        return found

    def roofline(self) -> Roofline:
        """Return the limits of this machine, measured with the threads of the engine."""
        return roofline(self._team)
