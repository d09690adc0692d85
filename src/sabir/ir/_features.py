"""Features of the format, each with the IR version that introduced it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir._tensors import WireTensor
from sabir.ir._types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.elements import ElementType
    from sabir.ir._graph import Graph
    from sabir.ir._model import Function
    from sabir.ir._node import Node
    from sabir.ir._tensors import Tensor
    from sabir.ir._types import Type
    from sabir.ir._value import Value

NEWEST_IN_GRAPHS = 11  # the newest IR version that brought something to graphs, values or nodes
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
SPARSE_TYPES = Feature("sparse tensor types", 8)
CONTAINERS = Feature("sequences and maps", 6)
VALUE_INFO = Feature("value_info of a function", _METADATA)
CONSTANTS = Feature("initializers that are no inputs", 4)


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
        elif isinstance(part, SparseTensorType):
            yield SPARSE_TYPES
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
