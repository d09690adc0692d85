"""Branches of a known condition, and loops of few known iterations, as the nodes inside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from sabir.base import check_time
from sabir.ir import Graph, Node, Tensor, Value, canonical_domain, clone_graph
from sabir.optimization._copies import is_copy
from sabir.rewriting import InsertionPoint, Rewriter, release, replace_outputs, splice

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sabir.ir import Model
    from sabir.schema import Registry

_MOST_ITERATIONS = 8
_MOST_NODES = 64  # of all iterations of a loop that is unrolled
_AXES_AS_OPERAND = 13  # the opset since which Unsqueeze has its axes as an operand
_LOOP_OPERANDS = 2  # the number of iterations and the condition, before what the loop carries


class Unnest(NamedTuple):
    """The pass that replaces an If by the branch that runs, and a short Loop by its iterations.

    The condition, or the number of iterations, is an initializer. A loop that may end before its last
    iteration stays, and so does one that computes a value of `kept`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) <bool c = {1}> { y = If (c) <then_branch = t () => (a) {
    ... a = Neg (x) }, else_branch = e () => (b) { b = Abs (x) }> }''')
    >>> Unnest(sabir.opsets.STANDARD).run(model), [node.op for node in model.graph]
    (True, ['Neg'])
    """

    registry: Registry
    kept: Collection[Value] = ()
    name: str = "unnest"

    def run(self, model: Model) -> bool:
        """Replace the nodes, those inside the new nodes too, and return whether there were any."""
        rewriter = Rewriter(model, registry=self.registry)
        pending, changed = [n for graph in model.graph.scopes() if graph.may_nest for n in graph], False
        while pending:
            check_time()
            node = pending.pop()
            if node.graph is None or not node.graphs or canonical_domain(node.domain):
                continue
            if any(v in self.kept for v in node.outputs):
                continue
            new = _branch(node, rewriter) if node.op == "If" else _iterations(node, rewriter)
            if new is None:
                continue
            changed = True
            pending += [n for each in new for n in (each, *(m for g in each.graphs for m in g.all_nodes()))]
        return changed


def _branch(node: Node, rewriter: Rewriter) -> list[Node] | None:
    """Put the branch of a known condition in the place of an If."""
    condition = _number(node.inputs[0] if node.inputs else None, "bool")
    if condition is None:
        return None
    attribute = node.attributes.get("then_branch" if condition else "else_branch")
    body = attribute.value if attribute is not None else None
    if not isinstance(body, Graph) or body.inputs or len(body.outputs) != len(node.outputs):
        return None
    del node.inputs[:]  # a branch has no inputs
    return splice(node, body, rewriter.names)


def _iterations(node: Node, rewriter: Rewriter) -> list[Node] | None:
    """Put the iterations of a Loop in its place, one after the other."""
    body = node.graphs[0]
    is_loop = node.op == "Loop" and len(node.inputs) >= _LOOP_OPERANDS
    count = _number(node.inputs[0], "integer") if is_loop else None
    if count is None or not 0 < count <= _MOST_ITERATIONS or count * len(body) > _MOST_NODES:
        return None
    if not _is_regular(node, body) or not _goes_on(node, body):
        return None
    carried = list(node.inputs[_LOOP_OPERANDS:])
    names = rewriter.names
    body, point = clone_graph(body), InsertionPoint.before(node)
    graph = point.graph
    yes = graph.add_initializer(names.fresh("condition"), np.asarray(1, np.bool_))
    calls: list[Node] = []
    values: Sequence[Value | None] = carried
    for index in range(count):
        number = graph.add_initializer(names.fresh("iteration"), np.asarray(index, np.int64))
        calls.append(point.insert(Node("Iteration", [number, yes, *values], len(body.outputs))))
        values = calls[-1].outputs[1 : 1 + len(carried)]
    stacks = [
        None if output is None else _stacked([call.outputs[slot] for call in calls], point, rewriter)
        for slot, output in enumerate(node.outputs[len(carried) :], 1 + len(carried))
    ]
    replace_outputs(
        node, [*values, *stacks], [*calls[-1:], *(v.node for v in stacks if v is not None and v.node)]
    )
    new = [each for call in calls for each in splice(call, body, names)]
    release(body)
    return new


def _is_regular(node: Node, body: Graph) -> bool:
    """Return whether a Loop and its body have the inputs and outputs that belong together."""
    carried = list(node.inputs[_LOOP_OPERANDS:])
    if None in carried or None in body.outputs or body.initializers.keys() & set(body.inputs):
        return False
    if len(body.inputs) != len(carried) + _LOOP_OPERANDS:
        return False
    return len(carried) <= len(node.outputs) == len(body.outputs) - 1


def _stacked(values: Sequence[Value | None], point: InsertionPoint, rewriter: Rewriter) -> Value:
    """Insert the nodes that stack what each iteration computes along a new first axis."""
    graph, names = point.graph, rewriter.names
    opset = rewriter.scope_of(graph).opset("") or 0
    rows: list[Value] = []
    for value in values:
        row = Value(names.fresh("row"))
        if opset < _AXES_AS_OPERAND:
            point.insert(Node("Unsqueeze", [value], [row], {"axes": [0]}))
        else:
            axes = graph.add_initializer(names.fresh("axes"), np.asarray([0], np.int64))
            point.insert(Node("Unsqueeze", [value, axes], [row]))
        rows.append(row)
    stack = Value(names.fresh("stack"))
    point.insert(Node("Concat", rows, [stack], {"axis": 0}))
    return stack


def _goes_on(node: Node, body: Graph) -> bool:
    """Return whether the condition of a Loop is true from its start to its end."""
    first = node.inputs[1]
    if first is not None and not _number(first, "bool"):
        return False
    after = body.outputs[0]
    while after is not None and after.node is not None and is_copy(after.node):
        after = after.node.inputs[0]
    return after is body.inputs[1] or bool(_number(after, "bool"))


def _number(value: Value | None, kind: Literal["bool", "integer"]) -> int | None:
    """Return the one element of an initializer, None where it is of another kind, and for any other value."""
    data = None if value is None or value.is_input else value.constant
    if not isinstance(data, Tensor) or data.size != 1 or data.element.kind != kind:
        return None
    return int(data.array().ravel()[0])
