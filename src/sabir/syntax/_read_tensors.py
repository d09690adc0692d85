"""Tensor literals: a type, and then the elements in braces, bytes, or the location of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from sabir.base import ParseError, WireError, quote
from sabir.elements import STRING, element_count, field_size, from_field, to_field
from sabir.ir import ArrayTensor, SparseTensor, SparseTensorType, TensorType, WireTensor
from sabir.proto import SparseTensorProto, TensorProto, read_message
from sabir.syntax._external import EXTERNAL, external_tensor
from sabir.syntax._numbers import BadNumberError, doubles, floats, integers
from sabir.syntax._read_notes import at_base64, read_base64, read_note
from sabir.syntax._read_types import read_type
from sabir.syntax._words import LETTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.elements import ElementType
    from sabir.ir import Array, Constant, Shape, Tensor, Type
    from sabir.syntax._numbers import Literals
    from sabir.syntax._read_notes import Note
    from sabir.syntax._tokens import Cursor

_BRACKETS = frozenset({"{", "["})
Numbers = TypeVar("Numbers")


class TensorExtras(NamedTuple):
    """The parts of a tensor in a text, other than its type and data."""

    name: str = ""
    doc: str = ""
    metadata: dict[str, str] | None = None
    wire: bytes = b""


def read_constant(
    cursor: Cursor, declared: Type | None, start: int, *, note: Note | None = None, name: str = ""
) -> Constant:
    """Read the data of a constant whose type, from token `start` on, has been read.

    Without a type, the bytes of a whole `TensorProto` are read. `note` and `name` are those before the data.
    Raises ParseError for a type that no constant has, and for data that does not fit it.
    """
    refuse_elided(cursor)
    if isinstance(declared, SparseTensorType):
        return _sparse(cursor, declared, start, note)
    if declared is None and at_base64(cursor):
        return _whole(cursor)
    if not isinstance(declared, TensorType):
        raise cursor.error("a constant needs a tensor type, such as float[2]", start)
    extras = TensorExtras(name)
    if note is not None:
        wire = note.message("wire", TensorProto)
        extras = TensorExtras(name, note.text("doc_string"), note.pairs("metadata_props"), wire)
    return _tensor(cursor, declared.element, _numeric(cursor, declared.shape, start), extras)


def refuse_elided(cursor: Cursor) -> None:
    """Raise ParseError at a bracket in which a listing shows a number of elements in their place."""
    if cursor.tokens[cursor.at] in _BRACKETS and cursor.at_elision(cursor.at + 1):
        raise cursor.elided()


def read_pairs(cursor: Cursor) -> list[tuple[str, str]]:
    """Read `["key": "value", ...]`."""
    cursor.expect("[")
    pairs: list[tuple[str, str]] = []
    if cursor.skip("]"):
        return pairs
    while True:
        key = cursor.string("a key")
        cursor.expect(":")
        pairs.append((key, cursor.string("a value")))
        if not cursor.skip(","):
            break
    cursor.expect("]")
    return pairs


def _sparse(cursor: Cursor, declared: SparseTensorType, start: int, note: Note | None) -> SparseTensor:
    if declared.shape is None or not all(isinstance(d, int) for d in declared.shape):
        raise cursor.error("a sparse constant needs a shape of numbers", start)
    shape = tuple(d for d in declared.shape if isinstance(d, int))
    values, indices = _part(cursor), _part(cursor)
    if values.element != declared.element:
        raise cursor.error(f"the values must be {declared.element}, as the sparse tensor is", start)
    return SparseTensor(values, indices, shape, note.message("wire", SparseTensorProto) if note else b"")


def _part(cursor: Cursor) -> Tensor:
    """Read one of the two dense tensors in a sparse one."""
    start, note = cursor.at, read_note(cursor)
    if at_base64(cursor):
        return _whole(cursor)
    declared = read_type(cursor)
    part = read_named(cursor, declared, start, note)
    if isinstance(part, SparseTensor):
        raise cursor.error("the parts of a sparse tensor are dense tensors", start)
    if note is not None:
        note.done()
    return part


def read_named(cursor: Cursor, declared: Type, start: int, note: Note | None) -> Constant:
    """Read what follows the type of a constant that is no initializer: its name, if any, and its data."""
    name = ""
    following = cursor.tokens[cursor.at]
    if not at_base64(cursor) and (following[:1] == '"' or following[:1] in LETTERS):
        name = cursor.name("the name of a tensor")
    cursor.skip("=")
    return read_constant(cursor, declared, start, note=note, name=name)


def _whole(cursor: Cursor) -> Tensor:
    """Read the bytes of the whole message of a tensor."""
    start = cursor.at
    try:
        proto = read_message(TensorProto, read_base64(cursor))
    except WireError as error:
        raise cursor.error(f"these bytes are no tensor: {error}", start) from None
    return external_tensor(proto, cursor.opener) if proto.data_location == EXTERNAL else WireTensor(proto)


def _numeric(cursor: Cursor, shape: Shape | None, start: int) -> tuple[int, ...]:
    if shape is None:
        raise cursor.error("a constant needs a known shape: no brackets for a scalar, else numbers", start)
    dims = tuple(d for d in shape if isinstance(d, int) and d >= 0)
    if len(dims) < len(shape):
        raise cursor.error("the dimensions of a constant must be numbers of at least 0", start)
    return dims


def _tensor(cursor: Cursor, kind: ElementType, shape: tuple[int, ...], extras: TensorExtras) -> Tensor:
    start = cursor.at
    if cursor.tokens[start] == "[":
        proto = _message(kind, shape, extras)
        proto.data_location = EXTERNAL
        for key, value in read_pairs(cursor):
            proto.external_data.add(key=key, value=value)
        return external_tensor(proto, cursor.opener)
    if at_base64(cursor):
        proto = _message(kind, shape, extras)
        proto.raw_data = read_base64(cursor)
        return WireTensor(proto)
    tensor = ArrayTensor(_elements(cursor, kind, shape))
    if not any(extras):
        return tensor
    proto = _message(kind, shape, extras)
    if kind is STRING:
        proto.string_data.extend(to_field(kind, tensor.array()))
    else:
        proto.raw_data = bytes(tensor.raw())
    return WireTensor(proto)


def _message(kind: ElementType, shape: tuple[int, ...], extras: TensorExtras) -> Any:
    """Return the message of a tensor without its data."""
    proto = TensorProto.FromString(extras.wire)
    proto.data_type = kind.number
    proto.dims.extend(shape)
    if extras.name:
        proto.name = extras.name
    if extras.doc:
        proto.doc_string = extras.doc
    for key, value in (extras.metadata or {}).items():
        proto.metadata_props.add(key=key, value=value)
    return proto


def _elements(cursor: Cursor, kind: ElementType, shape: tuple[int, ...]) -> Array:
    start = cursor.at
    if cursor.tokens[start][:1] != "{" and element_count(shape):
        raise cursor.expected("the elements in braces, or the location of the data in brackets")
    found = (
        _strings(cursor, shape) if kind is STRING else _numeric_elements(cursor, kind, element_count(shape))
    )
    try:
        return found.reshape(shape)
    except ValueError as error:
        raise cursor.error(f"no array has the shape {quote(list(shape))}: {error}", start) from None


def _numeric_elements(cursor: Cursor, kind: ElementType, size: int) -> Array:
    """Read numbers, at first all at once; an error is then raised for the number that is wrong."""
    start = cursor.at
    if not cursor.at_numbers():
        return _numbers(cursor, kind, _literals(cursor), size, start)
    cursor.at += 1
    try:
        return _numbers(cursor, kind, cursor.tokens[start][1:-1], size, start)
    except ParseError:
        cursor.at = start
        cursor.divide()
        return _numbers(cursor, kind, _literals(cursor), size, start)


def _literals(cursor: Cursor) -> list[str]:
    """Return the tokens between braces, which commas must separate; none where there are no braces."""
    start = cursor.at
    if not cursor.skip("{") or cursor.skip("}"):
        return []
    try:
        end = cursor.tokens.index("}", start)
    except ValueError:
        raise cursor.error("this brace is never closed", start) from None
    separators = cursor.tokens[start + 2 : end : 2]
    if separators.count(",") < len(separators) or (end - start) % 2:
        wrong = next((i for i, found in enumerate(separators) if found != ","), None)
        cursor.at = end if wrong is None else start + 2 + 2 * wrong
        raise cursor.expected("a number" if wrong is None else "',' or '}'")
    cursor.at = end + 1
    return cursor.tokens[start + 1 : end : 2]


def _strings(cursor: Cursor, shape: tuple[int, ...]) -> Array:
    start = cursor.at
    found: list[str] = []
    if cursor.at_numbers():
        cursor.divide()
    if cursor.skip("{") and not cursor.skip("}"):
        found.append(cursor.string("a string"))
        while cursor.skip(","):
            found.append(cursor.string("a string"))
        cursor.expect("}")
    _require_count(cursor, len(found), element_count(shape), start)
    array = np.empty(len(found), object)
    array[:] = found
    return array


def _numbers(cursor: Cursor, kind: ElementType, literals: Literals, size: int, start: int) -> Array:
    if kind.field in {"float_data", "double_data"}:
        count = literals.count(",") + 1 if isinstance(literals, str) else len(literals)
        _require_count(cursor, count, size * (1 + kind.is_complex), start)
        read = floats if kind.field == "float_data" else doubles
        return _converted(cursor, read, literals, start, kind).view(kind.dtype)
    values = _converted(cursor, integers, literals, start, kind)
    expected = field_size(kind, size)
    if kind.is_packed and kind.is_integer and len(values) == size != expected:
        return _one_by_one(cursor, kind, values, start)
    _require_count(cursor, len(values), expected, start)
    try:
        return from_field(kind, values, size)
    except WireError as error:
        raise cursor.error(str(error), start) from None


def _converted(
    cursor: Cursor, read: Callable[[Literals], Numbers], literals: Literals, start: int, kind: ElementType
) -> Numbers:
    try:
        return read(literals)
    except BadNumberError as bad:
        if isinstance(literals, str):
            raise cursor.error(bad.reason, start) from None
        cursor.at = start + 1 + 2 * bad.index
        coded = kind.is_float and kind.field == "int32_data"
        hint = f"{kind} elements are written as bit patterns" if coded else ""
        raise cursor.expected(bad.reason, hint) from None


def _one_by_one(cursor: Cursor, kind: ElementType, values: list[int], start: int) -> Array:
    """Return narrow integers that are written one by one, not several to an entry as in the typed field."""
    low = -(1 << kind.bits - 1) if kind.is_signed else 0
    high = low + (1 << kind.bits) - 1
    wrong = next((i for i, v in enumerate(values) if not low <= v <= high), None)
    if wrong is not None:
        raise cursor.error(f"{kind} takes {low} to {high}", start + 1 + 2 * wrong)
    return np.array(values, np.int8).astype(kind.dtype)


def _require_count(cursor: Cursor, found: int, expected: int, start: int) -> None:
    if found != expected:
        raise cursor.error(f"the type needs {expected} entries here, found {found}", start)
