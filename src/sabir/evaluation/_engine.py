"""Running a model: feeds in, outputs out."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import (
    EvaluationError,
    FeedError,
    Limits,
    SabirWarning,
    SchemaError,
    budget,
    quote,
    run_with_limits,
    suggest,
    without_collector,
)
from sabir.evaluation._binding import BoundProgram, CallBinder
from sabir.evaluation._calls import Run
from sabir.evaluation._declared import Dimensions, declaration
from sabir.evaluation._feeds import FeedReader, ModelPort
from sabir.evaluation._results import owned
from sabir.evaluation._sizes import numbers_of
from sabir.evaluation._subgraphs import DeclaredValue, compare
from sabir.opsets import STANDARD
from sabir.opsets.families.spare_memory import SpareMemory
from sabir.scheduling import calls_in_graph, schedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.evaluation._declared import Declaration
    from sabir.evaluation._plans import BoundPlan
    from sabir.ir import Array, Model
    from sabir.scheduling import Program, Schedule, ValueInfo
    from sabir.schema import Registry


class Front:
    """What every engine has in front of its runs: ports, feeds, limits, and the comparison of results.

    It is made of a schedule and the defaults of inputs by slot. With `strict` a value that contradicts its
    declared type raises EvaluationError; else it is a SabirWarning, once for each place.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> from sabir.scheduling import schedule
    >>> front = Front(schedule(model, STANDARD), {})
    >>> run, inputs = front.start({'x': [1.0, 2.0]})
    >>> inputs
    [array([1., 2.], dtype=float32)]
    """

    def __init__(
        self, scheduled: Schedule, defaults: Mapping[int, Array], *, strict: bool = False, numbers: int = 0
    ) -> None:
        """Warn of what the file should repair; raises SchemaError where two outputs have one name.

        `numbers` is how many numbers the constants have: the limits of a run grow with it.
        """
        for note in scheduled.notes:
            warn(f"{note}; `sabir check --fix` mends the file")
        for name in scheduled.experimental:
            warn(f"{name} is experimental: its meaning may change without a new version")
        program = scheduled.program
        self.output_slots = _output_slots(program.outputs)
        self.outputs = tuple(ModelPort(v.name, v.type) for v in program.outputs if v.slot)
        self.numbers = numbers
        self._strict = strict
        self._reported: set[str] = set()
        self._declared = {
            v.name: DeclaredValue(f"output {quote(v.name)}", declaration(v.type)) for v in self.outputs
        }
        self._feeds = FeedReader(program.inputs, defaults)

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs of the model."""
        return self._feeds.ports

    def start(self, feeds: Mapping[str, Any]) -> tuple[Run, list[Any]]:
        """Return the state of a new run, and the feeds as values, None where an input keeps its default.

        Raises FeedError.
        """
        run = Run(budget(), Dimensions(), self._mismatch, self._strict)
        inputs = self._feeds.read(feeds, run.dims, strict=self._strict)
        run.budget.raise_for(self.numbers + sum(map(numbers_of, inputs)))
        return run, inputs

    def finish(
        self, names: Sequence[str], results: Sequence[Any], inputs: Sequence[Any], run: Run
    ) -> dict[str, Any]:
        """Return the results of a run by name, compared with their declared types, as the caller's own."""
        declared = self._declared
        named = [(declared[n], r) for n, r in zip(names, results, strict=True) if n in declared]
        compare([d for d, _ in named], [r for _, r in named], run)
        return dict(zip(names, owned(results, inputs), strict=True))

    def _mismatch(self, where: str, problem: str) -> None:
        if self._strict:
            raise EvaluationError(problem)
        if where not in self._reported:
            self._reported.add(where)
            warn(f"{problem}; a strict run makes this an error")


def expanded(model: Model, registry: Registry, limits: Limits | None) -> Model:
    """Return the model that is scheduled for a model: calls that read the graph around them are replaced.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> expanded(model, STANDARD, None) is model
    True
    """
    if not calls_in_graph(model, registry):
        return model
    # ruff: ignore[import-outside-top-level]  few models have such calls
    from sabir.differentiation import expand_in_graph

    return expand_in_graph(model, registry, limits)


