"""The table of `_schema` as a serialised FileDescriptorProto.

It is encoded by hand, as importing protobuf's own `descriptor_pb2` takes longer than all the rest.
"""

from __future__ import annotations

from sabir.proto._schema import ENUMS, MESSAGES, PACKAGE
from sabir.proto._wire import encode_bytes, encode_number

_SCALARS = {"double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "string": 9, "bytes": 12}
_MESSAGE, _ENUM = 11, 14
_OPTIONAL, _REPEATED = 1, 3


def file_descriptor() -> bytes:
    """Return the whole schema as the bytes of one proto2 FileDescriptorProto."""
    enums = _declared_enums()
    return b"".join([
        _text(1, "sabir/onnx.proto"),
        _text(2, PACKAGE),
        *(encode_bytes(4, m.encode()) for m in _declared_messages(enums).values() if not m.parent),
        *(encode_bytes(5, _enum(n, v)) for n, v in enums.items() if "." not in n),
        _text(12, "proto2"),
    ])


class _Message:
    """A message type in the making: its encoded parts, and the types nested in it."""

    def __init__(self, full_name: str) -> None:
        self.parent, _, self.name = full_name.rpartition(".")
        self.nested: list[_Message] = []
        self.enums: list[bytes] = []
        self.oneofs: list[str] = []
        self.parts: list[bytes] = []

    def add(self, line: str, enums: dict[str, list[str]]) -> None:
        words = line.split()
        if words[0] == "reserved":
            self.parts.extend(_reserved(word) for word in words[1:])
            return
        number, name, kind, *oneof_clause = words
        oneof = oneof_clause[-1] if oneof_clause else ""
        if oneof and oneof not in self.oneofs:
            self.oneofs.append(oneof)
        index = self.oneofs.index(oneof) if oneof else None
        self.parts.append(encode_bytes(2, _field(int(number), name, kind, enums, index)))

    def encode(self) -> bytes:
        return b"".join([
            _text(1, self.name),
            *self.parts,
            *(encode_bytes(3, m.encode()) for m in self.nested),
            *(encode_bytes(4, e) for e in self.enums),
            *(encode_bytes(8, _text(1, o)) for o in self.oneofs),
        ])


def _declared_enums() -> dict[str, list[str]]:
    declared: dict[str, list[str]] = {}
    for line in ENUMS.strip().splitlines():
        name, *values = line.split()
        declared[name] = list(values)
    return declared


def _declared_messages(enums: dict[str, list[str]]) -> dict[str, _Message]:
    """Return the message types by full name; in the table a type comes before those nested in it."""
    messages: dict[str, _Message] = {}
    message = _Message("")
    for line in MESSAGES.strip().splitlines():
        if line.startswith(" "):
            message.add(line, enums)
            continue
        message = messages[line] = _Message(line)
        if message.parent:
            messages[message.parent].nested.append(message)
    for name, values in enums.items():
        owner = name.rpartition(".")[0]
        if owner:
            messages[owner].enums.append(_enum(name, values))
    return messages


def _field(number: int, name: str, kind: str, enums: dict[str, list[str]], oneof: int | None) -> bytes:
    base = kind.rstrip("[]*")
    scalar = _SCALARS.get(base)
    parts = [
        _text(1, name),
        encode_number(3, number),
        encode_number(4, _REPEATED if "[]" in kind else _OPTIONAL),
        encode_number(5, scalar or (_ENUM if base in enums else _MESSAGE)),
    ]
    if scalar is None:
        parts.append(_text(6, f".{PACKAGE}.{base}"))
    if kind.endswith("*"):
        parts.append(encode_bytes(8, encode_number(2, 1)))
    if oneof is not None:
        parts.append(encode_number(9, oneof))
    return b"".join(parts)


def _enum(full_name: str, values: list[str]) -> bytes:
    parts = [_text(1, full_name.rpartition(".")[2])]
    for value in values:
        name, _, number = value.partition("=")
        parts.append(encode_bytes(2, _text(1, name) + encode_number(2, int(number))))
    return b"".join(parts)


def _reserved(word: str) -> bytes:
    if not word[0].isdigit():
        return _text(10, word)
    first, _, last = word.partition("-")
    # the end of a reserved range is exclusive
    return encode_bytes(9, encode_number(1, int(first)) + encode_number(2, int(last or first) + 1))


def _text(number: int, value: str) -> bytes:
    return encode_bytes(number, value.encode())
