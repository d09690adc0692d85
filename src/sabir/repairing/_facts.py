"""What a model must state and does not: its IR version, the types of attributes and of subgraphs' outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import Location, quote
from sabir.checking import RULES
from sabir.inference import Inference
from sabir.ir import NEWEST_IR
from sabir.proto import AttributeProto
from sabir.repairing._declaring import repair
from sabir.repairing._dims import is_plain, with_dims
from sabir.repairing._imports import keep_implicit_import
from sabir.repairing._repair import AttributePlace, Repair, Task, attributes_of
from sabir.schema import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking import GraphSite, Rule, Survey
    from sabir.ir import AttributeType, Graph, Model, Node, Residue, Type, Value

_RAISED = "`ir_version` is raised; a reader that knows only earlier versions then refuses the model."
# what tells that a model uses something newer than its IR version
_OF_VERSIONS = ("MODEL007", "MODEL008", "MODEL011", "TYPE007", "GRAPH012")
_FIRST_IR_OF_IMPORTS = 3  # a model of an earlier one would mean the first operator set
_LISTS = frozenset({"floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "types"})


@repair("MODEL001", "`ir_version` is set to the lowest that has all that the model uses.")
@repair("GRAPH012", _RAISED, safe=False)
@repair("MODEL007", _RAISED, safe=False)
@repair("MODEL008", _RAISED, safe=False)
@repair("MODEL011", _RAISED, safe=False)
@repair("TYPE007", _RAISED, safe=False)
def state_ir_version(task: Task) -> Iterator[Repair]:
    """Set a missing IR version to the lowest that has all that the model uses; raise one where asked."""
    model, stated = task.survey.model, task.survey.model.ir_version
    if not 0 <= stated <= NEWEST_IR or (not stated and "MODEL001" not in task.wanted):
        return
    rules = [r for r in RULES if r.id in _OF_VERSIONS and (not stated or r.id in task.unsafe)]
    broken = [] if not stated else [r.id for r in rules if _breaks(task.survey, r)]
    if stated and not broken:
        return
    for version in range(stated or _FIRST_IR_OF_IMPORTS, NEWEST_IR + 1):
        model.ir_version = version
        if not any(_breaks(task.survey, rule) for rule in rules):
            model.ir_version = stated
            message = (
                f"raised ir_version from {stated} to {version}" if stated else f"set ir_version to {version}"
            )
            message += keep_implicit_import(model, version)
            model.ir_version = version
            yield from (Repair(rule, message, Location()) for rule in broken or ["MODEL001"])
            return
    model.ir_version = stated


def _breaks(survey: Survey, rule: Rule) -> bool:
    if not rule.holds_for(survey.model.ir_version):
        return False
    subjects = [survey] if rule.over == "model" else survey.graphs
    return any(True for subject in subjects for _ in rule.check(subject))


@repair(
    "ATTR002",
    "The type is set to that of the value, or of the attribute that is referred to; not where"
    " there are two values, as nothing says which of them counts.",
)
@repair("ATTR003", "The values that are not of the type which the attribute states are dropped.")
def state_attribute_types(task: Task) -> Iterator[Repair]:
    """Write down the types of attributes that state none, and drop values beside the one of the type."""
    callees: dict[Node, Any] = {}
    beside = RULES.find("ATTR003")
    for held in attributes_of(task.survey):
        attribute, residue = held.attribute, held.attribute.residue
        unsaid = attribute.type == "undefined" or (residue is not None and "type" in residue.repeated)
        if unsaid and "ATTR002" in task.wanted:
            callees = callees or _callees(task.survey)
            yield from _typed(held, callees)
        elif residue is not None and residue.wire and beside is not None and beside.id in task.wanted:
            yield from _one_value(held, residue, beside)


def _callees(survey: Survey) -> dict[Node, Any]:
    return {s.nodes[i]: callee for s in survey.graphs for callee, called in s.calls.items() for i in called}


def _typed(held: AttributePlace, callees: dict[Node, Any]) -> Iterator[Repair]:
    attribute, residue = held.attribute, held.attribute.residue
    if attribute.type != "undefined":
        if residue is None or _values_beside(residue):
            return  # more than one value, and nothing says which counts
        rest = residue._replace(repeated=tuple(r for r in residue.repeated if r != "type"))
        made = held.put(residue=rest if any(rest) else None)
    else:
        kind = _declared_type(held, callees)
        if kind is None or attribute.value is not None or not (attribute.ref or kind in _LISTS):
            return
        made = held.put(type=kind, value=None if attribute.ref else ())
    yield Repair("ATTR002", f"set the type of the attribute to {made.type}", held.site.where)


def _declared_type(held: AttributePlace, callees: dict[Node, Any]) -> AttributeType | None:
    """Return the type that the operator or function declares of an attribute."""
    callee = None if held.node is None else callees.get(held.node)
    if isinstance(callee, Version):
        return next((a.type for a in callee.attributes if a.name == held.attribute.name), None)
    function = held.site.function
    declared = None if function is None else function.attributes.get(held.attribute.ref)
    return None if declared is None or declared.type == "undefined" else declared.type


def _values_beside(residue: Residue) -> list[str]:
    """Return the fields of values that an attribute has beside the one that counts."""
    return [f.name for f, _ in AttributeProto.FromString(residue.wire).ListFields()]


def _one_value(held: AttributePlace, residue: Residue, beside: Rule) -> Iterator[Repair]:
    if not list(beside.check(held.site)):
        return
    fields = _values_beside(residue)
    left = AttributeProto.FromString(residue.wire)
    for field in fields:
        left.ClearField(field)
    rest = residue._replace(wire=left.SerializeToString())
    held.put(residue=rest if any(rest) else None)
    message = (
        f"dropped {', '.join(f'`{f}`' for f in fields)}, as the attribute has the type {held.attribute.type}"
    )
    yield Repair("ATTR003", message, held.site.where)


@repair("GRAPH015", "The type that inference finds is declared, where it finds one.")
def declare_inner_outputs(task: Task) -> Iterator[Repair]:
    """Give outputs of subgraphs that have no type the one that follows."""
    if "GRAPH015" not in task.wanted:
        return
    untyped = {v: (s, i) for s in task.survey.graphs if s.kind == "subgraph" for i, v in _untyped(s)}
    if not untyped:
        return
    found = _inferred(task.survey)
    for value, (site, index) in untyped.items():
        kind = found.get(value)
        if kind is not None:
            # names that inference made up are no names of the model's
            value.type = with_dims(kind, lambda d: d if is_plain(d) else None)
            where = site.where.at("output", index=index, name=value.name)
            yield Repair("GRAPH015", f"declared the output {quote(value.name)} as {value.type}", where)


def _untyped(site: GraphSite) -> Iterator[tuple[int, Value]]:
    for index, value in enumerate(site.graph.outputs):
        if value is not None and value.type is None and value.home is site.graph:
            yield index, value


def _inferred(survey: Survey) -> dict[Value, Type]:
    """Return the types that inference finds, and leave those in the model as they are."""
    values = [v for g in _graphs(survey.model) for v in g.defined()]
    declared = [v.type for v in values]
    inference = Inference(survey.model, registry=survey.registry)
    inference.run()
    inference.annotate()
    found = {v: v.type for v in values if v.type is not None}
    for value, kind in zip(values, declared, strict=True):
        value.type = kind
    return found


def _graphs(model: Model) -> Iterator[Graph]:
    for root in model.graphs():
        yield from root.scopes()
