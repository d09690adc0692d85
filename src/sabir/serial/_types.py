"""Types between their protobuf form and ours."""

from __future__ import annotations

import dataclasses
from typing import Any

from sabir.base import WireError
from sabir.elements import ElementType, find_element
from sabir.ir import (
    Dim,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    Shape,
    SparseTensorType,
    TensorType,
    Type,
    TypeNote,
    read_dim,
    unknown_element,
)
from sabir.proto import TypeProto
from sabir.serial._residues import texts

_MAX_DEPTH = 64  # types inside types


def element_of(number: int) -> ElementType:
    """Return the element type of a number, or a placeholder for one that the standard does not define."""
    return find_element(number) or unknown_element(number)


class TypeReader:
    """Turns `TypeProto`s into types; equal ones become one object."""

    def __init__(self) -> None:
        self._seen: dict[bytes, Type | None] = {}

    def read(self, proto: Any) -> Type | None:
        """Return a type, or None for an empty message; raises WireError for types nested too deep."""
        key = proto.SerializeToString()
        if key not in self._seen:
            type_ = _read(proto, 0)
            # what a type cannot represent (an empty `dim_param`, unknown fields) is kept beside it as bytes
            if type_ is not None and write_type(type_).SerializeToString() != key:
                type_ = _noted(type_, key)
            self._seen[key] = type_
        return self._seen[key]


def _read(proto: Any, depth: int) -> Type | None:
    if depth > _MAX_DEPTH:
        raise WireError(f"types are nested deeper than {_MAX_DEPTH}")
    which = proto.WhichOneof("value")
    if which is None:
        return None
    content = getattr(proto, which)
    (denotation,) = texts(proto, "denotation")
    match which:
        case "tensor_type":
            shape, denotations = _read_shape(content)
            return TensorType(element_of(content.elem_type), shape, note=_note(denotation, denotations))
        case "sparse_tensor_type":
            shape, denotations = _read_shape(content)
            return SparseTensorType(element_of(content.elem_type), shape, _note(denotation, denotations))
        case "sequence_type":
            return SequenceType(_read(content.elem_type, depth + 1), _note(denotation))
        case "optional_type":
            return OptionalType(_read(content.elem_type, depth + 1), _note(denotation))
        case "map_type":
            return MapType(
                element_of(content.key_type), _read(content.value_type, depth + 1), _note(denotation)
            )
        case _:
            domain, name = texts(content, "domain", "name")
            return OpaqueType(domain, name, _note(denotation))


def _read_shape(content: Any) -> tuple[Shape | None, tuple[str, ...]]:
    if not content.HasField("shape"):
        return None, ()
    dims = content.shape.dim
    denotations = tuple(name for d in dims for name in texts(d, "denotation"))
    return tuple(_read_dim(d) for d in dims), denotations if any(denotations) else ()


def _read_dim(proto: Any) -> Dim:
    which = proto.WhichOneof("value")
    if which == "dim_value":
        return proto.dim_value
    (name,) = texts(proto, "dim_param")
    return read_dim(name) if name else None


def _note(denotation: str, dims: tuple[str, ...] = ()) -> TypeNote | None:
    return TypeNote(denotation, dims) if denotation or dims else None


def _noted(type_: Type, wire: bytes) -> Type:
    note = type_.note or TypeNote()
    return dataclasses.replace(type_, note=TypeNote(note.denotation, note.dims, wire))


def write_type(type_: Type) -> Any:
    """Return the `TypeProto` of a type."""
    proto = TypeProto()
    fill_type(type_, proto)
    return proto


def fill_type(type_: Type, proto: Any) -> None:
    """Write a type into an empty `TypeProto`."""
    note = type_.note
    if note is not None and note.wire and _is_current(note.wire, type_):
        proto.ParseFromString(note.wire)
        return
    if note is not None and note.denotation:
        proto.denotation = note.denotation
    match type_:
        case TensorType():
            _fill_tensor(type_, proto.tensor_type)
        case SparseTensorType():
            _fill_tensor(type_, proto.sparse_tensor_type)
        case SequenceType():
            _fill_item(type_.item, proto.sequence_type, "elem_type")
        case OptionalType():
            _fill_item(type_.item, proto.optional_type, "elem_type")
        case MapType():
            proto.map_type.key_type = type_.key.number
            _fill_item(type_.value, proto.map_type, "value_type")
        case OpaqueType():
            proto.opaque_type.SetInParent()
            if type_.domain:
                proto.opaque_type.domain = type_.domain
            if type_.name:
                proto.opaque_type.name = type_.name


class TypeWriter:
    """Writes types as `fill_type` does; the message of a tensor type that many values share is made once."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[TensorType, bytes]] = {}  # by id, with the type, which so stays alive

    def fill(self, type_: Type, proto: Any) -> None:
        """Write a type into an empty `TypeProto`."""
        if type(type_) is not TensorType:  # another one may be nested deeper than protobuf reads
            fill_type(type_, proto)
            return
        known = self._written.get(id(type_))
        if known is None:
            known = self._written[id(type_)] = type_, write_type(type_).SerializeToString()
        proto.MergeFromString(known[1])


def _fill_item(item: Type | None, proto: Any, field: str) -> None:
    proto.SetInParent()
    if item is not None:
        fill_type(item, getattr(proto, field))


def _fill_tensor(type_: TensorType | SparseTensorType, proto: Any) -> None:
    proto.SetInParent()
    if type_.element.number:
        proto.elem_type = type_.element.number
    if type_.shape is None:
        return
    proto.shape.SetInParent()
    for dim in type_.shape:
        entry = proto.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        elif dim is not None:
            entry.dim_param = str(dim)
    note = type_.note
    if note is not None and len(note.dims) == len(type_.shape):
        for entry, denotation in zip(proto.shape.dim, note.dims, strict=True):
            if denotation:
                entry.denotation = denotation


def _is_current(wire: bytes, type_: Type) -> bool:
    """Return whether the bytes of a type still represent it: it may have been refined since it was read."""
    return _read(TypeProto.FromString(wire), 0) == type_
