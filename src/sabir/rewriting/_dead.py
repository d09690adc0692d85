"""Dead nodes: those that compute nothing that anything reads."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import SchemaError
from sabir.ir import Function, Graph, Node
from sabir.opsets import STANDARD
from sabir.rewriting._point import enclosing
from sabir.rewriting._replacing import erase_node
from sabir.schema import Callees, Scope, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Model, Value
    from sabir.schema import Registry


class DeadNodes(NamedTuple):
    """The pass that removes dead nodes.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> dead = model.graph.append(sabir.ir.Node('Neg', [model.graph.inputs[0]]))
    >>> DeadNodes().run(model), len(model.graph)
    (True, 1)
    """

    registry: Registry = STANDARD
    name: str = "dead nodes"

    def run(self, model: Model) -> bool:
        """Remove the dead nodes of a model, and return whether there were any."""
        return remove_dead_nodes(model, registry=self.registry) > 0


def remove_dead_nodes(model: Model, *, registry: Registry = STANDARD) -> int:
    """Erase the nodes of a model whose outputs nothing reads, in every graph; return how many there were.

    What graphs, training, quantization annotations and attributes refer to counts as read. No operator of the
    standard has an effect beside its outputs; a call of an operator that the registry does not know may have
    one, and stays, with what it reads. Initializers stay.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> dead = model.graph.append(sabir.ir.Node('Neg', [model.graph.inputs[0]]))
    >>> remove_dead_nodes(model)
    1
    """
    return _Sweep(model, registry).run()


def remove_released(model: Model, values: Iterable[Value], *, registry: Registry = STANDARD) -> None:
    """Erase what computes the values that nothing reads, of those that nodes read before they were replaced.

    The initializers and nodes behind such a value go too, if nothing else reads them; inputs and what
    `remove_dead_nodes` keeps stay.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { n = Neg (x)  y = Relu (n) }''')
    >>> neg, relu = model.graph
    >>> relu.inputs[0] = model.graph.inputs[0]
    >>> remove_released(model, neg.outputs)
    >>> len(model.graph)
    1
    """
    _Sweep(model, registry).release(values)


def remove_unread(graph: Graph) -> None:
    """Erase the nodes and initializers of a graph under construction that nothing reads.

    All its operators must do nothing beside computing their outputs, as those of the standard do.

    >>> b = sabir.Builder()
    >>> unread = b.Relu(b.input('x', 'float', ['N']))
    >>> remove_unread(b.graph)
    >>> len(b.graph)
    0
    """
    for node in reversed(list(graph)):
        if not any(v is not None and v.is_read for v in node.outputs):
            erase_node(node)
    for value in list(graph.initializers):
        if not value.is_read and not value.is_input:
            graph.set_initializer(value, None)


class _Sweep:
    """One removal of dead nodes."""

    def __init__(self, model: Model, registry: Registry) -> None:
        self._model = model
        self._callees = Callees()
        self._scope = Scope.of(model, registry, newer_opsets=True)
        self._kept: set[Value] = set(model.training_reads())
        self._named: set[str] = set()  # by attributes
        self._pure: dict[Function, bool] = {}

    def run(self) -> int:
        return sum(starmap(self._sweep, self._collect()))

    def release(self, values: Iterable[Value]) -> None:
        scopes = dict(self._collect())
        pending = list(values)
        while pending:
            value = pending.pop()
            if not value.is_read and value not in self._kept and value.name not in self._named:
                pending += self._removed(value, scopes)

    def _removed(self, value: Value, scopes: dict[Graph, Scope]) -> list[Value]:
        """Remove the source of an unread value if nothing else needs it; return what the source read."""
        graph, node = value.home, value.node
        if graph is None or value.is_input:
            return []
        if node is None:
            graph.set_initializer(value, None)
            return []
        *_, root = enclosing(graph)
        if root not in scopes or not self._is_dead(node, scopes[root]):
            return []
        read = node.reads()
        erase_node(node)
        return read

    def _collect(self) -> list[tuple[Graph, Scope]]:
        """Collect what annotations and attributes refer to; return the root graphs with their scopes."""
        bodies = {function.graph: self._scope.of_body(function) for function in self._model.functions}
        roots = [(graph, bodies.get(graph, self._scope)) for graph in self._model.graphs()]
        for root, scope in roots:
            for graph in root.scopes():
                self._kept.update(_annotated(graph))
                for node in graph:
                    if node.attributes:
                        self._named.update(self._names_in(node, scope))
        return roots

    def _names_in(self, node: Node, scope: Scope) -> Iterator[str]:
        """Yield the names of values that the attributes of a node contain."""
        callee = self._callees.find(node, scope)
        if isinstance(callee, Version):
            for attribute in callee.attributes:
                if attribute.names_values and attribute.name in node.attributes:
                    value: Any = node.attributes[attribute.name].value
                    yield from value if isinstance(value, tuple) else (value,)

    def _sweep(self, graph: Graph, scope: Scope) -> int:
        """Remove the dead nodes of a graph, the readers before what they read."""
        count = 0
        try:
            order = graph.sorted_nodes()
        except SchemaError:
            order = tuple(graph)
        for node in reversed(order):
            if self._is_dead(node, scope):
                count += 1 + sum(1 for inner in node.graphs for _ in inner.all_nodes())
                erase_node(node)
            else:
                for inner in node.graphs:
                    count += self._sweep(inner, scope)
        return count

    def _is_dead(self, node: Node, scope: Scope) -> bool:
        for value in node.outputs:
            if value is None:
                continue
            if value.is_read or value in self._kept or value.name in self._named:
                return False
        return self._is_pure(node, scope)

    def _is_pure(self, node: Node, scope: Scope) -> bool:
        """Return whether a node does nothing beside computing its outputs."""
        callee = self._callees.find(node, scope)
        if isinstance(callee, SchemaError):
            return False
        if isinstance(callee, Function) and not self._is_pure_function(callee):
            return False
        return all(self._is_pure(n, scope) for inner in node.graphs for n in inner)

    def _is_pure_function(self, function: Function) -> bool:
        if function not in self._pure:
            self._pure[function] = True  # a function that calls itself is invalid; it must not end here
            scope = self._scope.of_body(function)
            self._pure[function] = all(self._is_pure(n, scope) for n in function.graph)
        return self._pure[function]


def _annotated(graph: Graph) -> Iterator[Value]:
    """Yield the values that quantization annotations refer to."""
    for annotation in graph.annotations:
        yield annotation.value
        yield from (value for _, value in annotation.parameters)
