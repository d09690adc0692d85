"""Running a model: feeds in, outputs out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import (
    FeedError,
    Limits,
    SpareMemory,
    quote,
    run_with_limits,
    suggest,
    without_collector,
)
from sabir.evaluation._binding import BoundProgram, CallBinder
from sabir.evaluation._declared import declaration
from sabir.evaluation._front import Front
from sabir.opsets import STANDARD
from sabir.opsets.families.windows.blocked_channels import calls_blocks
from sabir.scheduling import as_meant, calls_in_graph, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.evaluation._calls import BoundCall, SlotValues
    from sabir.evaluation._declared import Declaration
    from sabir.evaluation._feeds import ModelPort
    from sabir.evaluation._plans import BoundPlan
    from sabir.ir import Model
    from sabir.scheduling import Program
    from sabir.schema import Registry


def expanded(model: Model, registry: Registry, limits: Limits | None) -> Model:
    """Return the model that is scheduled for a model: calls whose meaning depends on others are replaced.

    These are calls that read the graph around them, and those on blocks of channels.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> expanded(model, STANDARD, None) is model
    True
    """
    if calls_in_graph(model, registry):
        # ruff: ignore[import-outside-top-level]  few models have such calls
        from sabir.differentiation import expand_in_graph

        model = expand_in_graph(model, registry, limits)
    if calls_blocks(model):
        # ruff: ignore[import-outside-top-level]  as above
        from sabir.evaluation._unblocked import without_blocks

        model = without_blocks(model, registry, limits)
    return model


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
        deviations: tuple[str, ...] = ()
        if not strict:
            model, deviations = run_with_limits(limits, as_meant, model, registry)
        with without_collector():  # everything that binding creates stays alive
            scheduled = run_with_limits(limits, schedule, model, registry, newer_opsets=newer_opsets)
            program, binder = scheduled.program, CallBinder(strict=strict)
            self._program = run_with_limits(limits, BoundProgram, program, binder)
            self._front = Front.of(scheduled, self._program.arrays, strict=strict, deviations=deviations)
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

    def run_observed(
        self, feeds: Mapping[str, Any], observe: Callable[[str, Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Return what `run` returns for all outputs, and show each value of the main graph on the way.

        `observe` is called with the constants and inputs by name, then after each call with the label of its
        node and those of its results that something reads. It must not change or keep the arrays. Raises as
        `run`, and what `observe` raises, which ends the run.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> _ = Runner(model).run_observed({'x': [1.0]}, lambda label, values: print(label, values))
         {'x': array([1.], dtype=float32)}
        Relu with output 'y' {'y': array([1.], dtype=float32)}
        """
        names = tuple(self._front.output_slots)
        plan = self._plan(names)
        return run_with_limits(self._limits, self._results, plan, feeds, names, observe)

    def release(self) -> None:
        """Give back the memory that runs have left for the next ones."""
        self._spare.clear()

    def _results(
        self,
        plan: BoundPlan,
        feeds: Mapping[str, Any],
        names: tuple[str, ...],
        observe: Callable[[str, Mapping[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        run, inputs = self._front.start(feeds)
        spare = self._take_spare_memory()
        watch = None if observe is None else self._watch(inputs, observe)
        with np.errstate(all="ignore"), spare.in_use():  # infinities and NaNs are ordinary values
            results = plan.run(inputs, (), run, self._declared, watch)
        finished = self._front.finish(names, results, inputs, run)
        self._spare.append(spare)
        return finished

    def _watch(
        self, inputs: Sequence[Any], observe: Callable[[str, Mapping[str, Any]], None]
    ) -> Callable[[BoundCall, SlotValues], None]:
        """Show the constants and inputs of a run, and return what shows the results of its calls."""
        given = zip((port.name for port in self._front.inputs), inputs, strict=True)
        names = {slot: name for name, slot in self._slots.items()}
        constants = {names[slot]: array for slot, array in self._program.arrays.items() if slot in names}
        observe("", constants | {name: value for name, value in given if value is not None})

        def watch(call: BoundCall, slots: SlotValues) -> None:
            results = (slot for slot in call.outputs if slot in names and slot not in call.dead)
            observe(call.label, {names[slot]: slots[slot] for slot in results})

        return watch

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
