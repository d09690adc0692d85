"""Findings that need types: one inference over the main graph, then over the training graphs.

The warnings of operators come last, as they may depend on types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import ACCIDENTS, Finding, LimitError, SabirError, legible, quote
from sabir.checking._items import UNEVEN, uneven_items
from sabir.inference import Cause, Inference, contradiction
from sabir.ir import UNDEFINED, SparseTensor, TensorType
from sabir.schema import Binding, Call, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.checking._survey import GraphSite, Survey
    from sabir.inference import Diagnostic
    from sabir.ir import Node, TrainingInfo, Type, Value

STATE_UPDATE, OPERATOR_WARNING, ATTRIBUTE_VALUE = "TRAIN007", "NODE017", "ATTR009"
_RULES = {
    Cause.TYPE: "TYPE001",
    Cause.DECLARED_SIZE: "TYPE009",
    Cause.NOT_INFERRED: "TYPE008",
    Cause.ATTRIBUTE_VALUE: ATTRIBUTE_VALUE,
    Cause.UNDEFINED_VALUE: "GRAPH005",
    Cause.CYCLE: "GRAPH006",
    Cause.OPERATOR: "NODE001",
    Cause.DOMAIN: "NODE007",
    Cause.ARITY: "NODE002",
    Cause.ATTRIBUTE: "NODE003",
    Cause.OPSET: "MODEL006",
    Cause.DATA: "DATA",  # several rules, for every tensor
}
# other rules report the other causes, also in graphs that inference does not reach
_FOUND_BY_INFERENCE = frozenset({
    Cause.TYPE, Cause.DECLARED_SIZE, Cause.NOT_INFERRED, Cause.ATTRIBUTE_VALUE,
})  # fmt: skip
INFERRED = frozenset({
    UNEVEN,
    STATE_UPDATE,
    OPERATOR_WARNING,
    *(_RULES[cause] for cause in _FOUND_BY_INFERENCE),
})
_UNKNOWN = TensorType(UNDEFINED)


def finding_of(diagnostic: Diagnostic) -> Finding:
    """Return a diagnostic of inference as the finding of the rule that its cause belongs to.

    >>> from sabir.base import Location
    >>> from sabir.inference import Cause, Diagnostic
    >>> finding_of(Diagnostic(Cause.CYCLE, 'a cycle', Location())).rule
    'GRAPH006'
    """
    cause, message, where, hint = diagnostic
    return Finding(_RULES[cause], message, where, hint, diagnostic.severity)


def type_findings(survey: Survey) -> Iterator[Finding]:
    """Yield what inference finds: contradictions, nodes it cannot judge, updates that do not fit their state.

    The warnings of operators follow. Other rules report the problems of single nodes, in every graph; the
    value of a function's attribute is known only in a call of the function.
    """
    model = survey.model
    inference = Inference(model, registry=survey.registry)
    inference.run()
    invalid_updates = list[Finding]()
    for site in survey.trainings:
        training, where = site.training, site.where
        for graph, name in ((training.initialization, "initialization"), (training.algorithm, "algorithm")):
            if graph is not None:
                inference.infer_graph(graph, where.at(name))
        invalid_updates += _invalid_updates(training, where, inference.types)
    yield from (finding_of(d) for d in inference.diagnostics if d.cause in _FOUND_BY_INFERENCE)
    yield from uneven_items(survey, inference.types)
    yield from invalid_updates
    for site in survey.graphs:
        yield from _operator_warnings(site, inference)


def _operator_warnings(site: GraphSite, inference: Inference) -> Iterator[Finding]:
    """Yield the warnings of the operators that a graph calls."""
    for callee, places in site.calls.items():
        if not isinstance(callee, Version):
            continue
        for check in callee.operator.checks:
            binding = Binding(callee.formal, check)
            for index in places:
                for warning in _warnings(binding, callee.since, site.nodes[index], site, inference):
                    message = legible(f"{callee}: {warning}")
                    yield Finding(OPERATOR_WARNING, message, site.at_node(index), severity="warning")


def _warnings(binding: Binding, since: int, node: Node, site: GraphSite, inference: Inference) -> list[str]:
    call = Call(tuple(v is not None for v in node.outputs), since)
    types = zip(node.inputs, inference.types_of(node), strict=True)
    operands = [None if value is None else kind or _UNKNOWN for value, kind in types]
    try:
        arguments = binding.arguments(site.scope.arguments(node.attributes))
        return list(binding(operands, arguments, call))
    except LimitError:
        raise
    except (SabirError, *ACCIDENTS):
        return []  # an invalid call, which inference and other rules report


def in_function(where: Location) -> tuple[object, ...]:
    """Return the path from the function around a location, which is the same for every call."""
    steps = where.steps
    inner = max((i for i, step in enumerate(steps) if step.kind == "function"), default=None)
    return steps if inner is None else (steps[inner].name, *steps[inner + 1 :])


def _invalid_updates(training: TrainingInfo, where: Location, types: dict[Value, Type]) -> Iterator[Finding]:
    for field, pairs in (
        ("initialization_binding", training.initialization_binding),
        ("update_binding", training.update_binding),
    ):
        for index, (key, value) in enumerate(pairs):
            problem = _state_contradiction(key, types.get(value))
            if problem:
                message = f"{quote(value.name)} does not fit {quote(key.name)}: {problem}"
                at = where.at(field, index=index, name=key.name)
                yield Finding(
                    STATE_UPDATE, message, at, "compute it with the element type and shape of the initializer"
                )


def _state_contradiction(key: Value, kind: Type | None) -> str:
    constant = key.constant
    if constant is None:  # reported by TRAIN001
        return ""
    element = constant.values.element if isinstance(constant, SparseTensor) else constant.element
    declared = key.type if key.is_input and key.type is not None else TensorType(element, constant.shape)
    return contradiction(declared, kind)
