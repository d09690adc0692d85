"""Features of the format with their IR versions, and the oldest version that a model needs."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from sabir.ir._releases import NEWEST_IR, first_ir_of, newest_opset
from sabir.ir._tensors import SparseTensor, Tensor, WireTensor
from sabir.ir._types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType
from sabir.ir._walk import all_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.elements import ElementType
    from sabir.ir._attributes import Attribute
    from sabir.ir._graph import Graph
    from sabir.ir._model import Function, Model
    from sabir.ir._node import Node
    from sabir.ir._types import Type
    from sabir.ir._value import Value

NEWEST_IN_GRAPHS = 11  # the newest IR version that brought something to graphs, values or nodes
_OLDEST = 3  # the oldest IR version that imports operator sets
_METADATA, _OVERLOADS, _DEVICES = 10, 10, 11
# those of IR 3 and earlier are not listed
_ELEMENTS = {17: 9, 18: 9, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13, 27: 14, 28: 14}


class Feature(NamedTuple):
    """A feature of the format, and the IR version that introduced it."""

    name: str
    since: int


TRAINING = Feature("training_info", 7)
DEVICES = Feature("device configurations", _DEVICES)
SPARSE = Feature("sparse tensors", 6)
OPTIONALS = Feature("optional types", 8)
CONTAINERS = Feature("sequences and maps", 6)
INITIALIZERS = Feature("initializers that are no inputs", 4)
VALUE_INFO = Feature("value_info of a function", _METADATA)


def features_of_function(function: Function) -> Iterator[Feature]:
    """Yield the features of a function itself, its body apart."""
    yield Feature("functions", 8)
    if any(a is not None for a in function.attributes.values()):
        yield Feature("defaults of a function's attributes", 9)
    if function.overload:
        yield Feature("overloads", _OVERLOADS)
    if function.metadata:
        yield Feature("metadata_props of a function", _METADATA)


def features_of_graph(graph: Graph) -> Iterator[Feature]:
    """Yield the features of a graph itself."""
    if graph.metadata:
        yield Feature("metadata_props of a graph", _METADATA)
    if graph.annotations:
        yield Feature("quantization annotations", 5)


def features_of_value(value: Value) -> Iterator[Feature]:
    """Yield the features of a value, its type apart."""
    if value.metadata:
        yield Feature("metadata_props of a value", _METADATA)


def features_of_node(node: Node) -> Iterator[Feature]:
    """Yield the features of a node, its attributes apart."""
    if node.overload:
        yield Feature("overloads", _OVERLOADS)
    if node.metadata:
        yield Feature("metadata_props of a node", _METADATA)
    if node.devices:
        yield DEVICES


def features_of_tensor(tensor: Tensor) -> Iterator[Feature]:
    """Yield the features of a tensor, its element type apart."""
    if isinstance(tensor, WireTensor) and len(tensor.proto.metadata_props):
        yield Feature("metadata_props of a tensor", _METADATA)


def features_of_type(kind: Type, *, is_ml: bool) -> Iterator[Feature]:
    """Yield the features of a type, element types apart.

    Sequences and maps were the ML variant's from the first.
    """
    for part in parts_of_type(kind):
        if isinstance(part, OptionalType):
            yield OPTIONALS
        elif not is_ml and isinstance(part, (SequenceType, MapType)):
            yield CONTAINERS


def parts_of_type(kind: Type | None) -> Iterator[Type]:
    """Yield a type and those inside it."""
    while kind is not None:
        yield kind
        match kind:
            case SequenceType() | OptionalType():
                kind = kind.item
            case MapType():
                kind = kind.value
            case _:
                return


def elements_of_type(kind: Type) -> Iterator[ElementType]:
    """Yield the element types in a type, its map keys included."""
    for part in parts_of_type(kind):
        if isinstance(part, (TensorType, SparseTensorType)):
            yield part.element
        elif isinstance(part, MapType):
            yield part.key


def first_ir_of_element(element: ElementType) -> int:
    """Return the IR version that introduced an element type, 0 where every version has it."""
    return _ELEMENTS.get(element.number, 0)


def _features_of_element(element: ElementType) -> Iterator[Feature]:
    yield Feature(element.name, first_ir_of_element(element))


def least_ir(model: Model) -> int:
    """Return the oldest IR version that has all that a model imports and uses, at least 3.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> least_ir(model)
    10
    """
    imports = starmap(_first_ir_of_import, model.opsets.items())
    return max(_OLDEST, *imports, *(feature.since for feature in _features(model)))


def features_above(model: Model, ir_version: int) -> Iterator[Feature]:
    """Yield what a model imports and uses that an IR version does not have, with repetitions.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> [feature.name for feature in features_above(model, 8)]
    ['opset 21 of ai.onnx']
    """
    for domain, version in model.opsets.items():
        first = _first_ir_of_import(domain, version)
        if first > ir_version:
            yield Feature(f"opset {version} of {domain or 'ai.onnx'}", first)
    yield from (feature for feature in _features(model) if feature.since > ir_version)


def _first_ir_of_import(domain: str, version: int) -> int:
    """Return the IR version for an import: the newest for one that no release of a standard domain had."""
    if newest_opset(domain) is None:
        return _OLDEST
    return first_ir_of(domain, version) or NEWEST_IR


def _features(model: Model) -> Iterator[Feature]:
    is_ml = "ai.onnx.ml" in model.opsets
    if model.training:
        yield TRAINING
    if model.devices:
        yield DEVICES
    for function in model.functions:
        yield from features_of_function(function)
        yield from (VALUE_INFO for v in function.graph.defined() if v.value_info_index is not None)
    for place in all_tensors(model):
        yield from features_of_tensor(place.tensor)
        yield from _features_of_element(place.tensor.element)
    bodies = {function.graph for function in model.functions}
    for root in model.graphs():
        for graph in root.scopes():
            if graph not in bodies and any(v not in graph.inputs for v in graph.initializers):
                yield INITIALIZERS
            yield from _in_graph(graph, is_ml=is_ml)


def _in_graph(graph: Graph, *, is_ml: bool) -> Iterator[Feature]:
    yield from features_of_graph(graph)
    for value in graph.defined():
        yield from features_of_value(value)
        if value.type is not None:
            yield from _in_type(value.type, is_ml=is_ml)
    yield from (SPARSE for data in graph.initializers.values() if isinstance(data, SparseTensor))
    for node in graph:
        yield from features_of_node(node)
        for attribute in node.attributes.values() if node.attributes else ():
            yield from _in_attribute(attribute, is_ml=is_ml)


def _in_attribute(attribute: Attribute, *, is_ml: bool) -> Iterator[Feature]:
    if attribute.type in {"sparse_tensor", "sparse_tensors"}:
        yield SPARSE
    elif attribute.type in {"type", "types"}:
        kinds: tuple[Type | None, ...] = (
            (attribute.value,) if attribute.type == "type" else attribute.value or ()
        )
        for kind in kinds:
            yield from _in_type(kind, is_ml=is_ml) if kind is not None else ()


def _in_type(kind: Type, *, is_ml: bool) -> Iterator[Feature]:
    yield from features_of_type(kind, is_ml=is_ml)
    for element in elements_of_type(kind):
        yield from _features_of_element(element)
