"""Changes of the dimensions in every type that a model declares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sabir.ir._dims import read_dim
from sabir.ir._dims_algebra import Expr
from sabir.ir._types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType
from sabir.proto import NodeDeviceConfigurationProto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from sabir.ir._attributes import Attribute
    from sabir.ir._devices import NodeDevice
    from sabir.ir._dims import Dim
    from sabir.ir._graph import Graph
    from sabir.ir._model import Model
    from sabir.ir._types import Type
    from sabir.ir._value import Value


def with_dims(type_: Type, change: Callable[[Dim], Dim]) -> Type:
    """Return a type with `change` applied to each dimension; the same object if none changes.

    >>> print(with_dims(tensor_type('float', ['N', 3]), lambda dim: 4 if dim == symbol('N') else dim))
    float[4,3]
    """
    match type_:
        case TensorType() | SparseTensorType() if type_.shape:
            shape = tuple(map(change, type_.shape))
            return type_ if shape == type_.shape else replace(type_, shape=shape)
        case SequenceType() | OptionalType() if type_.item is not None:
            item = with_dims(type_.item, change)
            return type_ if item is type_.item else replace(type_, item=item)
        case MapType() if type_.value is not None:
            value = with_dims(type_.value, change)
            return type_ if value is type_.value else replace(type_, value=value)
        case _:
            return type_


def dim_variables(type_: Type) -> frozenset[str]:
    """Return the dimension variables in a type.

    >>> sorted(dim_variables(tensor_type('float', ['N', 2])))
    ['N']
    """
    found = set[str]()

    def collect(dim: Dim) -> Dim:
        if isinstance(dim, Expr):
            found.update(dim.symbols)
        return dim

    with_dims(type_, collect)
    return frozenset(found)


def layout_with_dims(device: NodeDevice, change: Callable[[Dim], Dim]) -> NodeDevice:
    """Return the device layout of a node with `change` applied to each length, or the same object.

    >>> from sabir.ir import NodeDevice
    >>> layout_with_dims(NodeDevice('all'), lambda dim: dim).configuration
    'all'
    """
    shardings = tuple(
        s._replace(axes=tuple(
            a._replace(pieces=tuple((change(length), n) for length, n in a.pieces)) for a in s.axes
        ))
        for s in device.shardings
    )  # fmt: skip
    if shardings == device.shardings:
        return device
    wire = device.wire
    if wire:
        proto = NodeDeviceConfigurationProto.FromString(wire)
        for piece in (p for s in proto.sharding_spec for a in s.sharded_dim for p in a.simple_sharding):
            if piece.dim_param:
                _write_length(piece, change(read_dim(piece.dim_param)))
        wire = proto.SerializeToString()
    return device._replace(shardings=shardings, wire=wire)


def _write_length(piece: Any, length: Dim) -> None:
    """Set the length in the message of a shard: a number, a name, or neither where it is unknown."""
    for field in ("dim_param", "dim_value"):
        piece.ClearField(field)
    if length is not None:
        setattr(piece, *(("dim_value", length) if isinstance(length, int) else ("dim_param", str(length))))


def change_dims(model: Model, change: Callable[[Dim], Dim]) -> None:
    """Apply `change` to each dimension that a model declares, in all of its graphs, functions and attributes.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> change_dims(model, lambda dim: symbol('batch') if dim == symbol('N') else dim)
    >>> print(model.graph.inputs[0].type, model.graph.outputs[0].type)
    float[batch] float[batch]
    """
    for value in _typed_values(model):
        if value.type is not None:
            changed = with_dims(value.type, change)
            if changed is not value.type:
                value.type = changed
    for attributes in _attribute_mappings(model):
        for name, attribute in tuple(attributes.items()):
            if attribute is not None:
                changed_attribute = attribute_with_dims(attribute, change)
                if changed_attribute is not attribute:
                    attributes[name] = changed_attribute
    for node in (node for graph in _all_graphs(model) for node in graph):
        if node.devices:
            node.devices = tuple(layout_with_dims(device, change) for device in node.devices)


def _all_graphs(model: Model) -> Iterator[Graph]:
    """Yield the root graphs of a model, the graphs inside them, and those in defaults of functions."""
    for root in model.graphs():
        yield from root.scopes()
    for function in model.functions:
        for default in function.attributes.values():
            for graph in default.graphs if default is not None else ():
                yield from graph.scopes()


def _typed_values(model: Model) -> Iterator[Value]:
    """Yield every value whose type a model may declare."""
    for graph in _all_graphs(model):
        yield from graph.defined()
        yield from (value for value in graph.outputs if value is not None and value.source is None)
        yield from (info for _, info in graph.output_infos.values())
        yield from graph.orphan_value_info


def _attribute_mappings(model: Model) -> Iterator[MutableMapping[str, Attribute | None]]:
    for function in model.functions:
        yield function.attributes
    for graph in _all_graphs(model):
        for node in graph:
            yield node.attributes  # pyright: ignore[reportReturnType] - of a node none is None


def attribute_with_dims(attribute: Attribute, change: Callable[[Dim], Dim]) -> Attribute:
    """Return an attribute with `change` applied to the dimensions of its types, or the same object.

    >>> from sabir.ir import Attribute
    >>> x = Attribute('like', 'type', tensor_type('float', ['N']))
    >>> print(attribute_with_dims(x, lambda dim: 4).value)
    float[4]
    """
    if attribute.type not in {"type", "types"} or not attribute.value:
        return attribute
    many = attribute.type == "types"
    old: tuple[Type, ...] = attribute.value if many else (attribute.value,)
    new = tuple(with_dims(type_, change) for type_ in old)
    if all(a is b for a, b in zip(old, new, strict=True)):
        return attribute
    return replace(attribute, value=new if many else new[0])
