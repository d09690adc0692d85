"""Running a model: feeds in, outputs out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import FeedError, Limits, UnsupportedError, budget, run_within, suggest
from sabir.evaluate._feeds import Ports, check_feeds, input_ports
from sabir.evaluate._plan import Plan
from sabir.evaluate._sizes import numbers_of
from sabir.opsets import STANDARD
from sabir.schema import Registry, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Model, Value


class Runner:
    """A model bound and ready; plans are made once for each set of wanted outputs."""

    def __init__(self, model: Model, registry: Registry = STANDARD, limits: Limits | None = None) -> None:
        """Bind a model, and hold it and its runs to `limits`.

        Raises SchemaError for a node that calls nothing known, or calls it wrongly, LimitError.
        """
        self.model, self.limits = model, limits
        self._scope = Scope.of(model, registry)
        self.outputs = tuple(v for v in model.graph.outputs if v is not None)
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._plan(tuple(v.name for v in self.outputs))

    @property
    def input_ports(self) -> tuple[Ports, ...]:
        """What the model takes."""
        return input_ports(self.model.graph)

    @property
    def output_ports(self) -> tuple[Ports, ...]:
        """What the model gives."""
        return tuple(Ports(v.name, v.type) for v in self.outputs)

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default); any value of the main graph may be named.

        Raises FeedError for feeds or names that do not fit, EvaluationError where a node fails, LimitError
        where the run would cost more than it may.
        """
        names = tuple(v.name for v in self.outputs) if outputs is None else tuple(outputs)
        plan = self._plan(names)
        inputs = check_feeds(self.model.graph, feeds)
        return dict(zip(names, run_within(self.limits, _run, plan, inputs), strict=True))

    def _plan(self, names: tuple[str, ...]) -> Plan:
        if names not in self._plans:
            wanted = [self._named(n) for n in names]
            self._plans[names] = run_within(self.limits, self._planned, wanted)
        return self._plans[names]

    def _planned(self, wanted: Sequence[Value]) -> Plan:
        try:
            return Plan(self.model.graph, self._scope, wanted)
        except RecursionError as error:
            told = "its graphs and functions are nested too deep for Python's stack; inline it first"
            raise UnsupportedError(told) from error

    def _named(self, name: str) -> Value:
        found = next((v for v in self.outputs if v.name == name), None)
        if found is not None:
            return found
        by_name = {v.name: v for v in self.model.graph.defined()}
        if name not in by_name:
            hint = (
                suggest(name, by_name) or f"; the outputs are {', '.join(repr(v.name) for v in self.outputs)}"
            )
            raise FeedError(f"the model has no value {name!r}{hint}")
        return by_name[name]


def _run(plan: Plan, inputs: Sequence[Any]) -> tuple[Any, ...]:
    budget().give(plan.given + sum(map(numbers_of, inputs)))
    with np.errstate(all="ignore"):  # infinities and NaNs are values like others
        return plan.run(inputs)


def evaluate(
    model: Model,
    feeds: Mapping[str, Any],
    outputs: Sequence[str] | None = None,
    *,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Return what a model computes from `feeds`, by output name.

    `feeds` maps input names to arrays (lists for sequences, dicts for maps, None for an empty optional);
    `limits` bounds what the run may spend, by default as `Limits()` does. Raises SchemaError, FeedError,
    LimitError or EvaluationError, each naming the node or input.
    """
    return run_within(limits, lambda: Runner(model).run(feeds, outputs))
