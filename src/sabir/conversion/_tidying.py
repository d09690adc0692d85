"""What makes a converted model read as if it was written so: constants folded, shared and named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.ir import ArrayTensor, Graph, Node, Tensor, TensorType, Value
from sabir.opsets.families.shapes import contents
from sabir.rewriting import InsertionPoint, constant_node, erase_node
from sabir.schema import port_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import FreshNames, Type
    from sabir.schema import Scope

_MOST_SHARED = 1024  # elements of a constant that is compared with others
_AUTOMATIC = re.compile(r"(const(ant)?|[a-z0-9]+_out)(_\d+)?")  # a name that a builder gives by itself


class Constants:
    """The constants that a conversion made in one root graph: initializers, or nodes in a function's body."""

    def __init__(self, names: FreshNames, *, as_nodes: bool) -> None:
        self._names, self._as_nodes = names, as_nodes

    def fold(self, node: Node, types: dict[Value, Type]) -> list[Value]:
        """Replace a node whose results are all known by constants, and return these; else nothing."""
        graph, outputs = node.graph, [v for v in node.outputs if v is not None]
        tensors = [t for v in outputs if (t := _known(types.get(v))) is not None]
        if graph is None or node.op == "Constant" or node.graphs or len(tensors) < len(outputs):
            return []
        made = [self._add(graph, v.name, t, node) for v, t in zip(outputs, tensors, strict=True)]
        for value, constant in zip(outputs, made, strict=True):
            value.replace_with(constant)
        erase_node(node)
        return made

    def _add(self, graph: Graph, name: str, tensor: Tensor, before: Node) -> Value:
        if not self._as_nodes:
            return graph.add_initializer(name, tensor)
        value = Value(name)
        InsertionPoint.before(before).insert(constant_node(value, tensor))
        return value

    def name(self, values: Iterable[Value], scope: Scope) -> None:
        """Name constants after the input that they are for: `axes`, `pads`; one that has a name keeps it."""
        for value in values:
            use = next(iter(value.uses), None)
            if use is None or not isinstance(use.user, Node) or not _AUTOMATIC.fullmatch(value.name):
                continue
            version = scope.version(use.user)
            port = None if version is None else port_at(version.inputs, use.slot).name.lower()
            if port is not None and len(port) > 1:  # `a` and `b` say no more than `const`
                value.name = self._names.fresh(port)


def share(values: Iterable[Value]) -> None:
    """Let equal small initializers of one graph be one."""
    first: dict[tuple[object, ...], Value] = {}
    for value in values:
        key = _key(value)
        kept = value if key is None else first.setdefault(key, value)
        if kept is not value and isinstance(value.source, Graph):
            value.replace_with(kept)
            value.source.set_initializer(value, None)


def _known(kind: Type | None) -> ArrayTensor | None:
    if not isinstance(kind, TensorType) or not isinstance(kind.size, int):
        return None
    array = contents.array_of(kind)
    if array is None:
        return None
    return ArrayTensor(array.reshape([d for d in kind.shape or () if isinstance(d, int)]))


def _key(value: Value) -> tuple[object, ...] | None:
    """Return what equal small initializers of a graph have in common; None for any other value."""
    data = value.constant
    if not isinstance(data, Tensor) or data.size > _MOST_SHARED or data.element.kind == "string":
        return None
    return value.home, data.element, data.shape, bytes(data.raw())


def typed_inside(graph: Graph) -> bool:
    """Return whether a graph declares types of values that are neither inputs nor outputs."""
    ports = {*graph.inputs, *graph.outputs}
    computed = (v for node in graph for v in node.outputs if v is not None)
    return any(v.type is not None and v not in ports for v in computed)
