"""The invariants of linked graphs, for tests and for programs that edit models.

`verify` checks the objects: links in both directions, order, scopes. The rules of the standard are for
`sabir.check`.
"""

# What is verified are the links, so private names cross classes here.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir._attributes import Attribute
from sabir.ir._graph import Graph
from sabir.ir._node import Node
from sabir.ir._tensors import SparseTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir._model import Model
    from sabir.ir._value import Value


def verify(model: Model | Graph) -> None:
    """Raise ValueError for the first broken link, and for a value that is read before it is defined.

    What is verified: each value has one definition, and knows it and every place that reads it; each node
    knows its graph, and each subgraph its node; a graph reads only its own values and those that the graphs
    around it define before; attributes, tensors and names are of the right classes.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> verify(model)
    """
    for problem in _Verification(model).problems():
        raise ValueError(problem)


class _Verification:
    """One pass over a model; `_defined` are the values in scope, `_seen` the graphs so far."""

    def __init__(self, model: Model | Graph) -> None:
        self._model = model
        self._defined: dict[Value, None] = {}
        self._seen: set[Graph] = set()

    def problems(self) -> Iterator[str]:
        model = self._model
        if isinstance(model, Graph):
            yield from self._graph(model)
            return
        yield from self._graph(model.graph)
        main = dict.fromkeys(model.graph.defined())
        for training in model.training:
            for graph in (training.initialization, training.algorithm):
                if graph is not None:  # it reads what the main graph defines
                    self._defined = dict(main)
                    yield from self._root(graph)
        for function in model.functions:
            self._defined = {}
            yield from self._root(function.graph)
            for name, default in function.attributes.items():
                if default is not None:
                    yield from _attribute_problems(name, default, function)
        if model.graph.parent is not None:
            yield f"{model.graph!r} is the main graph, but its parent is {model.graph.parent!r}"

    def _root(self, graph: Graph) -> Iterator[str]:
        if graph.parent is not None:
            yield f"{graph!r} is a root graph, but its parent is {graph.parent!r}"
        yield from self._graph(graph)

    def _graph(self, graph: Graph) -> Iterator[str]:
        if graph in self._seen:
            yield f"{graph!r} is in the model twice; use graph clones"
            return
        self._seen.add(graph)
        own = len(self._defined)
        for value in (*graph.inputs, *graph.initializers):
            yield from _value_problems(value)
            if value.source is not graph:
                yield f"{value!r} is an input or initializer of {graph!r}, but its source is {value.source!r}"
            self._defined[value] = None
        for value, data in graph.initializers.items():
            if not isinstance(data, (Tensor, SparseTensor)):  # pyright: ignore[reportUnnecessaryIsInstance] - that is what is verified
                yield f"the initializer {value!r} has {data!r} for a tensor"
        yield from _order_problems(graph)
        for node in graph:
            yield from self._node(node, graph)
        for slot, value in enumerate(graph.outputs):
            yield from self._read(graph, slot, value)
        for value in list(self._defined)[own:]:  # those of this graph, which are out of scope now
            yield from _use_problems(value)
            del self._defined[value]

    def _node(self, node: Node, graph: Graph) -> Iterator[str]:
        if node.graph is not graph:
            yield f"{node!r} is in {graph!r}, but its graph is {node.graph!r}"
        for slot, value in enumerate(node.inputs):
            yield from self._read(node, slot, value)
        for name, attribute in node.attributes.items():
            yield from _attribute_problems(name, attribute, node)
        for inner in node.graphs:
            if inner.parent is not node:
                yield f"{inner!r} is in an attribute of {node!r}, but its parent is {inner.parent!r}"
            yield from self._graph(inner)
        for value in node.outputs:
            if value is None:
                continue
            yield from _value_problems(value)
            if value.source is not node:
                yield f"{value!r} is an output of {node!r}, but its source is {value.source!r}"
            if value in self._defined:
                yield f"{value!r} is an output of {node!r}, and is defined twice"
            self._defined[value] = None

    def _read(self, user: Node | Graph, slot: int, value: Value | None) -> Iterator[str]:
        if value is None:
            return
        if (user, slot) not in value._uses:
            yield f"{user!r} reads {value!r} in slot {slot}, but the value does not list this use"
        if value not in self._defined:
            home = value.home
            if home is not None and home not in self._seen:
                yield f"{user!r} reads {value!r} of {home!r}, which is not in scope"
            yield f"{user!r} reads {value!r} before anything defines it"


def _order_problems(graph: Graph) -> Iterator[str]:
    """Compare the linked list of nodes in both directions with the length of the graph."""
    forwards, backwards = list(graph), list(reversed(graph))
    if forwards != backwards[::-1] or len(forwards) != len(graph):
        counts = f"{len(forwards)} nodes forwards, {len(backwards)} backwards"
        yield f"{graph!r} has {counts}, and counts {len(graph)}"


def _value_problems(value: Value) -> Iterator[str]:
    if not isinstance(value.name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - that is what is verified
        yield f"the name of a value is text, not {value.name!r}"


def _use_problems(value: Value) -> Iterator[str]:
    for user, slot in value._uses:
        reads = user.inputs if isinstance(user, Node) else user.outputs
        if slot >= len(reads) or reads[slot] is not value:
            yield f"{value!r} lists a use in slot {slot} of {user!r}, which does not read it"


def _attribute_problems(name: str, attribute: Attribute, owner: object) -> Iterator[str]:
    if not isinstance(attribute, Attribute):  # pyright: ignore[reportUnnecessaryIsInstance] - that is what is verified
        yield f"the attribute {name!r} of {owner!r} is {attribute!r}, which is not an Attribute"
    elif attribute.name != name:
        yield f"{owner!r} has the attribute {attribute.name!r} under the name {name!r}"
