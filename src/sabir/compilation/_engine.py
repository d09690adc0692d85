"""The compiled engine: plans of native kernels for the shapes that a session is run with."""

from __future__ import annotations

import threading
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import ACCIDENTS, LimitError, SabirError, SabirWarning, run_with_limits
from sabir.compilation._building import build
from sabir.compilation._fast import FastRun, fast_run
from sabir.compilation._instance import Sizes
from sabir.compilation._lowering import lower
from sabir.compilation._prepare import pattern_of, prepare
from sabir.compilation._program import CompiledProgram, Mismatch
from sabir.compilation.native import Control, host, team
from sabir.evaluation import Front, Runner, warn
from sabir.ir import Tensor
from sabir.opsets import STANDARD
from sabir.scheduling import make_plan, schedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.base import Limits
    from sabir.compilation._prepare import Pattern
    from sabir.evaluation import ModelPort
    from sabir.ir import Array, Model
    from sabir.scheduling import Program
    from sabir.schema import Registry


_MOST_SHAPES = 16  # whose fast runs are kept
_MOST_PLANS = 8  # of one pattern, each with other guards; the interpreter runs what fits none


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
        scheduled = run_with_limits(limits, schedule, model, registry, newer_opsets=newer_opsets)
        program = scheduled.program
        make_plan(program, [v.slot for v in program.outputs])  # raises for a call that is invalid
        self._defaults = [_default(program, v.slot) for v in program.inputs]
        slots = [v.slot for v in program.inputs]
        defaults = {s: d for s, d in zip(slots, self._defaults, strict=True) if d is not None}
        numbers = sum(t.size for t in program.constants.values() if isinstance(t, Tensor))
        self._front = Front(scheduled, defaults, numbers=numbers)
        self._team = team(threads or self._host.cores)
        self._programs: dict[Pattern, tuple[CompiledProgram, ...]] = {}
        self._lock = threading.RLock()
        self._control = Control()
        self._fast: FastRun | None = None
        self._fast_runs: dict[tuple[tuple[str, tuple[int, ...]], ...], FastRun] = {}
        self._refused: set[Pattern] = set()
        self._types = [p.type for p in self._front.inputs]

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
        """The interpreter, which runs what no plan can."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SabirWarning)  # this session has issued them
            return Runner(self._model, self._registry, self._limits, newer_opsets=self._newer_opsets)

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default), as the interpreter does."""
        names = tuple(self._front.output_slots)
        if outputs is not None and tuple(outputs) != names:
            return self._runner.run(feeds, outputs)
        return run_with_limits(self._limits, self._run, feeds, names)

    def _run(self, feeds: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        run, inputs = self._front.start(feeds)
        pattern, sizes = pattern_of(self._types, inputs)
        arrays = [x for x, d in zip(inputs, self._defaults, strict=True) if x is not None or d is None]
        program = self.program(pattern, sizes)
        if program is None:
            return self._runner.run(feeds)
        try:
            with np.errstate(all="ignore"):
                results = program.run(arrays, sizes, run, self._control)
        except Mismatch:
            return self._runner.run(feeds)
        found = self._front.finish(names, results, inputs, run)
        self._remember(program, names, inputs, sizes)
        return found

    def run_fast(self, feeds: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return all outputs for feeds like those of the last run, in the least time; None for others."""
        fast = self._fast
        return None if fast is None else fast(feeds)

    def cancel(self) -> None:
        """Stop the runs that other threads are in: they raise CancelledError. Later runs are not concerned."""
        with self._lock:
            stopped, self._control = self._control, Control()
            self._fast = None
            self._fast_runs.clear()
        stopped.cancel()

    def release(self) -> None:
        """Give back the memory that runs have left for the next ones."""
        with self._lock:
            self._fast = None
            self._fast_runs.clear()

    def _remember(
        self, program: CompiledProgram, names: tuple[str, ...], inputs: Sequence[Any], sizes: Mapping[str, int]
    ) -> None:
        """Let later runs with feeds of the same shapes be fast."""
        if not program.is_native or (self._limits is not None and self._limits.seconds is not None):
            return
        kept = [x is None and d is not None for x, d in zip(inputs, self._defaults, strict=True)]
        fed_ports = [p for p, default in zip(self._front.inputs, kept, strict=True) if not default]
        arrays = [x for x, default in zip(inputs, kept, strict=True) if not default]
        fed = [
            (port.name, slot, x)
            for port, slot, x in zip(fed_ports, program.prepared.inputs, arrays, strict=True)
            if isinstance(x, np.ndarray)
        ]
        if len(fed) < len(arrays):
            return
        key = tuple((name, x.shape) for name, _, x in fed)
        fast = self._fast_runs.get(key)
        if fast is None:
            known = Sizes(sizes)
            outputs = list(zip(names, program.prepared.plan.results, strict=True))
            fast = fast_run(program, program.layout(0, known), known, fed, outputs, self._control)
            if fast is None:
                return
            if len(self._fast_runs) >= _MOST_SHAPES:
                self._fast_runs.clear()
            self._fast_runs[key] = fast
        self._fast = fast

    def program(self, pattern: Pattern, sizes: Mapping[str, int]) -> CompiledProgram | None:
        """Return the compiled plan for a pattern of shapes whose guards hold for these sizes.

        It is None, with a warning, where a kernel cannot be made: the interpreter runs these shapes.
        """
        for found in self._programs.get(pattern, ()):
            if found.fits(sizes):
                return found
        with self._lock:
            for found in self._programs.get(pattern, ()):
                if found.fits(sizes):
                    return found
            if len(self._programs.get(pattern, ())) >= _MOST_PLANS:
                return None
            made = self._compiled(pattern, sizes)
            if made is not None:
                self._programs[pattern] = (*self._programs.get(pattern, ()), made)
            return made

    def _compiled(self, pattern: Pattern, sizes: Mapping[str, int]) -> CompiledProgram | None:
        if pattern in self._refused:
            return None
        try:
            return run_with_limits(self._limits, self._planned, pattern, sizes)
        except LimitError:
            raise
        except (SabirError, AssertionError, *ACCIDENTS) as error:
            self._refused.add(pattern)
            warn(f"no plan could be compiled, so the interpreter runs the model: {type(error).__name__}: {error}")
            return None

    def _planned(self, pattern: Pattern, sizes: Mapping[str, int]) -> CompiledProgram:
        prepared = prepare(self._model, pattern, sizes, self._registry, newer_opsets=self._newer_opsets)
        lowered = lower(prepared, sizes)
        prepared = lowered.settled()
        plan = build(lowered, list(prepared.plan.results), self._host)
        return CompiledProgram(prepared, plan, self._team, frozenset(sizes))


def _default(program: Program, slot: int) -> Array | None:
    found = program.constants.get(slot)
    return None if found is None else found.array()
