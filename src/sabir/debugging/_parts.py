"""Smaller models made of a model: parts of its nodes, outputs, weights, attributes and sizes.

Each function returns a copy, which may be invalid: whoever asks for it checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.inference import Inference, without_contents
from sabir.ir import ArrayTensor, Tensor, TensorType, Value, change_dims, drop_imports, unused_imports
from sabir.rewriting import erase_node, remove_dead_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sabir.ir import Constant, Dim, Graph, Model, Node, Type
    from sabir.schema import Registry

_SHAPE_ELEMENTS = 16  # elements of a constant that may be a shape


def types_by_name(model: Model, registry: Registry) -> dict[str, Type]:
    """Return the types of the values of the main graph by name, without known contents."""
    inference = Inference(model, registry=registry)
    inference.run()
    named = ((value.name, inference.type_of(value)) for value in model.graph.defined() if value.name)
    return {name: without_contents(kind) for name, kind in named if kind is not None}


def with_nodes(model: Model, kept: Collection[int], types: Mapping[str, Type]) -> Model:
    """Return a model of those nodes of the main graph whose places are in `kept`.

    What they read of the others becomes an input, and what the others read of them an output, with the
    type in `types`.
    """
    copy = model.clone()
    graph = copy.graph
    nodes = list(graph)
    dropped = [node for place, node in enumerate(nodes) if place not in kept]
    results = [v for place, node in enumerate(nodes) if place in kept for v in node.outputs if v is not None]
    read = {value for value in results if value.is_read}
    lost = {value for node in dropped for value in node.outputs if value is not None}
    _set_outputs(graph, [v for v in graph.outputs if v not in lost])
    for value in lost:
        if value.is_read:
            value.replace_with(graph.add_input(value.name, types.get(value.name)))
    for node in reversed(dropped):
        erase_node(node)
    _set_outputs(graph, [*graph.outputs, *(v for v in results if v in read and not v.is_read)])
    return _tidied(copy, types)


def with_outputs(model: Model, kept: Collection[int], registry: Registry) -> Model:
    """Return a model with those outputs whose places are in `kept`, and the nodes that these need."""
    copy = model.clone()
    _set_outputs(copy.graph, [v for place, v in enumerate(copy.graph.outputs) if place in kept])
    remove_dead_nodes(copy, registry=registry)
    return _tidied(copy, {})


def without_node(model: Model, place: int, operand: int, types: Mapping[str, Type]) -> Model | None:
    """Return a model in which an operand stands for the only result of a node; None if their types differ."""
    node = model.graph[place]
    value = node.inputs[operand]
    results = [v for v in node.outputs if v is not None]
    if value is None or len(results) != 1 or types.get(value.name) != types.get(results[0].name):
        return None
    if results[0] in model.graph.outputs:
        return None
    copy = model.clone()
    node = copy.graph[place]
    value = node.inputs[operand]
    for result in node.outputs:
        if result is not None and value is not None:
            result.replace_with(value)
    erase_node(node)
    return _tidied(copy, types)


def with_weights_as_inputs(model: Model, kept: Collection[str]) -> Model:
    """Return a model whose initializers, but those named in `kept`, are inputs without data."""
    copy = model.clone()
    graph = copy.graph
    for value, data in list(graph.initializers.items()):
        if value.name in kept:
            continue
        kind = TensorType(data.element, data.shape)
        graph.set_initializer(value, None)
        if not value.is_input:
            graph.inputs.append(value)
        value.type = kind
    return copy


def with_attributes(model: Model, kept: Collection[tuple[int, str]]) -> Model:
    """Return a model whose nodes have those attributes alone of which place and name are in `kept`.

    Types of computed values are inferred again.
    """
    copy = model.clone()
    for place, node in enumerate(copy.graph):
        for name in [n for n in node.attributes if (place, n) not in kept]:
            del node.attributes[name]
    _forget_types(copy)
    return copy


def with_size(model: Model, old: int, new: int) -> Model:
    """Return a model in which each size `old` is `new`: in types, in weights, and in constants of shapes.

    A weight keeps its first elements along such an axis. Types of computed values are inferred again.
    """
    copy = model.clone()

    def resized(dim: Dim) -> Dim:
        return new if dim == old else dim

    change_dims(copy, resized)
    for graph in copy.graph.scopes():
        for value, data in list(graph.initializers.items()):
            if isinstance(data, Tensor):
                _set_data(graph, value, _resized(data, old, new))
        for node in graph:
            _resize_constant(node, old, new)
    _forget_types(copy)
    return copy


def sizes_of(model: Model) -> list[int]:
    """Return the sizes above 1 of inputs and initializers, the largest first."""
    shapes = [v.shape or () for v in (*model.graph.inputs, *model.graph.initializers)]
    return sorted(
        {dim for shape in shapes for dim in shape if isinstance(dim, int) and dim > 1}, reverse=True
    )


def bare(model: Model) -> Model:
    """Return a model without documentation, metadata, training, and functions that nothing calls."""
    copy = model.clone()
    copy.doc, copy.metadata, copy.training, copy.devices = "", None, [], []
    called = {(node.domain, node.op) for graph in copy.graphs() for node in graph.all_nodes()}
    copy.functions = [f for f in copy.functions if (f.domain, f.name) in called]
    for root in copy.graphs():
        for graph in root.scopes():
            graph.doc, graph.metadata, graph.annotations, graph.orphan_value_info = "", None, (), ()
            for value in graph.defined():
                value.doc, value.metadata = "", None
            for node in graph:
                node.doc, node.metadata, node.devices = "", None, ()
    return _tidied(copy, {})


# helpers


def _set_outputs(graph: Graph, outputs: Iterable[Value | None]) -> None:
    graph.output_infos = {}  # they are by places of outputs
    graph.outputs = list(dict.fromkeys(outputs))


def _tidied(model: Model, types: Mapping[str, Type]) -> Model:
    """Drop unread inputs and weights, and what refers to values that are gone; type the outputs."""
    graph = model.graph
    for value in list(graph.initializers):
        if not value.is_read:
            graph.set_initializer(value, None)
    graph.inputs = [value for value in graph.inputs if value.is_read]
    for value in graph.outputs:
        if value is not None and value.type is None:
            value.type = types.get(value.name)
    defined = set(graph.defined())
    graph.annotations = tuple(
        a for a in graph.annotations if defined.issuperset({a.value, *(v for _, v in a.parameters)})
    )
    graph.clashes = {value: name for value, name in graph.clashes.items() if value in defined}
    drop_imports(model, unused_imports(model))
    return model


def _forget_types(model: Model) -> None:
    """Drop the types of computed values, which no longer follow from those of the inputs."""
    for graph in model.graph.scopes():
        for node in graph:
            for value in node.outputs:
                if value is not None:
                    value.type = None


def _set_data(graph: Graph, value: Value, data: Constant) -> None:
    if data is not graph.initializers[value]:
        kind = value.type
        graph.set_initializer(value, data)
        value.type = kind if value.is_input else TensorType(data.element, data.shape)


def _resized(tensor: Tensor, old: int, new: int) -> Tensor:
    """Return a tensor with another size; the tensor itself where nothing changes."""
    if old in tensor.shape:
        return ArrayTensor(
            tensor.array()[tuple(slice(new if size == old else size) for size in tensor.shape)].copy()
        )
    if not tensor.element.is_integer or tensor.size > _SHAPE_ELEMENTS or old not in tensor.array():
        return tensor
    array = tensor.array()
    return ArrayTensor(np.where(array == old, np.asarray(new, array.dtype), array))


def _resize_constant(node: Node, old: int, new: int) -> None:
    """Change the size in the tensor of a node without operands, such as Constant."""
    if node.inputs:
        return
    for name, attribute in list(node.attributes.items()):
        if isinstance(attribute.value, Tensor) and not attribute.ref:
            tensor = _resized(attribute.value, old, new)
            if tensor is not attribute.value:
                node.attributes[name] = tensor
