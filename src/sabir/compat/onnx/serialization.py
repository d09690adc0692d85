"""Formats of files: protobuf, textproto, JSON, the text syntax, and those that a program registers."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, cast

from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError, EncodeError, Message

from sabir.base import suggest
from sabir.compat.onnx import parser, printer

_Proto = TypeVar("_Proto")
_ENCODING = "utf-8"


class ProtoSerializer(Protocol):
    """What a format needs: its name, its file extensions, and both directions.

    `supported_format` is the name that `onnx.load(format=…)` takes, `file_extensions` the extensions with the
    dot that select the format.

    >>> registry.get('protobuf').supported_format
    'protobuf'
    """

    supported_format: str
    file_extensions: frozenset[str]

    def serialize_proto(self, proto: Any) -> Any:
        """Return a message as the bytes of a file."""

    def deserialize_proto(self, serialized: Any, proto: _Proto) -> _Proto:
        """Fill `proto` from the content of a file, and return it."""
        ...


class _Registry:
    """The formats by name and by file extension."""

    def __init__(self) -> None:
        self._by_name: dict[str, ProtoSerializer] = {}
        self._name_by_extension: dict[str, str] = {}

    def register(self, serializer: ProtoSerializer) -> None:
        """Add a format; it replaces one of the same name."""
        self._by_name[serializer.supported_format] = serializer
        for extension in serializer.file_extensions:
            self._name_by_extension[extension] = serializer.supported_format

    def get(self, fmt: str) -> ProtoSerializer:
        """Return a format by its name; raises ValueError for an unknown one."""
        found = self._by_name.get(fmt)
        if found is None:
            known = ", ".join(self._by_name)
            raise ValueError(
                f"there is no format {fmt!r}{suggest(fmt, self._by_name)}; known formats are {known}, "
                "and `registry.register` adds one"
            )
        return found

    def get_format_from_file_extension(self, file_extension: str) -> str | None:
        """Return the name of the format of a file extension such as `.json`, or None."""
        return self._name_by_extension.get(file_extension)


class _ProtobufSerializer:
    supported_format = "protobuf"
    file_extensions = frozenset({".onnx", ".pb"})

    def serialize_proto(self, proto: Any) -> bytes:
        _require_message(proto, "serialized")
        try:
            return proto.SerializeToString()
        except EncodeError:
            raise
        except ValueError as error:  # protobuf says with it that a message is larger than 2 GiB
            raise EncodeError(
                f"protobuf cannot write this message: {error}; it has at most 2 GiB, keep tensors in files"
            ) from error

    def deserialize_proto(self, serialized: Any, proto: _Proto) -> _Proto:
        if not isinstance(serialized, (bytes, bytearray, memoryview)):
            raise TypeError(f"a protobuf message is read from bytes, not from {type(serialized).__name__}")
        target: Any = proto
        data = bytes(cast("Any", serialized))
        consumed = target.ParseFromString(data)
        if consumed is not None and consumed != len(data):
            raise DecodeError(f"the message ends after {consumed} of {len(data)} bytes")
        return proto


class _TextProtoSerializer:
    supported_format = "textproto"
    file_extensions = frozenset({".textproto", ".prototxt", ".pbtxt", ".txtpb"})

    def serialize_proto(self, proto: Any) -> bytes:
        return text_format.MessageToString(proto).encode(_ENCODING)

    def deserialize_proto(self, serialized: bytes | str, proto: _Proto) -> _Proto:
        _require_message(proto, "read")
        parsed: Any = text_format.Parse(_text(serialized), _message(proto))
        return parsed


class _JsonSerializer:
    supported_format = "json"
    file_extensions = frozenset({".json", ".onnxjson"})

    def serialize_proto(self, proto: Any) -> bytes:
        return json_format.MessageToJson(proto, preserving_proto_field_name=True).encode(_ENCODING)

    def deserialize_proto(self, serialized: bytes | str, proto: _Proto) -> _Proto:
        _require_message(proto, "read")
        parsed: Any = json_format.Parse(_text(serialized), _message(proto))
        return parsed


class _TextualSerializer:
    supported_format = "onnxtxt"
    file_extensions = frozenset({".onnxtxt", ".onnxtext"})

    def serialize_proto(self, proto: Any) -> bytes:
        return printer.to_text(proto).encode(_ENCODING)

    def deserialize_proto(self, serialized: bytes | str, proto: _Proto) -> _Proto:
        target: Any = proto
        target.CopyFrom(parser.parse_model(_text(serialized)))
        return proto


def _text(serialized: Any) -> str:
    if isinstance(serialized, str):
        return serialized
    if not isinstance(serialized, (bytes, bytearray)):
        raise TypeError(f"a text format is read from bytes or str, not from {type(serialized).__name__}")
    return serialized.decode(_ENCODING)


def _message(proto: Any) -> Message:
    return proto


def _require_message(proto: Any, verb: str) -> None:
    if not isinstance(proto, Message):
        raise TypeError(f"a protobuf message is {verb}, not an object of type {type(proto).__name__}")


registry = _Registry()
for _serializer in (_ProtobufSerializer(), _TextProtoSerializer(), _JsonSerializer(), _TextualSerializer()):
    registry.register(_serializer)

__all__ = ["ProtoSerializer", "registry"]
