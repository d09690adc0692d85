"""The one walk over every tensor of a model, wherever it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import Location
from sabir.ir._tensors import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir._attributes import Attribute
    from sabir.ir._graph import Constant, Graph
    from sabir.ir._model import Model
    from sabir.ir._tensors import Tensor

_WITH_TENSORS = frozenset({"tensor", "tensors", "sparse_tensor", "sparse_tensors"})


class TensorPlace(NamedTuple):
    """A tensor, where it stands, and a name for it: its value's, or its node's and attribute's, or none."""

    tensor: Tensor
    where: Location
    name: str


def all_tensors(model: Model) -> Iterator[TensorPlace]:
    """Yield every tensor of a model, the two parts of each sparse one too.

    Initializers and attributes, in the main graph, the training graphs and the functions, in their subgraphs,
    and in the defaults of function attributes.
    """
    root = Location()
    yield from _in_graph(model.graph, root.at("graph"))
    for index, training in enumerate(model.training):
        where = root.at("training_info", index=index)
        if training.initialization is not None:
            yield from _in_graph(training.initialization, where.at("initialization"))
        if training.algorithm is not None:
            yield from _in_graph(training.algorithm, where.at("algorithm"))
    for index, function in enumerate(model.functions):
        where = root.at("function", index=index, name=function.name)
        for name, default in function.attributes.items():
            if default is not None:
                at, called = where.at("attribute", name=name), f"{function.name}.{name}"
                yield from _in_attribute(default, at, called)
                for graph, place in _graphs_in(default, at):
                    yield from _in_graph(graph, place)
        yield from _in_graph(function.graph, where)


def _in_graph(root: Graph, place: Location) -> Iterator[TensorPlace]:
    """Yield the tensors of a graph and of those inside it; graphs wait on a stack, so depth costs nothing."""
    pending = [(root, place)]
    while pending:
        graph, where = pending.pop()
        inside: list[tuple[Graph, Location]] = []
        for value, constant in graph.initializers.items():
            yield from _parts(constant, where.at("initializer", name=value.name), value.name)
        for index, node in enumerate(graph):
            for name, attribute in node.attributes.items() if node.attributes else ():
                if attribute.type not in _WITH_TENSORS and not attribute.graphs:
                    continue
                at = where.at("node", index=index, name=node.name or node.op).at("attribute", name=name)
                yield from _in_attribute(attribute, at, f"{node.name or node.op}.{name}")
                inside += _graphs_in(attribute, at)
        pending += reversed(inside)


def _in_attribute(attribute: Attribute, where: Location, name: str) -> Iterator[TensorPlace]:
    if attribute.type not in _WITH_TENSORS or attribute.value is None:
        return
    if attribute.type in {"tensor", "sparse_tensor"}:
        yield from _parts(attribute.value, where, name)
        return
    for index, constant in enumerate(attribute.value):
        yield from _parts(constant, where.at("tensor", index=index), f"{name}.{index}")


def _graphs_in(attribute: Attribute, where: Location) -> list[tuple[Graph, Location]]:
    one = attribute.type == "graph"
    return [(g, where if one else where.at("graph", index=i)) for i, g in enumerate(attribute.graphs)]


def _parts(constant: Constant, where: Location, name: str) -> Iterator[TensorPlace]:
    if isinstance(constant, SparseTensor):
        yield TensorPlace(constant.values, where.at("values"), f"{name}.values")
        yield TensorPlace(constant.indices, where.at("indices"), f"{name}.indices")
    else:
        yield TensorPlace(constant, where, name)


def drop_constants(root: Graph) -> None:
    """Take the constants out of a graph that nobody else has, and out of those inside it.

    Nodes and values refer to one another, so that a graph lives on until the cycle collector runs; what is
    large in it need not.
    """
    for graph in list(root.scopes()):
        graph.initializers.clear()
        for node in graph:
            for name, attribute in list(node.attributes.items()) if node.attributes else ():
                if attribute.type in _WITH_TENSORS:
                    del node.attributes[name]
