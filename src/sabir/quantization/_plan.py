"""The plan of static int8: which nodes are quantized, and which values are rounded for which readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.elements import FLOAT, INT8
from sabir.ir import Node, canonical_domain, places
from sabir.quantization._report import NodeReport
from sabir.quantization._weights import Table, Weighted, Wide, only_use, weighted_nodes
from sabir.rewriting import constant_of

if TYPE_CHECKING:
    from sabir.base import Location
    from sabir.ir import Graph, Use, Value
    from sabir.quantization._editing import Edit
    from sabir.quantization._exclusion import Exclusion

_RECTIFIERS = frozenset({"Relu", "Clip"})  # which a kernel of integers applies to its result
_COMPUTING = frozenset({"Add", "AveragePool", "Concat", "GlobalAveragePool"})
_MOVING = frozenset({"Flatten", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})  # of input 0


@dataclass
class Plan:
    """What is quantized in the main graph, and tables everywhere.

    `values` are rounded. Those in `everywhere`, results of convolutions, are rounded for all nodes that read
    them; others only for the inputs in `slots` of quantized nodes. A value in `same_range` has the parameters
    of another one. `kept` and `others` are reports: of nodes that stay wide, and of quantized ones without
    weights.
    """

    graph: Graph
    weighted: list[Weighted] = field(default_factory=list[Weighted])
    tables: list[Table] = field(default_factory=list[Table])
    kept: dict[Node, NodeReport] = field(default_factory=dict[Node, NodeReport])
    others: dict[Node, NodeReport] = field(default_factory=dict[Node, NodeReport])
    values: dict[Value, None] = field(default_factory=dict["Value", None])
    everywhere: set[Value] = field(default_factory=set["Value"])
    slots: set[tuple[Node, int]] = field(default_factory=set[tuple[Node, int]])
    same_range: dict[Value, Value] = field(default_factory=dict["Value", "Value"])

    def readers(self, value: Value) -> list[tuple[Node, int]]:
        """Return the nodes and inputs that read the rounded value, in the order of the graph."""
        order = {node: index for index, node in enumerate(self.graph)}
        found = [
            (use.user, use.slot)
            for use in value.uses
            if isinstance(use.user, Node) and (value in self.everywhere or (use.user, use.slot) in self.slots)
        ]
        return sorted(found, key=lambda reader: order.get(reader[0], 0))


def planned(edit: Edit, excluded: Exclusion) -> Plan:
    """Return the plan for a model; raises NotFoundError for an excluded name that no node has."""
    plan = Plan(edit.model.graph)
    candidates = {found.node: found for found in weighted_nodes(edit.model, excluded)}
    where = {place.object: place.location for place in places(edit.model, Node)}
    for node in plan.graph.sorted_nodes():
        found = candidates.pop(node, None)
        if isinstance(found, Table):
            plan.tables.append(found)
        elif isinstance(found, Weighted):
            _add_weighted(plan, edit, found)
        elif found is not None:
            _add_unweighted(plan, edit, found)
        elif _may_follow(plan, node) and not excluded.reason(node, where[node]):
            _add_follower(plan, node, where[node])
    for node, found in candidates.items():
        if isinstance(found, Table):
            plan.tables.append(found)
            continue
        reason = (
            found.reason if isinstance(found, Wide) else "calibration does not see the values of subgraphs"
        )
        plan.kept[node] = Wide(node, found.location, reason).report()
    return plan


def _add_weighted(plan: Plan, edit: Edit, found: Weighted) -> None:
    node = found.node
    if found.data.element is not FLOAT or not _is_activation(edit, node.inputs[0]):
        plan.kept[node] = found.wide("its operands are not known to be a float32 activation and weights")
        return
    plan.weighted.append(found)
    _add_operand(plan, node, 0)
    if node.op == "Conv":
        _add_result(plan, node)


def _add_unweighted(plan: Plan, edit: Edit, found: Wide) -> None:
    """Plan a product of two activations."""
    node = found.node
    is_product = node.op == "MatMul" and all(_is_activation(edit, value) for value in node.inputs)
    if found.is_excluded or not is_product:
        plan.kept[node] = found.report()
        return
    plan.others[node] = NodeReport(str(found.location), node.name, node.op, INT8.name)
    for slot in range(len(node.inputs)):
        _add_operand(plan, node, slot)


def _may_follow(plan: Plan, node: Node) -> bool:
    """Return whether an operator reads results of convolutions alone, or of operators that follow them."""
    if canonical_domain(node.domain) or node.op not in _MOVING | _COMPUTING:
        return False
    operands = node.inputs[:1] if node.op in _MOVING else node.inputs
    return len(operands) > 0 and all(value in plan.everywhere for value in operands)


def _add_follower(plan: Plan, node: Node, location: Location) -> None:
    """Plan an operator that is computed on integers between convolutions."""
    result = _add_result(plan, node)
    source = node.inputs[0]
    if result is None or source is None:
        return
    plan.others[node] = NodeReport(str(location), node.name, node.op, INT8.name)
    if node.op in _MOVING and result is node.outputs[0]:
        plan.same_range[result] = plan.same_range.get(source, source)


def _add_operand(plan: Plan, node: Node, slot: int) -> None:
    value = node.inputs[slot]
    if value is not None:
        plan.values[value] = None
        plan.slots.add((node, slot))


def _add_result(plan: Plan, node: Node) -> Value | None:
    """Plan the rounding of what a node computes, after its rectifier; None where a graph returns it."""
    result, use = next(iter(node.outputs), None), only_use(node)
    if use is not None and _is_rectifier(use):
        result = next(iter(use.user.outputs), None)
    if result is None or not result.is_read or result.is_output:
        return None
    plan.values[result] = None
    plan.everywhere.add(result)
    return result


def _is_rectifier(use: Use) -> bool:
    node = use.user
    return (
        isinstance(node, Node)
        and not use.slot
        and node.op in _RECTIFIERS
        and not canonical_domain(node.domain)
    )


def _is_activation(edit: Edit, value: Value | None) -> bool:
    """Return whether a value is a float32 tensor that a run computes or a caller feeds."""
    if value is None or constant_of(value) is not None:
        return False
    kind = edit.tensor_type(value)
    return kind is not None and kind.element is FLOAT
