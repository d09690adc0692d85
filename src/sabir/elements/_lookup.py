"""Element types by number, name or numpy dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabir.base import UnsupportedError, WireError, quote
from sabir.elements._types import ELEMENTS, STRING, ElementType

_BY_NUMBER = {kind.number: kind for kind in ELEMENTS}
_BY_NAME = {spelling: kind for kind in ELEMENTS for spelling in (kind.name, kind.name.upper())}
_BY_DTYPE = {kind.dtype: kind for kind in ELEMENTS}
# A table of scalar types, because np.dtype accepts any class as an object type.
_ALIASES = (bool, int, float, complex, np.intc, np.uintc, np.longlong, np.ulonglong)
_BY_TYPE: dict[type[Any], ElementType] = {
    **{kind.dtype.type: kind for kind in ELEMENTS},
    **{scalar: _BY_DTYPE[np.dtype(scalar)] for scalar in _ALIASES},
    **dict.fromkeys((object, str, bytes, np.str_, np.bytes_), STRING),
}
_TEXT_KINDS = "UST"  # str, bytes and numpy 2's variable-width strings


def find_element(number: int) -> ElementType | None:
    """Return the type with this TensorProto.DataType number, or None where there is none.

    >>> find_element(10).name, find_element(999)
    ('float16', None)
    """
    return _BY_NUMBER.get(number)


def element(key: int | str | np.dtype[Any] | type[Any] | ElementType) -> ElementType:
    """Return the element type that `key` names.

    `key` is a TensorProto.DataType number, a name as in type strings (`"float"`) or as in the
    enum (`"FLOAT"`), a numpy dtype of either byte order, or a scalar type. Text dtypes and object
    mean string.

    Raises WireError for a number that ONNX does not define, and UnsupportedError for a name or
    dtype that ONNX has no type for.

    >>> element('bfloat16').number, element(np.float32).name, element(7).name
    (16, 'float', 'int64')
    """
    if isinstance(key, ElementType):
        return key
    if isinstance(key, (int, np.integer)):
        return _numbered(int(key))
    if isinstance(key, str):
        return _named(key)
    found = _of_dtype(key) if isinstance(key, np.dtype) else _BY_TYPE.get(key)
    if found is None:
        raise UnsupportedError(f"ONNX has no element type for {quote(key)}")
    return found


def _numbered(number: int) -> ElementType:
    found = _BY_NUMBER.get(number)
    if found is None:
        raise WireError(f"element type {number} is not defined: ONNX numbers its types 1 to {len(ELEMENTS)}")
    return found


def _named(name: str) -> ElementType:
    found = _BY_NAME.get(name)
    if found is None:
        raise UnsupportedError(f"ONNX has no element type named {quote(name)}")
    return found


def _of_dtype(dtype: np.dtype[Any]) -> ElementType | None:
    if dtype.kind in _TEXT_KINDS:
        return STRING
    return _BY_DTYPE.get(dtype) or _BY_DTYPE.get(dtype.newbyteorder("="))
