"""Elements in `raw_data`: little-endian, in C order, small types packed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from sabir.base import WireError
from sabir.elements._arrays import flat, read_only
from sabir.elements._bits import expand, shrink
from sabir.elements._types import BOOL, STRING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from mmap import mmap

    import numpy.typing as npt

    from sabir.elements._types import ElementType

BytesLike: TypeAlias = "bytes | bytearray | memoryview | mmap"

_COUNTABLE = 2**64


def element_count(shape: Iterable[int]) -> int:
    """Return how many elements a shape has.

    Above 64 bits the result is only a lower bound: the product of a million dimensions would take minutes and
    have a million digits.

    >>> element_count((2, 3))
    6
    """
    count, dims = 1, tuple(shape)
    if 0 in dims:
        return 0
    for length in dims:
        count *= length
        if abs(count) > _COUNTABLE:
            break
    return count


def packed_size(element: ElementType, count: int) -> int:
    """Return how many bytes `count` elements take in `raw_data`; a last partial byte counts whole.

    Raises WireError for strings, which are never there, and for a negative count.

    >>> packed_size(INT4, 3), packed_size(DOUBLE, 3)
    (2, 24)
    """
    if element is STRING:
        raise WireError("strings have no raw form: they are in string_data")
    if count < 0:
        raise WireError(f"a tensor cannot have {count} elements")
    return -(-count * element.bits // 8)


def unpack(element: ElementType, data: BytesLike, count: int) -> npt.NDArray[Any]:
    """Return the `count` elements in `data` as a read-only array of shape (count,).

    Elements of a byte or more are a view of `data`, with whatever alignment it has; smaller ones
    are expanded to one a byte. Padding bits are ignored.

    Raises WireError for strings, and when `data` is not exactly as long as `count` elements are.

    >>> unpack(INT4, bytes.fromhex('e103'), 3).tolist()
    [1, -2, 3]
    """
    expected = packed_size(element, count)
    found = memoryview(data).nbytes
    if found != expected:
        raise WireError(f"{count} elements of {element} take {expected} bytes, found {found}")
    if element.is_packed:
        codes = expand(np.frombuffer(data, np.uint8), element.bits, count)
        return read_only(codes.view(element.dtype))
    words = np.frombuffer(data, _word(element, "<")).astype(_word(element), copy=False)
    if element is BOOL:
        words = _truth(words)
    return read_only(words.view(element.dtype))


def pack(element: ElementType, array: npt.NDArray[Any]) -> memoryview:
    """Return the raw bytes of `array`, of any shape: a read-only, flat view of unsigned bytes.

    It is the array's own memory where that has the layout of `raw_data` already: C order,
    little-endian, elements of a byte or more. Where elements are smaller, bits above an element's
    own are dropped, and the last byte's spare ones are zero.

    Raises WireError for strings, and when the array's dtype is not the element's.

    >>> bytes(pack(INT4, np.array([1, -2, 3], INT4.dtype))).hex()
    'e103'
    """
    if element is STRING:
        raise WireError("strings have no raw form: they are in string_data")
    row = flat(element, array)
    if element.is_packed:
        return shrink(row, element.bits).data.toreadonly()
    words = row.view(_word(element)).astype(_word(element, "<"), copy=False)
    return words.view(np.uint8).data.toreadonly()


@cache
def _word(element: ElementType, order: Literal["=", "<"] = "=") -> np.dtype[Any]:
    """Return the unsigned integer whose byte order is swapped as one: half of a complex element.

    Bytes go through integers because numpy swaps no ml_dtypes, and so that no NaN is touched.
    """
    size = element.dtype.itemsize // (2 if element.is_complex else 1)
    return np.dtype(f"{order}u{size}")


def _truth(codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `codes` with each nonzero byte as 1; numpy misbehaves on other bools."""
    return codes if codes.max(initial=0) <= 1 else (codes != 0).view(np.uint8)
