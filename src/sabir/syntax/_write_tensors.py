"""Tensors as text: every element, in a form that gives the same bits when it is read.

Types without a decimal form stand as the typed fields of a `TensorProto` hold them, which `onnx.parser` reads
too: bit patterns, several to an entry for 4 and 2 bits. Where numbers cannot tell all (which NaN, data that
does not fit its shape) the bytes stand instead: of the elements, or of the whole message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import UnsupportedError, WireError
from sabir.elements import BOOL, STRING, find_element, pack, to_field
from sabir.ir import ExternalTensor, SparseTensor, WireTensor
from sabir.proto import StringStringEntryProto, TensorProto, encode_bytes, unknown_bytes
from sabir.syntax._words import IDENTIFIER, quoted
from sabir.syntax._write_notes import Fields, base64_text, beside, note_text
from sabir.syntax._write_types import dims_text, element_text

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Array, Constant, Tensor

_DATA = frozenset({
    "float_data", "int32_data", "string_data", "int64_data", "raw_data", "double_data", "uint64_data",
})  # fmt: skip
_TOLD = _DATA | {"dims", "data_type", "name"}
_ELSEWHERE = frozenset({"external_data", "data_location"})


class Shown(NamedTuple):
    """A constant as text: what is noted of it, its type, its name and its data."""

    note: str
    head: str
    name: str
    data: str

    def initializer(self, name: str) -> str:
        """Return the entry that gives a value its data, without the note."""
        return f"{self.head} {name} = {self.data}" if self.head else f"{name} = {self.data}"

    def value(self) -> str:
        """Return the constant as an attribute holds it, without the note."""
        # without a name, only an equals sign tells that data in brackets or bytes follow
        sign = "= " if self.head and self.data.startswith(("[", "base64")) else ""
        return " ".join(filter(None, (self.head, self.name, sign + self.data)))


def shown(constant: Constant, *, unnamed: bool = False) -> Shown:
    """Return a constant as text; `unnamed` says that the value has no name to be read by.

    Raises WireError or UnsupportedError for one that was made in memory and whose data cannot be had.
    """
    if isinstance(constant, SparseTensor):
        head = f"sparse_tensor({element_text(constant.element)}{dims_text(constant.shape)})"
        parts = (shown(part) for part in (constant.values, constant.indices))
        data = " ".join(beside(part.note) + part.value() for part in parts)
        return Shown(note_text(Fields(wire=constant.wire)), head, "", data)
    if not isinstance(constant, WireTensor):
        fields = Fields(name="") if unnamed else Fields()
        head = element_text(constant.element) + dims_text(constant.shape)
        return Shown(note_text(fields), head, "", _numbers(constant))
    return _from_wire(constant, unnamed=unnamed)


def pairs_text(entries: dict[str, str] | list[tuple[str, str]]) -> str:
    """Return `["key": "value", ...]`."""
    pairs = entries.items() if isinstance(entries, dict) else entries
    return f"[{', '.join(f'{quoted(k)}: {quoted(v)}' for k, v in pairs)}]"


def float_text(value: float) -> str:
    """Return the shortest text that reads as the same 32-bit float."""
    with np.errstate(over="ignore"):
        return _one_float(np.float32(value))


def floats_text(values: tuple[float, ...]) -> str:
    """Return the texts of many floats, as `float_text` does, separated by commas."""
    with np.errstate(over="ignore"):
        entries = np.array(values, np.float32)
    shown = map(_one_float, entries) if np.isnan(entries).any() else entries.astype("U").tolist()
    return ", ".join(shown)


def _from_wire(tensor: WireTensor, *, unnamed: bool) -> Shown:
    proto, name = tensor.proto, tensor.proto.name
    fields = Fields(name="") if unnamed and not name else Fields()
    present = {field.name for field, _ in proto.ListFields()}
    told = _TOLD | _ELSEWHERE if isinstance(tensor, ExternalTensor) else _TOLD
    kind, shape = find_element(proto.data_type), tensor.shape
    known = kind is not None and type(name) is str and min(shape, default=0) >= 0
    data = _data(tensor, kind, present & _DATA) if kind is not None and known else ""
    if kind is None or not data:
        return Shown(note_text(fields), "", "", base64_text(_whole(tensor)))
    if not present <= told or (not name and "name" in present) or unknown_bytes(proto):
        _add_extras(fields.entries, proto, present - told)
    if name and not IDENTIFIER.fullmatch(name):
        name = quoted(name)
    return Shown(note_text(fields), element_text(kind) + dims_text(shape), name, data)


def _data(tensor: WireTensor, kind: ElementType, fields: set[str]) -> str:
    """Return the data of a tensor from a file; empty where only its whole message tells all."""
    if isinstance(tensor, ExternalTensor):
        listed = tensor.proto.external_data
        return "" if fields or not _are_plain(listed) else pairs_text([(e.key, e.value) for e in listed])
    if not fields <= {"raw_data"} and not fields <= {kind.field}:
        return ""
    stored = "raw_data" in fields
    try:
        data = _numbers(tensor)
    except (UnsupportedError, WireError):
        return base64_text(tensor.raw()) if stored else ""
    if data.startswith("{") and not _has_stray_bits(tensor, kind, stored=stored):
        return data
    return base64_text(tensor.raw()) if stored else ""


def _has_stray_bits(tensor: WireTensor, kind: ElementType, *, stored: bool) -> bool:
    """Return whether bits are set that belong to no element: a boolean of 2, padding after small elements."""
    if kind is not BOOL and not kind.is_packed:
        return False
    if stored:
        return bytes(tensor.raw()) != bytes(pack(kind, tensor.array()))
    return list(getattr(tensor.proto, kind.field)) != list(to_field(kind, tensor.array()))


def _are_plain(entries: Any) -> bool:
    """Return whether each pair of strings has both, and nothing else."""
    return all(
        type(e.key) is str
        and type(e.value) is str
        and e.SerializeToString() == StringStringEntryProto(key=e.key, value=e.value).SerializeToString()
        for e in entries
    )


def _add_extras(fields: dict[str, Any], proto: Any, names: set[str]) -> None:
    """Add what a tensor's message says beside its type, name and data."""
    if "doc_string" in names and proto.doc_string and type(proto.doc_string) is str:
        fields["doc_string"] = proto.doc_string
        names.remove("doc_string")
    pairs = {e.key: e.value for e in proto.metadata_props}
    if len(pairs) == len(proto.metadata_props) and _are_plain(proto.metadata_props):
        fields["metadata_props"] = pairs
        names.discard("metadata_props")
    rest = TensorProto.FromString(unknown_bytes(proto))
    if not proto.name and proto.HasField("name"):
        rest.name = ""
    for field, held in proto.ListFields():
        if field.name in names:
            _copy(field, held, rest)
    fields["wire"] = rest.SerializeToString()


