"""Tensors as text: every element, in a form that reads as the same bits, or a count of those left out.

Types without a decimal form are written as the typed fields of a `TensorProto` contain them, which
`onnx.parser` reads too: bit patterns, several to an entry for 4 and 2 bits. Where numbers cannot represent
the data (which NaN, data that does not fit its shape) bytes are written: of the elements, or of the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import UnsupportedError, WireError
from sabir.elements import BOOL, element_count, find_element, pack, to_field
from sabir.ir import ExternalTensor, SparseTensor, WireTensor
from sabir.proto import StringStringEntryProto, TensorProto, encode_bytes, unknown_bytes
from sabir.syntax._detail import WHOLE, CutText
from sabir.syntax._words import IDENTIFIER, cut_text, elision, quoted
from sabir.syntax._write_elements import base64_chunks, elements_text
from sabir.syntax._write_notes import NoteFields, beside, note_text
from sabir.syntax._write_types import dims_text, element_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.elements import ElementType
    from sabir.ir import Constant, Tensor
    from sabir.syntax._detail import Detail

_DATA = frozenset({
    "float_data", "int32_data", "string_data", "int64_data", "raw_data", "double_data", "uint64_data",
})  # fmt: skip
_WRITTEN = _DATA | {"dims", "data_type", "name"}
_LOCATING = frozenset({"external_data", "data_location"})


class DataText(NamedTuple):
    """The data of a constant, in chunks; `after_equals` says that a type needs an equals sign before it.

    Data that is one chunk is a tuple.
    """

    chunks: tuple[str] | Iterator[str]
    after_equals: bool = False


class ConstantText(NamedTuple):
    """A constant as text: its note, its type, its name and its data."""

    note: str
    head: str
    name: str
    data: DataText

    def initializer_head(self, name: str) -> str:
        """Return the entry of an initializer, without the note before and the data after it."""
        return f"{self.head} {name} = " if self.head else f"{name} = "

    def value(self) -> Iterator[str]:
        """Yield the constant as an attribute contains it, without the note."""
        for part in filter(None, (self.head, self.name)):
            yield f"{part} "
        # without a name, only an equals sign shows that data in brackets or bytes follow
        if self.head and self.data.after_equals:
            yield "= "
        yield from self.data.chunks


def constant_text(constant: Constant, detail: Detail = WHOLE, *, unnamed: bool = False) -> ConstantText:
    """Return a constant as text; `unnamed` says that the value has no name that the text could show.

    A tensor of too many elements is written with their number in the place of its data. Raises
    WireError or UnsupportedError for a constant made in memory whose data cannot be decoded.
    """
    if isinstance(constant, SparseTensor):
        head = f"sparse_tensor({element_text(constant.element)}{dims_text(constant.shape)})"
        parts = [constant_text(part, detail) for part in (constant.values, constant.indices)]
        return ConstantText(note_text(NoteFields(wire=constant.wire)), head, "", DataText(_parts_text(parts)))
    if isinstance(constant, WireTensor):
        return _from_wire(constant, detail, unnamed=unnamed)
    note = note_text(NoteFields(name="") if unnamed else NoteFields())
    head = element_text(constant.element) + dims_text(constant.shape)
    return ConstantText(note, head, "", _elided(constant, detail.elements) or _elements(constant))


def pairs_text(entries: dict[str, str] | list[tuple[str, str]], detail: Detail = WHOLE) -> str:
    """Return `["key": "value", ...]`."""
    pairs = entries.items() if isinstance(entries, dict) else entries
    return f"[{', '.join(f'{quoted(k)}: {quoted_or_cut(v, detail)}' for k, v in pairs)}]"


def quoted_or_cut(text: str, detail: Detail) -> str:
    """Return a text as a string literal, cut where it is too long."""
    shown = detail.text(text)
    return cut_text(*shown) if isinstance(shown, CutText) else quoted(shown)


def _parts_text(parts: Iterable[ConstantText]) -> Iterator[str]:
    """Yield the two tensors of a sparse one."""
    separator = ""
    for part in parts:
        yield separator + beside(part.note)
        yield from part.value()
        separator = " "


def _elided(tensor: Tensor, elide: int | None) -> DataText | None:
    """Return the number of elements of a tensor that has too many to write; None for others."""
    if elide is None or isinstance(tensor, ExternalTensor):
        return None
    count = element_count(tensor.shape)
    return DataText((f"{{{elision(count, 'elements')}}}",)) if count > elide else None


def _elements(tensor: Tensor) -> DataText:
    chunks = elements_text(tensor)
    return _bytes(tensor.raw()) if chunks is None else DataText(chunks)


def _bytes(data: bytes | memoryview) -> DataText:
    return DataText(base64_chunks(data), after_equals=True)


def _from_wire(tensor: WireTensor, detail: Detail, *, unnamed: bool) -> ConstantText:
    proto, name = tensor.proto, tensor.proto.name
    fields = NoteFields(name="") if unnamed and not name else NoteFields()
    present = {field.name for field, _ in proto.ListFields()}
    written = _WRITTEN | _LOCATING if isinstance(tensor, ExternalTensor) else _WRITTEN
    element, shape = find_element(proto.data_type), tensor.shape
    known = element is not None and type(name) is str and min(shape, default=0) >= 0
    data = None
    if element is not None and known:
        data = _elided(tensor, detail.elements) or _data(tensor, element, present & _DATA)
    if element is None or data is None:
        return ConstantText(note_text(fields), "", "", _whole(tensor, detail.elements))
    if not present <= written or (not name and "name" in present) or unknown_bytes(proto):
        _add_extras(fields.entries, proto, present - written, detail)
    if name and not IDENTIFIER.fullmatch(name):
        name = quoted(name)
    return ConstantText(note_text(fields), element_text(element) + dims_text(shape), name, data)


def _data(tensor: WireTensor, element: ElementType, fields: set[str]) -> DataText | None:
    """Return the data of a tensor from a file; None where only its whole message represents it."""
    if isinstance(tensor, ExternalTensor):
        listed = tensor.proto.external_data
        if fields or not _are_plain(listed):
            return None
        return DataText((pairs_text([(e.key, e.value) for e in listed]),), after_equals=True)
    if not fields <= {"raw_data"} and not fields <= {element.field}:
        return None
    is_raw = "raw_data" in fields
    try:
        chunks = elements_text(tensor)
        if chunks is not None and not _has_stray_bits(tensor, element, is_raw=is_raw):
            return DataText(chunks)
    except (UnsupportedError, WireError):
        pass
    return _bytes(tensor.raw()) if is_raw else None


def _has_stray_bits(tensor: WireTensor, element: ElementType, *, is_raw: bool) -> bool:
    """Return whether bits are set that belong to no element: a boolean of 2, padding after small elements."""
    if element is not BOOL and not element.is_packed:
        return False
    if is_raw:
        return bytes(tensor.raw()) != bytes(pack(element, tensor.array()))
    return list(getattr(tensor.proto, element.field)) != list(to_field(element, tensor.array()))


def _are_plain(entries: Any) -> bool:
    """Return whether each pair of strings has both, and nothing else."""
    return all(
        type(e.key) is str
        and type(e.value) is str
        and e.SerializeToString() == StringStringEntryProto(key=e.key, value=e.value).SerializeToString()
        for e in entries
    )


def _add_extras(fields: dict[str, Any], proto: Any, names: set[str], detail: Detail) -> None:
    """Add what the message of a tensor contains beside its type, name and data."""
    if "doc_string" in names and proto.doc_string and type(proto.doc_string) is str:
        fields["doc_string"] = detail.text(proto.doc_string)
        names.remove("doc_string")
    if not detail.metadata:
        names.discard("metadata_props")
    pairs = {e.key: e.value for e in proto.metadata_props}
    if len(pairs) == len(proto.metadata_props) and _are_plain(proto.metadata_props):
        fields["metadata_props"] = detail.entries(pairs)
        names.discard("metadata_props")
    rest = TensorProto.FromString(unknown_bytes(proto))
    if not proto.name and proto.HasField("name"):
        rest.name = ""
    for field, content in proto.ListFields():
        if field.name in names:
            _copy(field, content, rest)
    fields["wire"] = rest.SerializeToString()


def _copy(field: Any, content: Any, rest: Any) -> None:
    if field.name in {"segment", "metadata_props", "external_data"}:
        getattr(rest, field.name).MergeFrom(content)
    elif field.type == field.TYPE_STRING and type(content) is bytes:
        rest.MergeFromString(encode_bytes(field.number, content))  # no UTF-8, which protobuf only reads
    else:
        setattr(rest, field.name, content)


def _whole(tensor: WireTensor, elide: int | None) -> DataText:
    """Return the bytes of the whole message of a tensor."""
    proto = tensor.proto
    if tensor.view is not None and not isinstance(tensor, ExternalTensor):
        proto = TensorProto()
        proto.CopyFrom(tensor.proto)
        proto.raw_data = bytes(tensor.view)
    wire = proto.SerializeToString()
    if elide is not None and len(wire) > max(elide, _SHORTEST_ELIDED):
        return DataText((f"{{{elision(len(wire), 'bytes')}}}",), after_equals=True)
    return _bytes(wire)


_SHORTEST_ELIDED = 64  # bytes of a message; the fields beside the data take some
