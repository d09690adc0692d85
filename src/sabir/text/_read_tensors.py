"""Tensor literals: a type, then `{...}` or the place of a file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sabir.base import WireError
from sabir.elements import STRING, field_size, from_field
from sabir.ir import ArrayTensor, SparseTensor, SparseTensorType, TensorType
from sabir.text._external import external_tensor
from sabir.text._numbers import BadNumberError, doubles, floats, integers
from sabir.text._read_types import read_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.elements import ElementType
    from sabir.ir import Array, Constant, Shape, Tensor, Type
    from sabir.text._tokens import Cursor

Numbers = TypeVar("Numbers")


def read_constant(cursor: Cursor, declared: Type | None, start: int) -> Constant:
    """Read the data of a tensor whose type, which began at token `start`, has been read.

    Raises ParseError for a type that no constant has, and for data that does not fit it.
    """
    if isinstance(declared, SparseTensorType):
        shape = _numeric(cursor, declared.shape, start)
        values, indices = _part(cursor), _part(cursor)
        if values.element != declared.element:
            raise cursor.error(f"the values must be {declared.element}, as the sparse tensor is", start)
        return SparseTensor(values, indices, shape)
    if not isinstance(declared, TensorType):
        raise cursor.error("a constant needs a tensor type, such as float[2]", start)
    return _tensor(cursor, declared.element, _numeric(cursor, declared.shape, start))


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


def _part(cursor: Cursor) -> Tensor:
    start = cursor.at
    part = read_constant(cursor, read_type(cursor), start)
    if isinstance(part, SparseTensor):
        raise cursor.error("a sparse tensor is made of dense ones", start)
    return part


def _numeric(cursor: Cursor, shape: Shape | None, start: int) -> tuple[int, ...]:
    if shape is None:
        raise cursor.error("a constant needs a known shape: no brackets for a scalar, else numbers", start)
    dims = tuple(d for d in shape if isinstance(d, int) and d >= 0)
    if len(dims) < len(shape):
        raise cursor.error("the dimensions of a constant must be numbers that are not negative", start)
    return dims


def _tensor(cursor: Cursor, kind: ElementType, shape: tuple[int, ...]) -> Tensor:
    start = cursor.at
    if cursor.tokens[start] == "[":
        return external_tensor(kind, shape, read_pairs(cursor))
    if cursor.tokens[start] != "{" and math.prod(shape):
        raise cursor.expected("the elements in braces, or the place of the data in brackets")
    found = _strings(cursor, shape) if kind is STRING else _numbers(cursor, kind, math.prod(shape))
    try:
        return ArrayTensor(found.reshape(shape))
    except ValueError as error:
        raise cursor.error(f"the shape {list(shape)} cannot be held: {error}", start) from None


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
    if cursor.skip("{") and not cursor.skip("}"):
        found.append(cursor.string("a string"))
        while cursor.skip(","):
            found.append(cursor.string("a string"))
        cursor.expect("}")
    _require_count(cursor, len(found), math.prod(shape), start)
    array = np.empty(len(found), object)
    array[:] = found
    return array


def _numbers(cursor: Cursor, kind: ElementType, size: int) -> Array:
    start = cursor.at
    literals = _literals(cursor)
    if kind.field in {"float_data", "double_data"}:
        _require_count(cursor, len(literals), size * (1 + kind.is_complex), start)
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
    cursor: Cursor, read: Callable[[list[str]], Numbers], literals: list[str], start: int, kind: ElementType
) -> Numbers:
    try:
        return read(literals)
    except BadNumberError as bad:
        cursor.at = start + 1 + 2 * bad.index
        coded = kind.is_float and kind.field == "int32_data"
        hint = f"{kind} elements are given by their bit patterns" if coded else ""
        raise cursor.expected(bad.reason, hint) from None


def _one_by_one(cursor: Cursor, kind: ElementType, values: list[int], start: int) -> Array:
    """Return narrow integers that are written as such, not several to an entry as in the typed field."""
    low = -(1 << kind.bits - 1) if kind.is_signed else 0
    high = low + (1 << kind.bits) - 1
    wrong = next((i for i, v in enumerate(values) if not low <= v <= high), None)
    if wrong is not None:
        raise cursor.error(f"{kind} takes {low} to {high}", start + 1 + 2 * wrong)
    return np.array(values, np.int8).astype(kind.dtype)


def _require_count(cursor: Cursor, found: int, expected: int, start: int) -> None:
    if found != expected:
        raise cursor.error(f"the type asks for {expected} entries here, found {found}", start)
