"""Subgraphs as operators call them: functions of their inputs, with the captured values bound."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import EvaluationError, quote, spend_iteration
from sabir.evaluation._declared import DeclaredValue, compare, declaration
from sabir.ir import TensorType
from sabir.opsets.families.iteration.iterations import type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.evaluation._calls import SlotValues
    from sabir.evaluation._plans import BoundPlan
    from sabir.evaluation._run import Run
    from sabir.ir import Type
    from sabir.scheduling import ScheduledSubgraph, ValueInfo
    from sabir.schema import Binding, Call

_ARRAY: Any = np.ndarray  # untyped: a cast would take time in every run


class BoundSubgraph:
    """A subgraph whose calls are bound, for all runs.

    It keeps only what a run needs of the scheduled subgraph: the plan has the constants.
    """

    def __init__(self, subgraph: ScheduledSubgraph, plan: BoundPlan, *, strict: bool) -> None:
        program = subgraph.program
        self.plan, self.name, self.types = plan, program.name, subgraph.types
        self.captured, self.input_counts = subgraph.captured, subgraph.input_counts
        self.input_types = tuple(v.type for v in program.inputs)
        self.output_types = tuple(v.type for v in program.outputs)
        self.inputs = _declared_values(program.name, "input", program.inputs, strict=strict)
        self.outputs = _declared_values(program.name, "output", program.outputs, strict=strict)
        declared = [v.declared for v in (*self.inputs, *self.outputs) if v.declared is not None]
        self.declares = bool(declared)
        self.has_variables = any(d.has_variables for d in declared)

    def in_run(self, run: Run, slots: SlotValues) -> SubgraphFunction:
        """Return the subgraph as a function of its inputs."""
        return SubgraphFunction(self, run, [slots[slot] for slot in self.captured])


class SubgraphFunction:
    """A subgraph as a function of its inputs, in one run."""

    __slots__ = ("_bound", "_captured", "_input_kinds", "_output_kinds", "_run")

    def __init__(self, bound: BoundSubgraph, run: Run, captured: list[Any]) -> None:
        self._bound, self._run, self._captured = bound, run, captured
        self._input_kinds: list[Any] = []  # those of the last call
        self._output_kinds: list[Any] = []

    @property
    def inputs(self) -> tuple[Type | None, ...]:
        """The declared types of its inputs."""
        return self._bound.input_types

    @property
    def outputs(self) -> tuple[Type | None, ...]:
        """The declared types of its outputs."""
        return self._bound.output_types

    def typed(self, *inputs: Type | None) -> tuple[Type | None, ...]:
        """Return the types of its outputs for such inputs, declared or inferred; it does not run.

        Those of a subgraph without inputs are the declared ones.
        """
        types = self._bound.types
        return self.outputs if types is None else types.infer(inputs, tuple(map(type_of, self._captured)))

    def repeat(self, inputs: Sequence[Any], limit: int | None, *, conditional: bool) -> Any:
        """Run the subgraph again and again where an engine does so by itself, else return None.

        The declared types are compared once: those of the results are the same in each iteration.
        """
        bound, run = self._bound, self._run
        repeat = getattr(bound.plan, "repeat", None)
        if repeat is None or len(inputs) not in bound.input_counts:
            return None
        found = repeat(inputs, self._captured, run, limit=limit, conditional=conditional)
        if found is not None and bound.declares:
            inner = run.inside_subgraph()
            compare(bound.inputs, inputs, inner)
            items = (stack[:1].reshape(stack.shape[1:]) for stack in found.stacks)
            compare(bound.outputs, (*found.state, *items), inner)
        return found

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the subgraph, and compare its inputs and outputs with their declared types."""
        bound, run = self._bound, self._run
        spend_iteration(bound.plan.cost)
        if len(inputs) not in bound.input_counts:
            raise EvaluationError(
                f"the subgraph {quote(bound.name)} takes {len(bound.inputs)} inputs, and gets {len(inputs)}"
            )
        if not bound.declares:
            return bound.plan.run(inputs, self._captured, run)
        if bound.has_variables:
            inner = run.inside_subgraph()
            compare(bound.inputs, inputs, inner)
            results = bound.plan.run(inputs, self._captured, inner)
            compare(bound.outputs, results, inner)
            return results
        _compare_changed(self._input_kinds, bound.inputs, inputs, run)
        results = bound.plan.run(inputs, self._captured, run)
        _compare_changed(self._output_kinds, bound.outputs, results, run)
        return results


def _compare_changed(
    last_kinds: list[Any], declared: Iterable[DeclaredValue], values: Sequence[Any], run: Run
) -> None:
    """Compare values with declared types that have no variables, unless those of the last call were alike.

    `last_kinds` has the element types and shapes of that call; it is empty where one was no tensor.
    """
    kinds = [(x.dtype, x.shape) if type(x) is _ARRAY else None for x in values]
    if kinds and kinds == last_kinds:
        return
    compare(declared, values, run)
    last_kinds[:] = () if None in kinds else kinds


def call_function(plan: BoundPlan, captures: tuple[int, ...]) -> Callable[..., Any]:
    """Return the plan of a function's body as what a nested call applies.

    `captures` are the slots of what the graphs among its attributes read.
    """

    def function(run: Run, slots: SlotValues, *inputs: Any) -> Any:
        return plan.run(inputs, [slots[slot] for slot in captures], run.inside_function())

    return function


def call_with_subgraphs(binding: Binding, arguments: Mapping[str, Any], call: Call) -> Callable[..., Any]:
    """Return a behaviour as a function of the run, the slots and its inputs, which its subgraphs see too."""

    def function(run: Run, slots: SlotValues, *inputs: Any) -> Any:
        return binding(inputs, {name: _in_run(a, run, slots) for name, a in arguments.items()}, call)

    return function


def _in_run(argument: Any, run: Run, slots: SlotValues) -> Any:
    if isinstance(argument, BoundSubgraph):
        return argument.in_run(run, slots)
    if type(argument) is tuple:  # a list of subgraphs, or of plain values
        return tuple(_in_run(a, run, slots) for a in cast("tuple[Any, ...]", argument))
    return argument


def _declared_values(
    graph: str, kind: str, values: Iterable[ValueInfo], *, strict: bool
) -> tuple[DeclaredValue, ...]:
    """Return the inputs or outputs of a subgraph.

    A sequence that grows in a loop is compared item by item in a strict run alone: it takes quadratic time.
    """

    def declared_value(index: int, value: ValueInfo) -> DeclaredValue:
        where = f"{kind} {quote(value.name or str(index))} of the subgraph {quote(graph)}"
        compared = strict or isinstance(value.type, TensorType)
        return DeclaredValue(where, declaration(value.type) if compared else None)

    return tuple(starmap(declared_value, enumerate(values)))
