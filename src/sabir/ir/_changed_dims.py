"""Other dimensions in types and device layouts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.ir._dims import read_dim
from sabir.ir._dims_algebra import Expr
from sabir.ir._types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir._devices import NodeDevice
    from sabir.ir._dims import Dim
    from sabir.ir._types import Type


def with_dims(type_: Type, change: Callable[[Dim], Dim]) -> Type:
    """Return a type with `change` applied to each dimension; the same object if none changes.

    >>> str(with_dims(tensor_type('float', ['N', 2]), lambda dim: 3 if isinstance(dim, Expr) else dim))
    'float[3,2]'
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
    """Return the device layout of a node with `change` applied to each length; the same object if none does.

    >>> layout_with_dims(NodeDevice('c'), lambda dim: dim).configuration
    'c'
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
        from sabir.proto import NodeDeviceConfigurationProto  # ruff: ignore[import-outside-top-level]  protobuf, which few programs without files need

        proto = NodeDeviceConfigurationProto.FromString(wire)
        for piece in (p for s in proto.sharding_spec for a in s.sharded_dim for p in a.simple_sharding):
            if piece.dim_param:
                piece.dim_param = str(change(read_dim(piece.dim_param)))
        wire = proto.SerializeToString()
    return device._replace(shardings=shardings, wire=wire)
