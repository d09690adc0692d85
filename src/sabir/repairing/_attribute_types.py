"""Repairs of attributes: a type that is not declared, and values beside the one of the declared type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.checking import RULES
from sabir.proto import AttributeProto
from sabir.repairing._attributes import EditableAttribute, editable_attributes
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task
from sabir.schema import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking import Rule, Survey
    from sabir.ir import AttributeType, Node, Residue

_LISTS = frozenset({"floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "types"})


@repair(
    "ATTR002",
    "The type is set to that of the value, or to that of the attribute to which this one refers. An attribute"
    " with two values is kept, as nothing says which is meant.",
)
@repair("ATTR003", "The values that are not of the declared type are dropped.")
def repair_attributes(task: Task) -> Iterator[Repair]:
    """Declare the types of attributes that have none, and drop values that are not of the declared type."""
    callees: dict[Node, Any] = {}
    one_value_rule = RULES.find("ATTR003")
    for editable in editable_attributes(task.survey):
        attribute, residue = editable.attribute, editable.attribute.residue
        untyped = attribute.type == "undefined" or (residue is not None and "type" in residue.repeated)
        if untyped and "ATTR002" in task.selected:
            callees = callees or _callees(task.survey)
            yield from _declare_type(editable, callees)
        elif residue is not None and residue.wire and one_value_rule and one_value_rule.id in task.selected:
            yield from _drop_other_values(editable, residue, one_value_rule)


def _callees(survey: Survey) -> dict[Node, Any]:
    return {s.nodes[i]: callee for s in survey.graphs for callee, indices in s.calls.items() for i in indices}


def _declare_type(editable: EditableAttribute, callees: dict[Node, Any]) -> Iterator[Repair]:
    attribute, residue = editable.attribute, editable.attribute.residue
    if attribute.type != "undefined":
        if residue is None or _other_values(residue):
            return  # several values, and nothing says which is meant
        rest = residue._replace(repeated=tuple(r for r in residue.repeated if r != "type"))
        changed = editable.change(residue=rest if any(rest) else None)
    else:
        type_ = _formal_type(editable, callees)
        if type_ is None or attribute.value is not None or not (attribute.ref or type_ in _LISTS):
            return
        changed = editable.change(type=type_, value=None if attribute.ref else ())
    yield Repair("ATTR002", f"set the type of the attribute to {changed.type}", editable.site.where)


def _formal_type(editable: EditableAttribute, callees: dict[Node, Any]) -> AttributeType | None:
    """Return the type that the called operator, or the function around the node, declares of an attribute."""
    callee = None if editable.node is None else callees.get(editable.node)
    if isinstance(callee, Version):
        return next((a.type for a in callee.attributes if a.name == editable.attribute.name), None)
    function = editable.site.function
    referred = None if function is None else function.attributes.get(editable.attribute.ref)
    return None if referred is None or referred.type == "undefined" else referred.type


def _other_values(residue: Residue) -> list[str]:
    """Return the fields of the values that an attribute has beside the one that is read."""
    return [f.name for f, _ in AttributeProto.FromString(residue.wire).ListFields()]


def _drop_other_values(
    editable: EditableAttribute, residue: Residue, one_value_rule: Rule
) -> Iterator[Repair]:
    if not list(one_value_rule.check(editable.site)):
        return
    fields = _other_values(residue)
    proto = AttributeProto.FromString(residue.wire)
    for field in fields:
        proto.ClearField(field)
    rest = residue._replace(wire=proto.SerializeToString())
    editable.change(residue=rest if any(rest) else None)
    listed = ", ".join(f"`{f}`" for f in fields)
    message = f"dropped {listed}, as the attribute has the type {editable.attribute.type}"
    yield Repair("ATTR003", message, editable.site.where)
