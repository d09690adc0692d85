"""Values in files of one message each, as in the official test data.

The message is a `TensorProto`, `SequenceProto`, `MapProto` or `OptionalProto`. The declared type of the input
or output says which, as the file does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import UnsupportedError, WireError, quote
from sabir.elements import element, find_element, to_field
from sabir.files import map_file, replace_file
from sabir.ir import (
    ArrayTensor,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    WireTensor,
)
from sabir.proto import (
    BulkWriter,
    MapProto,
    OptionalProto,
    SequenceProto,
    TensorProto,
    has_unknown,
    read_message,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sabir.ir import Buffer, Type

    Message: TypeAlias = Any

_WORDS = {
    "TensorProto": "tensor",
    "SequenceProto": "sequence",
    "MapProto": "map",
    "OptionalProto": "optional",
}
_KINDS: dict[str, int] = {name.lower(): number for name, number in SequenceProto.DataType.items()}
_UNDEFINED = _KINDS["undefined"]
_STRING: int = TensorProto.STRING


def load_value(path: Path, declared: Type | None = None) -> Any:
    """Return the value of a declared type in a file: an array, or a list, dict or None of the same.

    Without a declared type it is a tensor. Raises FileError where the file cannot be read, WireError where it
    contains no such value, UnsupportedError for a sparse tensor.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = save_value(np.float32([1, 2]), Path(folder, 'input_0.pb'))
    ...     load_value(Path(folder, 'input_0.pb'))
    array([1., 2.], dtype=float32)
    """
    data = map_file(path)
    if not len(data):
        raise WireError("the file is empty")
    return _read(data, declared)


def save_value(value: Any, path: Path, declared: Type | None = None, *, name: str = "") -> str:
    """Write a value of a declared type to a file in one step, and return the name of the message in it.

    Without a declared type, a list is a sequence, a dict a map, None an optional. Raises FileError where the
    file cannot be written, UnsupportedError for a value that no message can contain.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_value([np.float32([1, 2])], Path(folder, 'input_0.pb'))
    'SequenceProto'
    """
    writer = _ValueWriter()
    message = writer.message(value, declared)
    message.name = name
    replace_file(path, writer.chunks(message))
    return message.DESCRIPTOR.name


# writing


class _ValueWriter:
    """Turns values into messages; large data stays outside of them until it is written."""

    def __init__(self) -> None:
        self._bulk = BulkWriter()

    def chunks(self, message: Message) -> Iterable[Buffer]:
        """Return the bytes of a message; raises WireError for one that is too large."""
        return cast("Iterable[Buffer]", self._bulk.chunks(message))

    def message(self, value: Any, declared: Type | None) -> Message:
        """Return a value as the message of its declared type, or of its Python type where there is none."""
        if value is None or isinstance(declared, OptionalType):
            return self._optional(value, declared.item if isinstance(declared, OptionalType) else None)
        if isinstance(value, list):
            item = declared.item if isinstance(declared, SequenceType) else None
            return self._sequence(cast("list[Any]", value), item)
        if isinstance(value, dict):
            return self._map(
                cast("dict[Any, Any]", value), declared if isinstance(declared, MapType) else None
            )
        return self._tensor(value, declared)

    def _tensor(self, value: Any, declared: Type | None) -> Message:
        typed = isinstance(value, (np.ndarray, np.generic)) or not isinstance(declared, TensorType)
        tensor = ArrayTensor(np.asarray(value, None if typed else cast("TensorType", declared).element.dtype))
        proto = TensorProto(dims=tensor.shape, data_type=tensor.element.number)
        if tensor.element.kind == "string":
            proto.string_data.extend(to_field(tensor.element, tensor.array()))
        else:
            proto.raw_data = self._bulk.placeholder(tensor.raw())
        return proto

    def _sequence(self, items: Iterable[Any], declared: Type | None) -> Message:
        messages = [self.message(item, declared) for item in items]
        words = {_WORDS[m.DESCRIPTOR.name] for m in messages} or {_word(declared)}
        if len(words) > 1:
            raise UnsupportedError(
                f"a sequence has items of one type, and these are {', '.join(sorted(words))}"
            )
        (word,) = words
        proto = SequenceProto(elem_type=_KINDS[word])
        if messages:
            getattr(proto, f"{word}_values").extend(messages)
        return proto

    def _map(self, value: dict[Any, Any], declared: MapType | None) -> Message:
        proto = MapProto(key_type=_key_type(value, declared))
        if proto.key_type == _STRING:
            proto.string_keys.extend(str(key).encode("utf-8", "surrogateescape") for key in value)
        else:
            proto.keys.extend(int(key) for key in value)
        items = self._sequence(value.values(), declared.value if declared is not None else None)
        proto.values.CopyFrom(items)
        return proto

    def _optional(self, value: Any, declared: Type | None) -> Message:
        if value is None:
            return OptionalProto(elem_type=_UNDEFINED)
        message = self.message(value, declared)
        word = _WORDS[message.DESCRIPTOR.name]
        proto = OptionalProto(elem_type=_KINDS[word])
        getattr(proto, f"{word}_value").CopyFrom(message)
        return proto


def _word(declared: Type | None) -> str:
    """Return the name of a declared type in the messages; a tensor where nothing is declared."""
    match declared:
        case SequenceType():
            return "sequence"
        case MapType():
            return "map"
        case OptionalType():
            return "optional"
        case SparseTensorType():
            return "sparse_tensor"
        case _:
            return "tensor"


def _key_type(value: dict[Any, Any], declared: MapType | None) -> int:
    if declared is not None:
        return declared.key.number
    first = next(iter(value), 0)
    return _STRING if isinstance(first, str) else element(np.asarray(first).dtype).number


# reading


def _read(data: memoryview | bytes, declared: Type | None) -> Any:
    match declared:
        case SequenceType():
            return _of_message(_parsed(SequenceProto, data))
        case MapType():
            return _of_message(_parsed(MapProto, data))
        case OptionalType():
            return _read_optional(data, declared)
        case SparseTensorType():
            raise UnsupportedError("a sparse tensor cannot be read from a file alone")
        case _:
            return WireTensor(read_message(TensorProto, data)).array()


def _read_optional(data: memoryview | bytes, declared: OptionalType) -> Any:
    """Return an optional value; a file may also contain the value alone, without the message around it."""
    try:
        message = _parsed(OptionalProto, data)
        # a sequence of tensors reads as an optional tensor, too: both messages have the same fields
        if declared.item is None or message.elem_type in {_UNDEFINED, _KINDS[_word(declared.item)]}:
            return _of_message(message)
    except WireError:
        pass
    return _read(data, declared.item)


def _parsed(message_class: Any, data: memoryview | bytes) -> Message:
    message = read_message(message_class, data)
    if has_unknown(message):
        raise WireError(
            f"no {message_class.DESCRIPTOR.name}: it has fields that such a message does not have"
        )
    return message


def _of_message(message: Message) -> Any:
    """Return the value in a message; raises WireError where the message contradicts itself."""
    match message.DESCRIPTOR.name:
        case "SequenceProto":
            return [_of_message(m) for m in _values(message, "_values")]
        case "MapProto":
            return _of_map(message)
        case "OptionalProto":
            found = list(_values(message, "_value"))
            return _of_message(found[0]) if found else None
        case _:
            return WireTensor(message).array()


def _values(message: Message, ending: str) -> Iterable[Message]:
    """Return the messages in the one field that the element type of a sequence or an optional names."""
    name = message.DESCRIPTOR.name
    filled = [field.name for field, _ in message.ListFields() if field.message_type is not None]
    word = next((w for w, number in _KINDS.items() if number == message.elem_type), None)
    if word is None:
        raise WireError(
            f"no {name}: its elem_type is {message.elem_type}, which the standard does not define"
        )
    if filled not in ([], [f"{word}{ending}"]):
        raise WireError(f"no {name}: its elem_type is {word}, and it has {', '.join(filled)}")
    if word == "sparse_tensor":
        raise UnsupportedError(f"a {name} of sparse tensors cannot be read")
    if not filled:
        if ending == "_value" and word != "undefined":
            raise WireError(f"no {name}: its elem_type is {word}, and it has no value")
        return ()
    found = getattr(message, filled[0])
    return (found,) if ending == "_value" else found


def _of_map(message: Message) -> dict[Any, Any]:
    element_type = find_element(message.key_type)
    if element_type is None or (message.string_keys and message.keys):
        raise WireError("no MapProto: its key type is unknown, or its keys have two types")
    keys: list[Any] = _texts(message.string_keys) if element_type.kind == "string" else list(message.keys)
    values = _of_message(message.values)
    if len(keys) != len(values):
        raise WireError(f"no MapProto: it has {len(keys)} keys and {len(values)} values")
    found = dict(zip(keys, values, strict=True))
    if len(found) < len(keys):
        raise WireError("no MapProto: it has a key twice")
    return {key: value[()] if isinstance(value, np.ndarray) else value for key, value in found.items()}


def _texts(keys: Iterable[bytes]) -> list[str]:
    try:
        return [key.decode() for key in keys]
    except UnicodeDecodeError as error:
        raise WireError(f"no MapProto: a key is not UTF-8: {quote(error.object)}") from error
