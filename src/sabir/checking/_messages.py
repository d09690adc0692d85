"""The contents of a TensorProto: element type, number of elements, and the field with the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.elements import ElementType, element_count, field_size, find_element, packed_size
from sabir.files import untruncated
from sabir.ir import ExternalTensor, Tensor, WireTensor
from sabir.proto import TensorProto

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Buffer

_NAMES = {field: field.name for field in TensorProto.DESCRIPTOR.fields}
_VALUES = frozenset(name for name in _NAMES.values() if name.endswith("_data")) - {"external_data"}
_TEXTS = ("name", "doc_string")
_PAIRS = ("external_data", "metadata_props")
_LARGEST = 2**63 - 1
_PLAIN_SIZES = {
    number: kind.bits // 8
    for number in range(1, 29)
    if (kind := find_element(number)) is not None
    and kind.kind not in {"string", "bool"}
    and not kind.bits % 8
}
_PLAIN_FIELDS = {1: "float_data", 6: "int32_data", 7: "int64_data", 11: "double_data", 13: "uint64_data"}


class Data(NamedTuple):
    """The values of a well-formed message: `size` elements, at least one, in a single field.

    `length` is the number of bytes or entries of that field.
    """

    tensor: WireTensor
    element: ElementType
    size: int
    field: str
    length: int

    @property
    def raw(self) -> Buffer:
        """The bytes of raw_data; raises FileError if the file was truncated meanwhile."""
        view = self.tensor.view
        return self.tensor.proto.raw_data if view is None else untruncated(view)

    @property
    def entries(self) -> Any:
        """The entries of a typed field."""
        return getattr(self.tensor.proto, self.field)

    @property
    def needed(self) -> int:
        """The number of bytes or entries that the elements need."""
        size_in = packed_size if self.field == "raw_data" else field_size
        return size_in(self.element, self.size)


class TensorMessage(NamedTuple):
    """The header of a TensorProto: everything except the values.

    `element` is None if the standard has no such type, `size` is None if the dimensions are not a shape.
    `fields` are the non-empty value fields, `present` all fields that are present. `no_text` is a string that
    is not UTF-8, which the reader leaves as bytes. `data` is None if there are no values, if they are in
    another file, or if the message breaks a rule about any of these.
    """

    element: ElementType | None
    size: int | None
    fields: tuple[str, ...]
    present: tuple[str, ...]
    is_external: bool
    no_text: bytes | None
    data: Data | None


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor certainly violates no rule, as nearly all do not: its data has the right length.

    Such a message has a name, an element type, dimensions unless it is a scalar, and either raw data of
    whole bytes or a typed field in which every entry is valid.
    """
    if not isinstance(tensor, WireTensor):
        return True  # made from an array
    proto = tensor.proto
    width = size = _PLAIN_SIZES.get(proto.data_type, 0)
    for length in proto.dims:
        if length < 1:
            return False
        size *= length
        if size > _LARGEST:  # a million dimensions would make a number of a million digits
            return False
    if not size or not proto.name or type(proto.name) is not str:
        return False
    raw = proto.raw_data if tensor.view is None else tensor.view
    field = _PLAIN_FIELDS.get(proto.data_type, "")
    if len(raw) != size and not (field and not raw and len(getattr(proto, field)) * width == size):
        return False
    return len(proto.ListFields()) == (4 if proto.dims else 3)


def tensor_message(tensor: WireTensor) -> TensorMessage:
    """Return the header of a tensor's message; no value is read."""
    present = {_NAMES[field]: value for field, value in tensor.proto.ListFields()}
    element, size = find_element(present.get("data_type", 0)), size_of(present.get("dims", ()))
    fields = tuple(f for f in present if f in _VALUES and len(present[f]))
    external = isinstance(tensor, ExternalTensor)
    data = None
    if element is not None and size and len(fields) == 1 and not external and fields[0] in fields_of(element):
        # the view is the raw data of a large tensor, which the message itself does not contain
        is_view = fields[0] == "raw_data" and tensor.view is not None
        values = tensor.view if is_view and tensor.view is not None else present[fields[0]]
        data = Data(tensor, element, size, fields[0], len(values))
    return TensorMessage(element, size, fields, tuple(present), external, _no_text(present), data)


def _no_text(present: dict[str, Any]) -> bytes | None:
    for field in _TEXTS:
        text = present.get(field)
        if text is not None and type(text) is not str:
            return text
    for field in _PAIRS:
        for entry in present.get(field, ()):
            for text in (entry.key, entry.value):
                if type(text) is not str:
                    return text
    return None


def fields_of(element: ElementType) -> tuple[str, ...]:
    """Return the fields that may contain values of an element type."""
    return (element.field,) if element.kind == "string" else ("raw_data", element.field)


def size_of(dims: Iterable[int]) -> int | None:
    """Return the product of dimensions; None if one is negative or the product exceeds 64 bits."""
    sizes = tuple(dims)
    if min(sizes, default=0) < 0:
        return None
    size = element_count(sizes)
    return size if size <= _LARGEST else None
