"""What a tensor's message holds: its element type, how many elements, and where their values stand."""

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
    """The values of a sound message: `size` elements, more than none, that stand in one field.

    `length` is how many bytes or entries the field has.
    """

    tensor: WireTensor
    element: ElementType
    size: int
    field: str
    length: int

    @property
    def raw(self) -> Buffer:
        """The bytes, where the field is raw_data; raises FileError where their file was cut short."""
        view = self.tensor.view
        return self.tensor.proto.raw_data if view is None else untruncated(view)

    @property
    def entries(self) -> Any:
        """The entries, where the field is another."""
        return getattr(self.tensor.proto, self.field)

    @property
    def needed(self) -> int:
        """How many bytes or entries the elements take."""
        size_in = packed_size if self.field == "raw_data" else field_size
        return size_in(self.element, self.size)


class Held(NamedTuple):
    """What a message says before any of its values is looked at.

    `element` is None where the standard has no such type, `size` where the dimensions are no shape. `fields`
    are the value fields with anything in them, `present` all fields that are there. `no_text` is a text that
    is no UTF-8, which the reader leaves as bytes. `data` is None where there are no values, where they lie in
    another file, and where rules tell of all of these.
    """

    element: ElementType | None
    size: int | None
    fields: tuple[str, ...]
    present: tuple[str, ...]
    is_external: bool
    no_text: bytes | None
    data: Data | None


def is_plain(tensor: Tensor) -> bool:
    """Whether no rule can find fault with a tensor: as nearly all, it has as much data as it takes.

    Such a message has a name, an element type, maybe dimensions, and nothing else but raw data of whole
    bytes, or a field in which any entry is an element.
    """
    if not isinstance(tensor, WireTensor):
        return True  # made from an array
    proto = tensor.proto
    width = size = _PLAIN_SIZES.get(proto.data_type, 0)
    for length in proto.dims:
        if length < 1:
            return False
        size *= length
        if size > _LARGEST:  # or a million dimensions make a number of a million digits
            return False
    if not size or not proto.name or type(proto.name) is not str:
        return False
    kept = proto.raw_data if tensor.view is None else tensor.view
    field = _PLAIN_FIELDS.get(proto.data_type, "")
    if len(kept) != size and not (field and not kept and len(getattr(proto, field)) * width == size):
        return False
    return len(proto.ListFields()) == (4 if proto.dims else 3)


def held_by(tensor: WireTensor) -> Held:
    """Return what a tensor's message holds; no value is read."""
    said = {_NAMES[field]: value for field, value in tensor.proto.ListFields()}
    element, size = find_element(said.get("data_type", 0)), size_of(said.get("dims", ()))
    present = tuple(said)
    fields = tuple(f for f in present if f in _VALUES and len(said[f]))
    external = isinstance(tensor, ExternalTensor)
    data = None
    if element is not None and size and len(fields) == 1 and not external and fields[0] in fields_of(element):
        # large raw data is kept out of the message, and something short stands for it there
        kept = tensor.view if fields[0] == "raw_data" and tensor.view is not None else said[fields[0]]
        data = Data(tensor, element, size, fields[0], len(kept))
    return Held(element, size, fields, present, external, _no_text(said), data)


def _no_text(said: dict[str, Any]) -> bytes | None:
    for field in _TEXTS:
        text = said.get(field)
        if text is not None and type(text) is not str:
            return text
    for field in _PAIRS:
        for entry in said.get(field, ()):
            for text in (entry.key, entry.value):
                if type(text) is not str:
                    return text
    return None


def fields_of(element: ElementType) -> tuple[str, ...]:
    """Return the fields in which values of an element type may stand."""
    return (element.field,) if element.kind == "string" else ("raw_data", element.field)


def size_of(dims: Iterable[int]) -> int | None:
    """Return the product of dimensions, or None where one is negative or the product is past 64 bits."""
    sizes = tuple(dims)
    if min(sizes, default=0) < 0:
        return None
    size = element_count(sizes)
    return size if size <= _LARGEST else None
