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

_DEEPEST = 64  # types inside types


def element_of(number: int) -> ElementType:
    """Return the element type of a number, or a stand-in for one that the standard lacks."""
    return find_element(number) or unknown_element(number)


class TypeReader:
    """Turns `TypeProto`s into types; equal ones become one object."""

    def __init__(self) -> None:
        self._seen: dict[bytes, Type | None] = {}

    def read(self, proto: Any) -> Type | None:
        """Return a type, or None where the message says nothing; raises WireError for endless nesting."""
        key = proto.SerializeToString()
        if key not in self._seen:
            kind = _read(proto, 0)
            # what our form cannot say (an empty `dim_param`, unknown fields) stays beside it as bytes
            if kind is not None and write_type(kind).SerializeToString() != key:
                kind = _noted(kind, key)
            self._seen[key] = kind
        return self._seen[key]


def _read(proto: Any, depth: int) -> Type | None:
    if depth > _DEEPEST:
        raise WireError(f"types are nested deeper than {_DEEPEST}")
    which = proto.WhichOneof("value")
    if which is None:
        return None
    held = getattr(proto, which)
    (denotation,) = texts(proto, "denotation")
    match which:
        case "tensor_type":
            shape, denotations = _read_shape(held)
            return TensorType(element_of(held.elem_type), shape, note=_note(denotation, denotations))
        case "sparse_tensor_type":
            shape, denotations = _read_shape(held)
            return SparseTensorType(element_of(held.elem_type), shape, _note(denotation, denotations))
        case "sequence_type":
            return SequenceType(_read(held.elem_type, depth + 1), _note(denotation))
        case "optional_type":
            return OptionalType(_read(held.elem_type, depth + 1), _note(denotation))
        case "map_type":
            return MapType(element_of(held.key_type), _read(held.value_type, depth + 1), _note(denotation))
        case _:
            domain, name = texts(held, "domain", "name")
            return OpaqueType(domain, name, _note(denotation))


def _read_shape(held: Any) -> tuple[Shape | None, tuple[str, ...]]:
    if not held.HasField("shape"):
        return None, ()
    dims = held.shape.dim
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


def _noted(kind: Type, wire: bytes) -> Type:
    note = kind.note or TypeNote()
    return dataclasses.replace(kind, note=TypeNote(note.denotation, note.dims, wire))


def write_type(kind: Type) -> Any:
    """Return the `TypeProto` of a type."""
    proto = TypeProto()
    fill_type(kind, proto)
    return proto


def fill_type(kind: Type, proto: Any) -> None:
    """Write a type into an empty `TypeProto`."""
    note = kind.note
    if note is not None and note.wire and _still_says(note.wire, kind):
        proto.ParseFromString(note.wire)
        return
    if note is not None and note.denotation:
        proto.denotation = note.denotation
    match kind:
        case TensorType():
            _fill_tensor(kind, proto.tensor_type)
        case SparseTensorType():
            _fill_tensor(kind, proto.sparse_tensor_type)
        case SequenceType():
            _fill_item(kind.item, proto.sequence_type, "elem_type")
        case OptionalType():
            _fill_item(kind.item, proto.optional_type, "elem_type")
        case MapType():
            proto.map_type.key_type = kind.key.number
            _fill_item(kind.value, proto.map_type, "value_type")
        case OpaqueType():
            proto.opaque_type.SetInParent()
            if kind.domain:
                proto.opaque_type.domain = kind.domain
            if kind.name:
                proto.opaque_type.name = kind.name


def _fill_item(item: Type | None, proto: Any, field: str) -> None:
    proto.SetInParent()
    if item is not None:
        fill_type(item, getattr(proto, field))


def _fill_tensor(kind: TensorType | SparseTensorType, proto: Any) -> None:
    proto.SetInParent()
    if kind.element.number:
        proto.elem_type = kind.element.number
    if kind.shape is None:
        return
    proto.shape.SetInParent()
    for dim in kind.shape:
        made = proto.shape.dim.add()
        if isinstance(dim, int):
            made.dim_value = dim
        elif dim is not None:
            made.dim_param = str(dim)
    note = kind.note
    if note is not None and len(note.dims) == len(kind.shape):
        for made, denotation in zip(proto.shape.dim, note.dims, strict=True):
            if denotation:
                made.denotation = denotation


def _still_says(wire: bytes, kind: Type) -> bool:
    """Whether the bytes that a type was read from still mean it; it may have been refined since."""
    return _read(TypeProto.FromString(wire), 0) == kind
