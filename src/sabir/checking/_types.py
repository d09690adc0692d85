"""Types over a whole model: one inference over the main graph, then over those that train it.

What an operator's room warns about is asked then, as it may depend on types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import ACCIDENTS, Finding, InferenceError, LimitError, Location, SabirError, legible, quote
from sabir.checking._items import UNEVEN, uneven_items
from sabir.inference import Inference, merge
from sabir.ir import UNDEFINED, SparseTensor, TensorType
from sabir.schema import Binding, Call, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import GraphSite, Survey
    from sabir.ir import Graph, Node, TrainingInfo, Type, Value

TYPES, CLAIMS, STATE, UNJUDGED = "TYPE001", "TYPE009", "TRAIN007", "TYPE008"
DOUBTS, VALUES = "NODE017", "ATTR009"
INFERRED = frozenset({TYPES, CLAIMS, UNEVEN, STATE, UNJUDGED, DOUBTS, VALUES})


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

    def inputs(self, node: Node) -> list[Type | None]:
        """Return the types of a node's inputs as they are known now; in a function, over all its calls."""
        return [None if v is None else self._known(v) for v in node.inputs]

    def _known(self, value: Value) -> Type:
        return self.types.get(value) or self._inside.get(value) or value.type or TensorType(UNDEFINED)


def type_findings(survey: Survey) -> Iterator[Finding]:
    """Yield what inference finds: contradictions, what it cannot judge, state that training would spoil.

    The warnings of the operators' rooms follow. What nodes call is reported by rules, for every graph; a
    value that an attribute of a function has is known only where the function is called.
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
    for site in survey.graphs:
        yield from _doubts(site, inference)


def _doubts(site: GraphSite, inference: _Whole) -> Iterator[Finding]:
    """Yield what the rooms of the operators that a graph calls warn about."""
    for callee, places in site.calls.items():
        if not isinstance(callee, Version):
            continue
        for check in callee.operator.checks:
            binding = Binding(callee.formal, check)
            for index in places:
                for told in _warnings(binding, callee.since, site.nodes[index], site, inference):
                    message = legible(f"{callee}: {told}")
                    yield Finding(DOUBTS, message, site.at_node(index), severity="warning")


def _warnings(binding: Binding, since: int, node: Node, site: GraphSite, inference: _Whole) -> list[str]:
    call = Call(tuple(v is not None for v in node.outputs), since)
    try:
        arguments = binding.arguments(site.scope.arguments(node.attributes))
        return list(binding(inference.inputs(node), arguments, call))
    except LimitError:
        raise
    except (SabirError, *ACCIDENTS):
        return []  # a call that is wrong: inference and other rules report it


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
