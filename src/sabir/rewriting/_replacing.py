"""The outputs of a node handed over to other nodes, and what must be let go when a node is erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.ir import Graph, Node, Value
from sabir.rewriting._point import graph_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def replace_outputs(
    node: Node,
    results: Sequence[Value | None],
    new: Collection[Node] = (),
    constants: Collection[Value] = (),
) -> None:
    """Let `results` take the place of a node's outputs, and erase the node.

    `new` are the nodes that were built for this. If one of them computes a result, the output value stays,
    with its name, type, documentation and metadata, and becomes the output of that node. `constants` are the
    initializers that were added for this; if one is a result, the output value becomes it. A value that was
    there before keeps its own identity, and so does a result that is listed twice: the readers of the output
    then read the result, and if the output is one of the graph or is annotated, it becomes a copy
    (`Identity`). Raises SchemaError, before any change, if there is no result for an output.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> graph = model.graph
    >>> new = graph.append(sabir.ir.Node('Abs', graph.inputs))
    >>> replace_outputs(graph[0], new.outputs, [new])
    >>> print(graph.outputs[0].name, graph.outputs[0].node.op)
    y Abs
    """
    check_replacement(node, results)
    outputs = node.outputs
    results = (*results, *[None] * (len(outputs) - len(results)))
    replace_outputs_of([node], [results[: len(outputs)]], new, constants)


def replace_outputs_of(
    nodes: Sequence[Node],
    results: Sequence[Sequence[Value | None]],
    new: Collection[Node] = (),
    constants: Collection[Value] = (),
) -> None:
    """Let results take the place of the outputs of several nodes of a graph, as `replace_outputs` does."""
    graph, makers, became = graph_of(nodes[0]), set(new), dict[Value, Value]()
    pairs: list[tuple[Node, Value, Value]] = []
    for node, found in zip(nodes, results, strict=True):
        listed = zip(node.outputs, found, strict=True)
        pairs += [(node, old, result) for old, result in listed if old is not None and result is not None]
        node.outputs = ()  # a value has one source at a time
    for node, output, result in pairs:
        source = result.node
        if source is not None and source in makers and result not in became:
            became[result] = output
            source.replace_output(result, output)
            continue
        if result in constants and result not in became and not _must_stay(output, graph):
            became[result] = output
            _take_data(result, output)
            continue
        _read_instead(output, became.get(result, result), node)
    for node in nodes:
        erase_node(node)


def _read_instead(output: Value, result: Value, node: Node) -> None:
    """Let the readers of an output of a node read another value; what must stay becomes a copy of it."""
    graph = graph_of(node)
    if _must_stay(output, graph):
        here = result.node is not None and result.node.graph is graph
        graph.insert(Node("Identity", [result], [output]), after=result.node if here else node)
        return
    _move_layouts(output, result)
    output.replace_with(result)


def _take_data(constant: Value, value: Value) -> None:
    """Make a value the initializer that another value was."""
    graph, data = constant.home, constant.constant
    if graph is not None and data is not None:
        constant.replace_with(value)
        graph.set_initializer(constant, None)
        graph.set_initializer(value, data)


def check_replacement(node: Node, results: Sequence[object]) -> None:
    """Raise SchemaError where there is no result for an output of a node."""
    for slot, output in enumerate(node.outputs):
        if output is not None and not (slot < len(results) and isinstance(results[slot], Value)):
            raise SchemaError(f"the replacement of {node!r} computes nothing for its output number {slot}")


def _must_stay(output: Value, graph: Graph) -> bool:
    """Return whether something other than a node refers to a value."""
    if output.is_output or not graph.annotations:
        return output.is_output
    return any(output is v for a in graph.annotations for v in (a.value, *(v for _, v in a.parameters)))


def _move_layouts(old: Value, new: Value) -> None:
    """Let the device layouts of a value's readers refer to the value that they will read instead."""
    for user in {use.user for use in old.uses}:
        if isinstance(user, Node) and user.devices:
            user.devices = tuple(
                device._replace(
                    shardings=tuple(s._replace(value=new) if s.value is old else s for s in device.shardings)
                )
                for device in user.devices
            )


def erase_node(node: Node) -> None:
    """Erase a node whose outputs nothing reads, and let go of what its subgraphs capture.

    A subgraph that has become that of another node is left alone.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { n = Neg (x)  y = Relu (x) }''')
    >>> erase_node(model.graph[0])
    >>> len(model.graph)
    1
    """
    graph = graph_of(node)
    graph.erase(node)
    for inner in node.graphs:
        if inner.parent is node:
            release(inner)


def release(graph: Graph) -> None:
    """Let go of all values that a graph, which is no longer in use, and those inside it read.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> release(model.graph)
    >>> model.graph.inputs[0].uses
    ()
    """
    for inner in graph.scopes():
        del inner.outputs[:]
        for node in inner:
            del node.inputs[:]
