"""The main graph in inference mode, with running statistics that are those of one layer each.

Exporters write a model in training mode, if they are asked to keep its Dropout and BatchNormalization. And
they store equal tensors once: a new layer's scale and running variance are both ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Tensor, TensorType
from sabir.rewriting import Rewriter
from sabir.training._layers import STATISTICS, changes_in_training

if TYPE_CHECKING:
    from sabir.ir import Model, Node, Value
    from sabir.schema import Registry

_MODE = 2  # the place of `training_mode` among the inputs of a Dropout
_PARAMETERS = slice(1, 5)  # of the inputs of a BatchNormalization: what belongs to one layer


def to_inference(model: Model, registry: Registry) -> None:
    """Let Dropout and BatchNormalization of the main graph compute what inference computes.

    Those whose mode or whose new statistics something else decides or reads stay as they are.
    """
    nodes = [n for n in model.graph.all_nodes() if changes_in_training(n)]
    if not nodes:
        return
    rewriter = Rewriter(model, registry=registry)
    for node in [n for n in nodes if n.op == "Dropout" and _is_on(n, rewriter)]:
        mode = node.inputs[_MODE]
        node.inputs = node.inputs[:_MODE]
        _remove(mode)
    layers = [n for n in nodes if n.op == "BatchNormalization"]
    for node in layers:
        if not any(v is not None and v.is_read for v in node.outputs[1:]):
            node.attributes.pop("training_mode", None)
            node.outputs = node.outputs[:1]
    _own_statistics(layers, rewriter)


def _remove(mode: Value | None) -> None:
    """Remove a constant that nothing reads any more."""
    if mode is None or mode.is_read or mode.is_input or mode.home is None:
        return
    if mode.node is None:
        mode.home.set_initializer(mode, None)
    elif mode.node.op == "Constant":
        mode.home.erase(mode.node)


def _is_on(node: Node, rewriter: Rewriter) -> bool:
    """Return whether a Dropout always drops elements, and nothing reads its mask."""
    mode = node.inputs[_MODE] if len(node.inputs) > _MODE else None
    kind = None if mode is None else rewriter.inference.type_of(mode)
    has_mask = any(v is not None and v.is_read for v in node.outputs[1:])
    return not has_mask and isinstance(kind, TensorType) and kind.known is not None and all(kind.known)


def _own_statistics(layers: list[Node], rewriter: Rewriter) -> None:
    """Give each layer initializers of its own as running mean and variance, which training changes.

    Calls that share all four parameters are one layer.
    """
    calls: dict[tuple[Value | None, ...], list[Node]] = {}
    for node in layers:
        calls.setdefault(tuple(node.inputs[_PARAMETERS]), []).append(node)
    for nodes in calls.values():
        for place in range(STATISTICS.start, STATISTICS.stop):
            _own(nodes, place, rewriter)


def _own(nodes: list[Node], place: int, rewriter: Rewriter) -> None:
    """Give nodes an initializer that nothing else reads, instead of a shared one or a copy of one."""
    graph = rewriter.model.graph
    value = nodes[0].inputs[place]
    source = value
    copies: list[Node] = []
    while source is not None and source.node is not None and source.node.op == "Identity":
        copies.append(source.node)
        source = source.node.inputs[0]
    data = None if source is None or source.home is not graph else source.constant
    if value is None or source is None or not isinstance(data, Tensor) or source.is_input:
        return
    if not copies and all(use.user in nodes and use.slot == place for use in source.uses):
        return
    name = value.name
    for node in nodes:
        node.inputs[place] = None
    for copy in copies:
        if not any(v is not None and v.is_read for v in copy.outputs) and copy.graph is not None:
            copy.graph.erase(copy)
    taken = any(v.name == name for v in graph.defined())
    own = graph.add_initializer(rewriter.names.fresh(name) if taken else name, data)
    for node in nodes:
        node.inputs[place] = own


__all__ = ["to_inference"]
