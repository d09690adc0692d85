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
    UnsupportedError,
    budget,
    quote,
    run_within,
    suggest,
)
from sabir.evaluation._bodies import Port, compare
from sabir.evaluation._declared import Dimensions, declaration
from sabir.evaluation._feeds import FeedReader, ModelPort
from sabir.evaluation._plan import Plan
from sabir.evaluation._program import Binder, refuse_captures
from sabir.evaluation._results import owned
from sabir.evaluation._sizes import numbers_of
from sabir.evaluation._steps import Run
from sabir.opsets import STANDARD
from sabir.schema import Registry, Scope, check_expansion, implicit_imports

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from sabir.evaluation._declared import Declaration
    from sabir.evaluation._program import Program
    from sabir.ir import Graph, Model, Value
    from sabir.schema import ImplicitImport


class Runner:
    """A snapshot of a model, bound and ready: later edits of the model do not reach it.

    Plans are made once for each set of wanted outputs, over the same constants. With `strict` a value that
    contradicts its declared type or shape raises EvaluationError; else it is a SabirWarning, once a place.
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
        Raises SchemaError for a node that calls nothing known, or calls it wrongly, UnsupportedError,
        LimitError.
        """
        self._limits, self._strict = limits, strict
        self._reported: set[str] = set()
        graph = model.graph
        scope = Scope.of(model, registry, newer_opsets=newer_opsets)
        binder, self._program = run_within(limits, _bound, graph, scope, strict=strict)
        for note in (*map(_implicit_import, implicit_imports(model)), *binder.notes):
            warn(f"{note}; `sabir check --fix` mends the file")
        slots = binder.own_slots()
        self._feeds = FeedReader(graph, binder.arrays)
        self._outputs = _output_slots(graph.outputs, slots)
        self._slots = {v.name: slot for v, slot in reversed(slots.items())} | self._outputs
        self._ports = {
            v.name: Port(f"output {quote(v.name)}", v.type, declaration(v.type))
            for v in graph.outputs
            if v is not None
        }
        self._declared = _declarations(slots, set(graph.outputs)) if strict else None
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._plan(tuple(self._outputs))

    @property
    def input_ports(self) -> tuple[ModelPort, ...]:
        """The inputs of the model."""
        return self._feeds.ports

    @property
    def output_ports(self) -> tuple[ModelPort, ...]:
        """The outputs of the model."""
        return tuple(ModelPort(name, port.type) for name, port in self._ports.items())

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default); any value of the main graph may be named.

        The arrays are the caller's own: none shares memory with a feed, a constant or another result. Raises
        FeedError for feeds or names that do not fit, EvaluationError where a node fails, LimitError where the
        run would cost more than it may.
        """
        names = tuple(self._outputs) if outputs is None else tuple(outputs)
        plan = self._plan(names)
        return run_within(self._limits, self._results, plan, feeds, names)

    def _results(self, plan: Plan, feeds: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        run = Run(budget(), Dimensions(), self._mismatch, self._strict)
        inputs = self._feeds.read(feeds, run.dims, strict=self._strict)
        run.budget.raise_for(self._program.numbers + sum(map(numbers_of, inputs)))
        with np.errstate(all="ignore"):  # infinities and NaNs are values like others
            results = plan.run(inputs, (), run, self._declared)
        ports = [self._ports[name] for name in names if name in self._ports]
        compare(ports, [r for name, r in zip(names, results, strict=True) if name in self._ports], run)
        return dict(zip(names, owned(results, inputs), strict=True))

    def _mismatch(self, where: str, problem: str) -> None:
        if self._strict:
            raise EvaluationError(problem)
        if where not in self._reported:
            self._reported.add(where)
            warn(f"{problem}; a strict run makes this an error")

    def _plan(self, names: tuple[str, ...]) -> Plan:
        plan = self._plans.get(names)
        if plan is None:
            plan = self._plans[names] = Plan(self._program, [self._slot(name) for name in names])
        return plan

    def _slot(self, name: str) -> int:
        slot = self._slots.get(name)
        if slot is None:
            outputs = ", ".join(map(repr, self._outputs))
            hint = suggest(name, self._slots) or f"; the outputs are {outputs}"
            raise FeedError(f"the model has no value {name!r}{hint}")
        return slot


def _bound(graph: Graph, scope: Scope, *, strict: bool) -> tuple[Binder, Program]:
    check_expansion([graph], scope)
    binder = Binder(graph, scope, strict=strict)
    try:
        program = binder.bind()
    except RecursionError as error:
        raise UnsupportedError(
            "its graphs and functions are nested too deep for Python's stack; inline it first"
        ) from error
    refuse_captures(binder)
    return binder, program


def warn(message: str) -> None:
    """Issue a SabirWarning at the line outside Sabir that asked for the run."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("sabir."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, SabirWarning, stacklevel=depth)


def _implicit_import(found: ImplicitImport) -> str:
    where = "the model" if found.function is None else f"function {found.function}"
    return f"{where} uses {found.node.op} without importing ai.onnx; opset {found.version} is assumed"


def _output_slots(outputs: Sequence[Value | None], slots: Mapping[Value, int]) -> dict[str, int]:
    """Return the slots of the outputs by name; raises SchemaError where two values have one name."""
    found: dict[str, int] = {}
    for value in outputs:
        if value is not None and found.setdefault(value.name, slots[value]) != slots[value]:
            raise SchemaError(f"two outputs are named {quote(value.name)}; a run gives its results by name")
    return found


def _declarations(
    slots: Mapping[Value, int], outputs: Container[Value]
) -> dict[int, tuple[str, Declaration]]:
    found: dict[int, tuple[str, Declaration]] = {}
    for value, slot in slots.items():
        declared = declaration(value.type)
        if declared is not None:
            found[slot] = f"{'output' if value in outputs else 'value'} {quote(value.name)}", declared
    return found


def evaluate(
    model: Model,
    feeds: Mapping[str, Any],
    outputs: Sequence[str] | None = None,
    *,
    strict: bool = False,
    newer_opsets: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Return what a model computes from `feeds`, by output name.

    `feeds` maps input names to arrays (lists for sequences, dicts for maps, None for an empty optional).
    `strict` makes an error of what contradicts a declared type or shape, else a warning. With `newer_opsets`
    an operator set newer than any known one counts as the newest. `registry` has the operators, those of the
    standard by default. `limits` bounds what the run may spend, by default as `Limits()` does.

    Raises SchemaError, UnsupportedError, FeedError, LimitError or EvaluationError, each naming the node or
    input.
    """
    return run_within(
        limits, lambda: Runner(model, registry, strict=strict, newer_opsets=newer_opsets).run(feeds, outputs)
    )
