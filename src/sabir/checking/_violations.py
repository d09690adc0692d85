"""The findings of all selected rules in one model, then those of type inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sabir.base import Finding, Location, TextError, legible, without_collector
from sabir.checking._messages import is_plain
from sabir.checking._operator_sets import SetSurvey, set_sites, with_sets
from sabir.checking._survey import AttributeSite, Survey
from sabir.checking._types import ATTRIBUTE_VALUE, INFERRED, in_function, type_findings
from sabir.ir import Model, OperatorSet
from sabir.serial import load_either

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.checking._engine import Source
    from sabir.checking._operator_sets import SetSource
    from sabir.checking._rule import Rule
    from sabir.ir import Graph, Node, Value
    from sabir.schema import Registry

ARITY, UTF8 = "NODE002", "TEXT001"
_UNTYPED = "GRAPH002"
_OF_SETS = frozenset({"operator set", "operator sets"})


def violations(
    model: Source, rules: list[Rule], registry: Registry, *, types: bool, verify: bool
) -> list[Finding]:
    """Return the findings of some rules, rule by rule; raises the errors of `load`."""
    if isinstance(model, (list, tuple)):
        return _set_findings(model, rules, registry, types=types, verify=verify)
    if not isinstance(model, (Model, OperatorSet)):
        try:
            model = load_either(cast("str | os.PathLike[str] | bytes", model))
        except TextError as error:
            finding = Finding(UTF8, str(error), Location(), "names and documentation must be UTF-8")
            return [finding] if any(r.id == UTF8 for r in rules) else []
    if isinstance(model, OperatorSet):
        return _set_findings(model, rules, registry, types=types, verify=verify)
    return _model_findings(model, rules, registry, types=types, verify=verify)


def _set_findings(
    source: OperatorSet | Sequence[SetSource],
    rules: list[Rule],
    registry: Registry,
    *,
    types: bool,
    verify: bool,
) -> list[Finding]:
    """Return the findings of some rules in operator sets: their own, then those of their functions."""
    sites = set_sites(source)
    subjects: dict[str, Sequence[object]] = {"operator set": sites, "operator sets": [SetSurvey(sites)]}
    found = [
        Finding(rule.id, legible(message), where, legible(hint), rule.severity)
        for rule in rules
        for subject in subjects.get(rule.over, ())
        for message, where, hint in rule.check(subject)
    ]
    known = with_sets(registry, [site.operator_set for site in sites])
    for site in sites:
        wanted = [r for r in rules if r.over not in _OF_SETS and r.id not in site.unsuitable]
        inside = _model_findings(site.model(), wanted, known, types=types, verify=verify)
        found += [
            f._replace(location=Location((*site.where.steps, *f.location.steps)))
            for f in inside
            if f.location.steps[:1] and f.location.steps[0].kind == "function"
        ]
    return found


def _model_findings(
    model: Model, rules: list[Rule], registry: Registry, *, types: bool, verify: bool
) -> list[Finding]:
    """Return the findings of some rules in a model, rule by rule."""
    with without_collector():  # tables of all nodes and values, which stay alive to the end
        survey = Survey(model, registry, verify)
        found = list(_violations(rules, survey))
        inferred = {r.id for r in rules if r.id in INFERRED and r.holds_for(model.ir_version)}
        if types and inferred:
            found += _type_violations(survey, inferred, found)
        return _without_consequences(found, model.graph)


def _type_violations(survey: Survey, inferred: set[str], found: list[Finding]) -> list[Finding]:
    """Return the findings of inference, without those of calls in which other rules found the mistake."""
    # a call with a wrong number of operands has no types
    miscalled = {f.location for f in found if f.rule == ARITY}
    reported = {in_function(f.location) for f in found if f.rule == ATTRIBUTE_VALUE}
    return [
        f
        for f in type_findings(survey)
        if f.rule in inferred
        and f.location not in miscalled
        and not (f.rule == ATTRIBUTE_VALUE and in_function(f.location) in reported)
    ]


def _violations(rules: Iterable[Rule], survey: Survey) -> Iterator[Finding]:
    defaults = (inner for default in survey.defaults for inner in default.with_subgraphs())
    subjects = {
        "model": [survey],
        "root": survey.roots,
        "graph": survey.graphs,
        # in the graphs of a function's defaults only the calls are checked, as no values are visible there
        "calls": [*survey.graphs, *defaults],
        "tensor": [site for site in survey.tensors if not is_plain(site.tensor)],
        "sparse": survey.sparse,
        "type": survey.types,
        "function": survey.functions,
        "training": survey.trainings,
    }
    for rule in rules:
        if rule.over in _OF_SETS or not rule.holds_for(survey.model.ir_version):
            continue
        checked = _violating_attributes(rule, survey) if rule.over == "attribute" else subjects[rule.over]
        for subject in checked:
            for message, where, hint in rule.check(subject):
                yield Finding(rule.id, legible(message), where, legible(hint), rule.severity)


def _violating_attributes(rule: Rule, survey: Survey) -> Iterator[AttributeSite]:
    """The attributes that violate a rule; of equal ones, the first is checked for all."""
    for sites in survey.attributes:
        if any(True for _ in rule.check(sites[0])):
            yield from sites


def _without_consequences(found: list[Finding], graph: Graph) -> list[Finding]:
    """Return the findings, without untyped outputs of the main graph that depend on a node with an error.

    Inference cannot type such an output until the node is repaired.
    """
    if not any(f.rule == _UNTYPED for f in found):
        return found
    nodes = tuple(graph)
    wrong = {nodes[place] for f in found if f.severity == "error" for place in _node_of(f.location)}
    if not wrong:
        return found
    return [f for f in found if f.rule != _UNTYPED or not _depends(_output_of(f.location, graph), wrong)]


def _node_of(where: Location) -> Iterable[int]:
    """Return the index of the node of the main graph that a location is in, if any."""
    steps = where.steps
    if len(steps) > 1 and steps[0].kind == "graph" and steps[1].kind == "node" and steps[1].place is not None:
        return (steps[1].place,)
    return ()


def _output_of(where: Location, graph: Graph) -> Value | None:
    step = where.steps[-1]
    return graph.outputs[step.place] if step.kind == "output" and step.place is not None else None


def _depends(value: Value | None, wrong: set[Node]) -> bool:
    """Whether a value depends, directly or not, on a result of one of these nodes."""
    pending: list[Value | None] = [value]
    seen: set[Node] = set()
    while pending:
        value = pending.pop()
        node = None if value is None else value.node
        if node in wrong:
            return True
        if node is not None and node not in seen:
            seen.add(node)
            pending += node.reads()
    return False
