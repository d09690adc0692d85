"""Tensor messages from values in Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import SabirError
from sabir.compat.onnx.onnx_ml_pb2 import TensorProto
from sabir.elements import (
    DOUBLE,
    FLOAT,
    INT64,
    STRING,
    ElementType,
    element,
    find_element,
    pack,
    packed_size,
    to_field,
)
from sabir.opsets.families.numbers.casting import converted

if TYPE_CHECKING:
    from collections.abc import Sequence

_BYTE = 8
# types whose field has the numbers themselves
_AS_GIVEN = frozenset({FLOAT, DOUBLE, INT64})


def number_of(dtype: np.dtype[Any]) -> int:
    """Return the element type of arrays of a dtype; raises ValueError where there is none."""
    try:
        return element(np.dtype(dtype)).number
    except (SabirError, TypeError) as error:
        raise ValueError(
            f"ONNX has no element type for the dtype {dtype!r}; convert the array, for example to float32"
        ) from error


def make(name: str, data_type: int, dims: Sequence[int], values: Any, *, raw: bool) -> Any:
    """Return a TensorProto; see `helper.make_tensor`."""
    if data_type == TensorProto.UNDEFINED and not raw:
        raise TypeError(f"the tensor {name!r} has the element type UNDEFINED; pass one such as FLOAT")
    tensor = TensorProto(name=name, data_type=data_type, dims=dims)
    kind = find_element(data_type)
    if raw and kind is STRING:
        raise TypeError(f"the tensor {name!r} has strings, and `raw_data` holds only numbers; pass raw=False")
    if kind is None:
        raise KeyError(data_type)
    count = math.prod(dims)
    if raw:
        data = _raw(kind, values)
        _require_count(tensor, "bytes", packed_size(kind, count), len(data))
        tensor.raw_data = data
    elif kind is STRING:
        strings = [encoded(v) for v in np.asarray(values, object).ravel()]
        _require_count(tensor, "strings", count, len(strings))
        tensor.string_data.extend(strings)
    else:
        _fill(tensor, kind, count, values)
    return tensor


def _fill(tensor: Any, kind: ElementType, count: int, values: Any) -> None:
    field = getattr(tensor, kind.field)
    if isinstance(values, list) and kind in _AS_GIVEN:
        _require_count(tensor, "numbers", count, len(cast("list[Any]", values)))
        try:  # protobuf converts a flat list of numbers itself, at half of the cost of an array
            field.extend(cast("list[Any]", values))
        except (TypeError, ValueError):
            del field[:]
        else:
            return
    array = _array(kind, values)
    _require_count(tensor, "numbers", count, array.size)
    field.extend(np.asarray(to_field(kind, array)).tolist())


def _array(kind: ElementType, values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, bytes):
        raise TypeError("bytes are the content of `raw_data`; pass raw=True, or a sequence of numbers")
    if kind.dtype.kind in "biufc" and kind.bits >= _BYTE and kind.dtype.isbuiltin == 1:
        return np.asarray(values, kind.dtype)
    array = np.asarray(values)
    if kind.is_float and array.dtype != kind.dtype:
        wide = array if array.dtype.kind == "f" else array.astype(np.float32)
        return converted(wide, kind)
    return array.astype(kind.dtype)


def _require_count(tensor: Any, unit: str, needed: int, given: int) -> None:
    if needed != given:
        raise ValueError(
            f"the tensor {tensor.name!r} of shape {list(tensor.dims)} takes {needed} {unit}, and `vals` has "
            f"{given}; change the shape or the values"
        )


def _raw(kind: ElementType, values: Any) -> bytes:
    """Return the bytes of `raw_data`: values themselves, or an array packed."""
    if not isinstance(values, np.ndarray):
        return values
    array = cast("np.ndarray[Any, Any]", values)
    return bytes(pack(kind, array)) if array.dtype == kind.dtype else array.tobytes()


def encoded(value: Any) -> bytes:
    """Return text as UTF-8, bytes as they are."""
    return value.encode("utf-8") if isinstance(value, str) else value