class Runner:
    """The interpreter: a snapshot of a model, bound to numpy; later edits of the model do not reach it.

    There is one plan for each list of requested outputs, over the same constants. With `strict` a value that
    contradicts its declared type or shape raises EvaluationError; else it is a SabirWarning, once for each
    place.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> Runner(model).run({'x': np.float32([-1, 2])})['y']
    array([0., 2.], dtype=float32)
    """

    def __init__(
        self,
        model: Model,
        registry: Registry = STANDARD,
        limits: Limits | None = None,
        *,
        strict: bool = False,
        newer_opsets: bool = False,
    ) -> None:
        """Bind a model; its binding and its runs keep to `limits`.

        With `newer_opsets` an operator set newer than the registry knows counts as the newest known one.
        Raises SchemaError for a node that calls an unknown operator or has an invalid call, UnsupportedError,
        LimitError.
        """
        self._limits = limits
        model = expanded(model, registry, limits)
        with without_collector():  # everything that binding creates stays alive
            scheduled = run_with_limits(limits, schedule, model, registry, newer_opsets=newer_opsets)
            program, binder = scheduled.program, CallBinder(strict=strict)
            self._program = run_with_limits(limits, BoundProgram, program, binder)
            self._front = Front(scheduled, self._program.arrays, strict=strict)
            self._slots = {v.name: v.slot for v in reversed(program.values)} | self._front.output_slots
            self._declared = _declarations(program) if strict else None
            self._plans: dict[tuple[str, ...], BoundPlan] = {}
            self._spare: list[SpareMemory] = []
            self._plan(tuple(self._front.output_slots))
            self._front.numbers = binder.numbers  # those of the outputs: other plans do not raise the limits

    @property
    def numbers(self) -> int:
        """How many numbers the constants have, with those of functions and subgraphs: limits grow with it."""
        return self._front.numbers

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs of the model."""
        return self._front.inputs

    @property
    def outputs(self) -> tuple[ModelPort, ...]:
        """The outputs of the model."""
        return self._front.outputs

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default); any value of the main graph may be named.

        The arrays are the caller's own: none shares memory with a feed, a constant or another result. Raises
        FeedError for feeds or names that do not match, EvaluationError where a node fails, LimitError.
        """
        names = tuple(self._front.output_slots) if outputs is None else tuple(outputs)
        plan = self._plan(names)
        return run_with_limits(self._limits, self._results, plan, feeds, names)

    def release(self) -> None:
        """Give back the memory that runs have left for the next ones."""
        self._spare.clear()

    def _results(self, plan: BoundPlan, feeds: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        run, inputs = self._front.start(feeds)
        spare = self._take_spare_memory()
        with np.errstate(all="ignore"), spare.in_use():  # infinities and NaNs are ordinary values
            results = plan.run(inputs, (), run, self._declared)
        finished = self._front.finish(names, results, inputs, run)
        self._spare.append(spare)
        return finished

    def _take_spare_memory(self) -> SpareMemory:
        """Return the memory that an earlier run has left, for one run alone."""
        try:
            return self._spare.pop()
        except IndexError:  # other threads have taken it, or no run has ended
            return SpareMemory()

    def _plan(self, names: tuple[str, ...]) -> BoundPlan:
        plan = self._plans.get(names)
        if plan is None:
            plan = self._plans[names] = self._program.plan([self._slot(name) for name in names])
        return plan

    def _slot(self, name: str) -> int:
        slot = self._slots.get(name)
        if slot is None:
            listed = ", ".join(map(repr, self._front.output_slots))
            hint = suggest(name, self._slots) or f"; the outputs are {listed}"
            raise FeedError(f"the model has no value {name!r}{hint}")
        return slot


def warn(message: str) -> None:
    """Issue a SabirWarning at the line outside Sabir that called it.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter('always')
    ...     warn('the file is odd')
    >>> print(caught[0].message)
    the file is odd
    """
    depth, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("sabir."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, SabirWarning, stacklevel=depth)


def _output_slots(outputs: Sequence[ValueInfo]) -> dict[str, int]:
    """Return the slots of the outputs by name; raises SchemaError where two values have one name."""
    found: dict[str, int] = {}
    for value in outputs:
        if value.slot and found.setdefault(value.name, value.slot) != value.slot:
            raise SchemaError(f"two outputs are named {quote(value.name)}; a run returns its results by name")
    return found


def _declarations(program: Program) -> dict[int, tuple[str, Declaration]]:
    """Return what a strict run compares, by slot."""
    outputs = {v.slot for v in program.outputs}
    found: dict[int, tuple[str, Declaration]] = {}
    for value in program.values:
        declared = declaration(value.type)
        if declared is not None:
            found[value.slot] = (
                f"{'output' if value.slot in outputs else 'value'} {quote(value.name)}",
                declared,
            )
    return found