def _copy(field: Any, held: Any, rest: Any) -> None:
    if field.name in {"segment", "metadata_props", "external_data"}:
        getattr(rest, field.name).MergeFrom(held)
    elif field.type == field.TYPE_STRING and type(held) is bytes:
        rest.MergeFromString(encode_bytes(field.number, held))  # no UTF-8, which protobuf only reads
    else:
        setattr(rest, field.name, held)


def _whole(tensor: WireTensor) -> bytes:
    proto = tensor.proto
    if tensor.view is not None and not isinstance(tensor, ExternalTensor):
        proto = TensorProto()
        proto.CopyFrom(tensor.proto)
        proto.raw_data = bytes(tensor.view)
    return proto.SerializeToString()


def _numbers(tensor: Tensor) -> str:
    """Return the elements in braces, or their bytes where there is a NaN that no number tells."""
    kind, array = tensor.element, tensor.array()
    entries = to_field(kind, array)
    if kind is STRING:
        return f"{{{','.join(map(quoted, array.reshape(-1).tolist()))}}}"
    if not isinstance(entries, np.ndarray):
        raise TypeError(f"{kind} is no string, yet its typed field is a list")
    if entries.dtype.kind != "f":
        return f"{{{_joined(entries)}}}"
    nans = np.isnan(entries)
    if nans.any():
        if not _are_usual(entries[nans]):
            return base64_text(tensor.raw())
        return f"{{{','.join(map(_one_float, entries))}}}"
    if entries.dtype == np.float32:
        return f"{{{b','.join(entries.astype('S').tolist()).decode()}}}"
    return f"{{{_joined(entries)}}}"


def _are_usual(nans: Array) -> bool:
    """Return whether these are the NaNs that the word stands for, of either sign."""
    word = np.dtype(f"u{nans.itemsize}")
    usual = np.array(np.nan, nans.dtype).view(word)
    sign = word.type(1 << 8 * nans.itemsize - 1)
    return bool(((nans.view(word) | sign) == usual | sign).all())


def _joined(entries: Array) -> str:
    """Return numbers as Python writes them, shortest for doubles, separated by commas."""
    return str(entries.tolist())[1:-1].replace(" ", "")


def _one_float(value: Any) -> str:
    return _signed_nan(str(value), negative=bool(np.signbit(value)))


def _signed_nan(text: str, *, negative: bool) -> str:
    return "-nan" if text == "nan" and negative else text
