"""Types over a whole model: one inference over the main graph, then over those that train it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Finding, InferenceError, Location, quote
from sabir.check._items import UNEVEN, uneven_items
from sabir.infer import Inference, merge
from sabir.ir import SparseTensor, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.check._survey import Survey
    from sabir.ir import Graph, TrainingInfo, Type, Value

TYPES, CLAIMS, STATE, UNJUDGED, VALUES = "TYPE001", "TYPE009", "TRAIN007", "TYPE008", "ATTR009"
INFERRED = frozenset({TYPES, CLAIMS, UNEVEN, STATE, UNJUDGED, VALUES})


class _Whole(Inference):
    """An inference that goes on to the graphs of training, which see the values of the main graph."""

    def go_on(self, graph: Graph, where: Location) -> None:
        """Infer one more graph that stands by itself."""
        for value in graph.inputs:
            declared = self._declared(value)
            if declared is not None:
                self._set(value, declared)
        told = len(self.findings)
        self._constants(graph)
        outer = len(Location().at("graph").steps)
        for place, found in enumerate(self.findings[told:], told):
            steps = (*where.steps, *found.location.steps[outer:])
            self.findings[place] = found._replace(location=Location(steps))
        self._graph(graph, self._scope, where)


def type_findings(survey: Survey) -> Iterator[Finding]:
    """Yield what inference finds: contradictions, what it cannot judge, state that training would spoil.

    What nodes call is reported by rules, for every graph; a value that an attribute of a function has is
    known only where the function is called.
    """
    model = survey.model
    inference = _Whole(model, registry=survey.registry)
    inference.run()
    unfit = list[Finding]()
    for site in survey.trainings:
        training, where = site.training, site.where
        for graph, name in ((training.initialization, "initialization"), (training.algorithm, "algorithm")):
            if graph is not None:
                inference.go_on(graph, where.at(name))
        unfit += _unfit(training, where, inference.types)
    yield from (f for f in inference.findings if f.rule in INFERRED)
    yield from uneven_items(survey, inference.types)
    yield from unfit


def in_function(where: Location) -> tuple[object, ...]:
    """Return a place as it stands in its function, whoever calls it."""
    steps = where.steps
    inner = max((i for i, step in enumerate(steps) if step.kind == "function"), default=None)
    return steps if inner is None else (steps[inner].name, *steps[inner + 1 :])


def _unfit(training: TrainingInfo, where: Location, types: dict[Value, Type]) -> Iterator[Finding]:
    for field, pairs in (
        ("initialization_binding", training.initialization_binding),
        ("update_binding", training.update_binding),
    ):
        for index, (key, value) in enumerate(pairs):
            told = _misfit(key, types.get(value))
            if told:
                message = f"{quote(value.name)} cannot become {quote(key.name)}: {told}"
                at = where.at(field, index=index, name=key.name)
                yield Finding(STATE, message, at, "give it the element type and shape of the initializer")


def _misfit(key: Value, kind: Type | None) -> str:
    constant = key.constant
    if constant is None:  # TRAIN001 tells of it
        return ""
    element = constant.values.element if isinstance(constant, SparseTensor) else constant.element
    stated = key.type if key.is_input and key.type is not None else TensorType(element, constant.shape)
    return contradiction(stated, kind)


def contradiction(one: Type | None, other: Type | None) -> str:
    """Return how two types that are told of one value contradict each other, "" where they do not."""
    try:
        merge(one, other)
    except InferenceError as error:
        return str(error)
    return ""
