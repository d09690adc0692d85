"""Elements in the typed fields: `float_data`, `int32_data` and the others."""

from __future__ import annotations

from array import array as machine_array
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import WireError, quote
from sabir.elements import _strings
from sabir.elements._arrays import flat, read_only
from sabir.elements._bits import expand, shrink
from sabir.elements._types import BOOL, STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sabir.elements._types import ElementType

_DTYPES: dict[str, np.dtype[Any]] = {
    "float_data": np.dtype(np.float32),
    "double_data": np.dtype(np.float64),
    "int32_data": np.dtype(np.int32),
    "int64_data": np.dtype(np.int64),
    "uint64_data": np.dtype(np.uint64),
}
# The codes of Python's `array`, which unlike numpy refuses to cut 1.5 down to 1. Lists meant for
# int32_data are read wider than the field, so that a value too large for it can be named.
_CODES = {"float_data": "f", "double_data": "d", "int32_data": "q", "int64_data": "q", "uint64_data": "Q"}


def field_size(element: ElementType, count: int) -> int:
    """Return how many entries of its typed field `count` elements take.

    A complex element takes two. An entry holds one byte's worth of 2-bit or 4-bit elements, but
    only one of 6 bits. Raises WireError for a negative count.
    """
    if count < 0:
        raise WireError(f"a tensor cannot have {count} elements")
    if element.is_complex:
        return 2 * count
    return -(-count // _per_entry(element))


def field_bounds(element: ElementType) -> tuple[int, int]:
    """Return the least and greatest entry of an integer field for elements of this type."""
    if element is BOOL:
        return 0, 1
    if _per_entry(element) > 1:
        return 0, 0xFF
    if _is_coded(element):
        return 0, (1 << element.bits) - 1
    limits = np.iinfo(element.dtype)
    return int(limits.min), int(limits.max)


def from_field(
    element: ElementType, values: Sequence[Any] | npt.NDArray[Any], count: int
) -> npt.NDArray[Any]:
    """Return the `count` elements in the typed field's `values` as an array of shape (count,).

    `values` are the entries of the field `element.field`: numbers, or bytes for strings. The
    result is read-only, and a view of `values` where that is an array laid out as the elements.

    Raises WireError when there are more or fewer entries than `count` elements take, when an
    entry is outside the element's range or of another kind, and for strings that are not UTF-8.
    """
    expected = field_size(element, count)
    found = values.size if isinstance(values, np.ndarray) else len(values)
    if found != expected:
        taken = f"{count} elements of {element} take {expected} entries of {element.field}"
        raise WireError(f"{taken}, found {found}")
    if element is STRING:
        return read_only(_strings.decode(values, count))
    entries = _entries(element, values)
    if element.field in {"float_data", "double_data"}:
        return read_only(entries.view(element.dtype))
    _require_range(element, entries)
    return read_only(_decoded(element, entries, count))


def to_field(element: ElementType, array: npt.NDArray[Any]) -> npt.NDArray[Any] | list[bytes]:
    """Return the entries of the typed field `element.field` that hold `array`, of any shape.

    Strings give a list of UTF-8 bytes, the others an array of shape (entries,) in the field's own
    dtype, which may share the array's memory.

    Raises WireError when the array's dtype is not the element's, or a string has no UTF-8 form.
    """
    if element is STRING:
        return _strings.encode(array)
    row = flat(element, array)
    dtype = _DTYPES[element.field]
    if element.is_complex:
        return row.view(dtype)
    if _per_entry(element) > 1:
        return shrink(row, element.bits).astype(dtype)
    if _is_coded(element):
        return row.view(_code_dtype(element)).astype(dtype)
    return row.astype(dtype, copy=False)


def _decoded(element: ElementType, entries: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return the elements in integer `entries` that were found in range."""
    if _per_entry(element) > 1:
        return expand(entries.astype(np.uint8), element.bits, count).view(element.dtype)
    if _is_coded(element):
        return entries.astype(_code_dtype(element)).view(element.dtype)
    return entries.astype(element.dtype, copy=False)


def _entries(element: ElementType, values: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `values` as a contiguous native array; integers may be wider than the field."""
    if isinstance(values, np.ndarray):
        return _array_entries(element, values)
    # A list, since `array` would take bytes for machine values.
    listed = values if isinstance(values, list) else list(values)
    code = _CODES[element.field]
    try:
        return np.frombuffer(machine_array(code, listed), code)
    except (OverflowError, TypeError) as error:
        if isinstance(error, OverflowError) and _DTYPES[element.field].kind in "iu":
            raise _out_of_range(element, listed) from None
        raise WireError(f"{element.field} of {element} has an entry it cannot hold: {error}") from error


def _array_entries(element: ElementType, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    wanted = _DTYPES[element.field]
    native = values.dtype.newbyteorder("=")
    if native != wanted and not (wanted.kind in "iu" and native.kind in "iu"):
        raise WireError(f"{element.field} of {element} holds {wanted}, found {quote(values.dtype)}")
    return np.ascontiguousarray(values).reshape(-1).astype(native, copy=False)


def _require_range(element: ElementType, entries: npt.NDArray[Any]) -> None:
    if entries.dtype == element.dtype or not entries.size:
        return
    low, high = field_bounds(element)
    if low <= int(entries.min()) and int(entries.max()) <= high:
        return
    raise _out_of_range(element, entries.tolist())


def _out_of_range(element: ElementType, entries: list[Any]) -> WireError:
    """Return the error that names the first of `entries` outside the element's range."""
    low, high = field_bounds(element)
    index = next(i for i, value in enumerate(entries) if not low <= value <= high)
    where = f"entry {index} of {element.field} is {entries[index]}"
    return WireError(f"{where}, outside the {low} to {high} that {element} elements take there")


def _per_entry(element: ElementType) -> int:
    """Return how many elements share an entry: as many as fill a byte evenly."""
    return 8 // element.bits if element.is_packed else 1


def _is_coded(element: ElementType) -> bool:
    """Return whether entries are bit patterns rather than values."""
    return element.is_float and element.field == "int32_data"


def _code_dtype(element: ElementType) -> np.dtype[Any]:
    return np.dtype(f"=u{element.dtype.itemsize}")
