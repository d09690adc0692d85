"""Attributes between their protobuf form and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import WireError
from sabir.ir import ATTRIBUTE_TYPES, Attribute, AttributeType, Tensor
from sabir.serial._residues import ResidueCollector, TextFields, restore
from sabir.serial._types import fill_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Graph, SparseTensor

FIELDS: dict[AttributeType, str] = {
    "float": "f", "int": "i", "string": "s", "tensor": "t", "graph": "g", "floats": "floats", "ints": "ints",
    "strings": "strings", "tensors": "tensors", "graphs": "graphs", "sparse_tensor": "sparse_tensor",
    "sparse_tensors": "sparse_tensors", "type": "tp", "types": "type_protos",
}  # fmt: skip
_TYPE_OF_FIELD: dict[str, AttributeType] = {field: type_ for type_, field in FIELDS.items()}
_SINGULAR = ("f", "i", "s", "t", "g", "sparse_tensor", "tp")
_TEXTS = TextFields("doc_string", "ref_attr_name", "name")
_UNSHARED = frozenset({5, 9, 10, 11, 12})  # graphs, which are mutable, and lists of tensors
_TENSOR = ATTRIBUTE_TYPES.index("tensor")
_SMALL = 256  # bytes of an attribute with a tensor, such as a shape, that many nodes may have


class AttributeReader:
    """Turns `AttributeProto`s into attributes; equal ones become one object, unless large or with graphs."""

    def __init__(
        self,
        *,
        tensor: Callable[[Any], Tensor],
        sparse: Callable[[Any], SparseTensor],
        graph: Callable[[Any], Graph],
        type_: Callable[[Any], Any],
        copy: Callable[[Any], Any],
        residue_of: Callable[[Any], ResidueCollector],
    ) -> None:
        """Take the readers of the messages inside an attribute; `copy` copies a message with its bulk data.

        `residue_of` returns what collects the residue of a message.
        """
        self._readers: dict[str, Callable[[Any], Any]] = {
            "t": tensor, "tensors": tensor, "g": graph, "graphs": graph, "sparse_tensor": sparse,
            "sparse_tensors": sparse, "tp": type_, "type_protos": type_, "s": _decoded, "strings": _decoded,
        }  # fmt: skip
        self._copy, self._residue_of = copy, residue_of
        self._seen: dict[bytes, Attribute] = {}

    def read(self, proto: Any) -> Attribute:
        """Return an attribute; raises WireError for a name that is not UTF-8."""
        number = proto.type
        if number in _UNSHARED or not number or (number == _TENSOR and proto.ByteSize() > _SMALL):
            return self._read(proto)
        key = proto.SerializeToString()
        found = self._seen.get(key)
        if found is None:
            found = self._read(proto)
            if number != _TENSOR or _is_small(found.value):
                self._seen[key] = found
        return found

    def _read(self, proto: Any) -> Attribute:
        doc, ref, name = _TEXTS.of(proto)
        number: int = proto.type
        type_ = ATTRIBUTE_TYPES[number]
        present = _present(proto)
        # before IR 2 no attribute had a type, and its value's field decides
        field = FIELDS.get(type_) or (present[0] if present else "")
        value = None if ref and field not in present else self._value(proto, field)
        collector = self._residue_of(proto)
        if present and present != [field]:
            collector.keep(self._copy(_other_values(proto, field, present)))
        if type_ == "undefined" and field:
            type_ = _TYPE_OF_FIELD[field]
            collector.repeated("type")
            if proto.HasField("type"):
                collector.keep(type(proto)(type=number))
        if field in _SINGULAR and not ref and field not in present:
            collector.absent(field)
        return Attribute(name, type_, value, doc, ref, collector.residue(_TEXTS.names))

    def _value(self, proto: Any, field: str) -> Any:
        if not field:
            return None
        content, reader = getattr(proto, field), self._readers.get(field)
        if field in _SINGULAR:
            return reader(content) if reader else content
        return tuple(reader(x) for x in content) if reader else tuple(content)


def _present(proto: Any) -> list[str]:
    """Return the value fields that a message has, in the order of their types."""
    return [f for f in _TYPE_OF_FIELD if (proto.HasField(f) if f in _SINGULAR else len(getattr(proto, f)))]


def _other_values(proto: Any, field: str, present: list[str]) -> Any:
    """Return a message of the value fields other than `field`, the one that the type selects."""
    rest = type(proto)()
    for other in present:
        content = getattr(proto, other)
        if other == field:
            continue
        if other in {"f", "i", "s"}:
            setattr(rest, other, content)
        elif other in _SINGULAR:
            getattr(rest, other).CopyFrom(content)
        else:
            getattr(rest, other).MergeFrom(content)
    return rest


def _is_small(value: Any) -> bool:
    """Return whether a tensor is small: the data of a large one is not in its message, and is not kept."""
    return isinstance(value, Tensor) and value.size <= _SMALL  # its bytes may be of no type


def _decoded(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def write_attribute(
    attribute: Attribute, proto: Any, *, tensor: Callable[[Tensor, Any], None],
    sparse: Callable[[SparseTensor, Any], None], graph: Callable[[Graph, Any], None],
) -> None:  # fmt: skip
    """Write an attribute into an empty `AttributeProto`; the callables write the messages inside."""
    if attribute.name:
        proto.name = attribute.name
    if attribute.doc:
        proto.doc_string = attribute.doc
    if attribute.ref:
        proto.ref_attr_name = attribute.ref
    untyped = attribute.residue is not None and "type" in attribute.residue.repeated
    if attribute.type != "undefined" and not untyped:
        proto.type = ATTRIBUTE_TYPES.index(attribute.type)
    field = FIELDS.get(attribute.type)
    if field and attribute.value is not None:
        writers = {"t": tensor, "g": graph, "sparse_tensor": sparse, "tp": fill_type}
        try:
            _write_value(attribute.value, field, proto, writers)
        except (TypeError, ValueError, OverflowError) as error:
            problem = f"attribute {attribute.name!r} of type {attribute.type} cannot hold its value"
            raise WireError(f"{problem}: {error}") from error
        if attribute.residue is not None and field in attribute.residue.absent:
            _clear_default(proto, field)
    restore(attribute.residue, proto)


def _clear_default(proto: Any, field: str) -> None:
    """Clear a value that the file lacked, unless it is no longer the default of an absent field."""
    content = getattr(proto, field)
    if content.ByteSize() == 0 if hasattr(content, "DESCRIPTOR") else not content:
        proto.ClearField(field)


_SINGULAR_OF = {"tensors": "t", "graphs": "g", "sparse_tensors": "sparse_tensor", "type_protos": "tp"}


def _write_value(value: Any, field: str, proto: Any, writers: dict[str, Callable[[Any, Any], None]]) -> None:
    match field:
        case "f" | "i":
            setattr(proto, field, value)
        case "s":
            proto.s = _encoded(value)
        case "floats" | "ints":
            getattr(proto, field).extend(value)
        case "strings":
            proto.strings.extend(_encoded(v) for v in value)
        case _ if field in writers:
            content = getattr(proto, field)
            content.SetInParent()
            writers[field](value, content)
        case _:
            for v in value:
                item = getattr(proto, field).add()
                if v is not None:  # an unknown type
                    writers[_SINGULAR_OF[field]](v, item)


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
