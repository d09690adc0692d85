"""The one walk over the objects of a model, each with its location.

A location names an object by the path to it, as `sabir.base.Location` describes and findings report it:

* `graph`, `training_info[0]/initialization`, `training_info[0]/algorithm` and `function[0] 'f'/graph` are
  graphs;
* in a graph, `input[0] 'x'`, `initializer 'w'`, `value_info[0] 'v'` are values, `node[0] 'conv'` is a node,
  named by its operator where it has no name, and `node[0] 'conv'/output[0] 'y'` is a result;
* in a node, `attribute 'axis'` is an attribute; a graph or tensor in it is `attribute 'body'/graph`, or
  `attribute 'bodies'/graph[0]` where the attribute has a list;
* the data of an initializer is `initializer 'w'/tensor`, and the parts of a sparse tensor are `values` and
  `indices`.

The step `graph` of a function or an attribute with one graph, and the step `tensor`, only end a location:
what is inside comes right after the owner, as in `attribute 'body'/node[0] 'add'`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sabir.base import Location
from sabir.ir._attributes import GRAPH_TYPES, Attribute
from sabir.ir._graph import Graph
from sabir.ir._model import Function, Model, TrainingInfo
from sabir.ir._node import Node
from sabir.ir._tensors import SparseTensor, Tensor
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

TENSORS = frozenset({"tensor", "tensors", "sparse_tensor", "sparse_tensors"})
_OWNERS = (Function, Attribute, Value)  # of a graph or tensor whose step only ends a location


class Place:
    """An object of a model and the place that contains it; the location is computed on demand."""

    __slots__ = ("_location", "index", "name", "object", "outer", "step")

    def __init__(
        self,
        content: Any,
        outer: Place | None,
        step: str,
        index: int | None = None,
        name: str = "",
    ) -> None:
        self.object, self.outer, self.step, self.index, self.name = content, outer, step, index, name
        self._location: Location | None = None

    @property
    def location(self) -> Location:
        """The location of the object."""
        if self._location is None:
            if self.outer is None:
                self._location = Location()
            else:
                self._location = self.outer.inside.at(self.step, index=self.index, name=self.name)
        return self._location

    @property
    def inside(self) -> Location:
        """The location to which those of the contents are relative."""
        transparent = self.index is None and self.outer is not None and isinstance(self.outer.object, _OWNERS)
        if transparent and self.outer is not None and isinstance(self.object, (Graph, SparseTensor, Tensor)):
            return self.outer.location
        return self.location


def walk(model: Model, *kinds: type) -> Iterator[tuple[Location, Any]]:
    """Yield every object of a model with its location, in reading order; `resolve` finds it by that again.

    The objects are the model, its graphs, nodes, values, attributes, tensors, functions and training infos.
    With `kinds`, only objects of these classes: `walk(model, Node, Tensor)`. A value comes once, where it is
    defined. The model must not be edited meanwhile.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> [(str(where), node.op) for where, node in walk(model, Node)]
    [("graph/node[0] 'Relu'", 'Relu')]
    """
    for place in places(model, *kinds):
        yield place.location, place.object


def places(model: Model, *kinds: type) -> Iterator[Place]:
    """Yield the places that `walk` visits; who needs few of their locations saves the rest."""
    wanted = kinds or (object,)
    values, nodes = (any(issubclass(c, k) for k in wanted) for c in (Value, Node))
    root = Place(model, None, "")
    if isinstance(model, wanted):
        yield root
    pending = [_contents(root, values=values, nodes=nodes)]
    while pending:  # and not a recursion, so that the depth of a model costs nothing
        for place in pending[-1]:
            if isinstance(place.object, wanted):
                yield place
            if _has_contents(place):
                pending.append(_contents(place, values=values, nodes=nodes))
                break
        else:
            pending.pop()


def _has_contents(place: Place) -> bool:
    """Return whether anything can be inside an object: in most values and attributes there is nothing."""
    content = place.object
    if isinstance(content, Value):
        return place.step == "initializer"
    if isinstance(content, Attribute):
        return content.type in TENSORS or content.type in GRAPH_TYPES
    return not isinstance(content, Tensor)


def _contents(place: Place, *, values: bool, nodes: bool) -> Iterator[Place]:
    match place.object:
        case Graph() as graph:
            return _in_graph(graph, place, values=values, nodes=nodes)
        case Node() as node:
            return _in_node(node, place, values=values)
        case Attribute() as attribute:
            return _in_attribute(attribute, place)
        case Value() as value:
            return iter((Place(value.constant, place, "tensor"),))
        case SparseTensor() as tensor:
            return iter((Place(tensor.values, place, "values"), Place(tensor.indices, place, "indices")))
        case Function() as function:
            return _in_function(function, place)
        case TrainingInfo() as training:
            return _in_training(training, place)
        case _:
            return _in_model(place.object, place)


def _in_model(model: Model, place: Place) -> Iterator[Place]:
    yield Place(model.graph, place, "graph")
    for index, training in enumerate(model.training):
        yield Place(training, place, "training_info", index)
    for index, function in enumerate(model.functions):
        yield Place(function, place, "function", index, function.name)


def _in_training(training: TrainingInfo, place: Place) -> Iterator[Place]:
    if training.initialization is not None:
        yield Place(training.initialization, place, "initialization")
    if training.algorithm is not None:
        yield Place(training.algorithm, place, "algorithm")


def _in_function(function: Function, place: Place) -> Iterator[Place]:
    for name, default in function.attributes.items():
        if default is not None:
            yield Place(default, place, "attribute", None, name)
    yield Place(function.graph, place, "graph")


def _in_graph(graph: Graph, place: Place, *, values: bool, nodes: bool) -> Iterator[Place]:
    if values:
        for index, value in enumerate(graph.inputs):
            if value not in graph.initializers:
                yield Place(value, place, "input", index, value.name)
    if graph.initializers:
        yield from _initializers(graph, place)
    for index, node in enumerate(graph):
        if nodes or values or node.attributes:
            yield Place(node, place, "node", index, node.name or node.op)
    if values:
        for value in graph.orphan_value_info:
            yield Place(value, place, "value_info", value.value_info_index, value.name)


def _initializers(graph: Graph, place: Place) -> Iterator[Place]:
    """Yield the initializers; only one whose name is missing or not unique has an index."""
    counts = Counter(value.name for value in graph.initializers)
    for index, value in enumerate(graph.initializers):
        unique = bool(value.name) and counts[value.name] == 1
        yield Place(value, place, "initializer", None if unique else index, value.name)


def _in_node(node: Node, place: Place, *, values: bool) -> Iterator[Place]:
    for name, attribute in node.attributes.items() if node.attributes else ():
        yield Place(attribute, place, "attribute", None, name)
    if values:
        for index, value in enumerate(node.outputs):
            if value is not None:
                yield Place(value, place, "output", index, value.name)


def _in_attribute(attribute: Attribute, place: Place) -> Iterator[Place]:
    step = "tensor" if attribute.type in TENSORS else "graph"
    if attribute.value is None:
        return
    if attribute.type in {"tensor", "sparse_tensor", "graph"}:
        yield Place(attribute.value, place, step)
        return
    for index, item in enumerate(attribute.value):
        yield Place(item, place, step, index)
