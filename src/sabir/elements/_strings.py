"""String elements: UTF-8 bytes in messages, `str` in arrays of objects."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import WireError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt


def decode(values: Iterable[Any], count: int) -> npt.NDArray[Any]:
    """Return `count` byte strings as an object array of `str`.

    Raises WireError, with the string's index, for anything but valid UTF-8 bytes.
    """
    array = np.empty(count, object)
    for index, value in enumerate(values):
        array[index] = _text(index, value)
    return array


def encode(array: npt.NDArray[Any]) -> list[bytes]:
    """Return an array of text, of any shape, as UTF-8 byte strings in C order.

    Raises WireError, with the element's index, for one that is no `str` or holds a lone surrogate.
    """
    if array.dtype.kind not in "OUT":
        raise WireError(f"string elements are str in numpy's object, found {quote(array.dtype)}")
    values: list[object] = array.reshape(-1).tolist()
    return list(starmap(_bytes, enumerate(values)))


def _text(index: int, value: Any) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as error:
        where = f"string {index} is not UTF-8 at byte {error.start}"
        raise WireError(f"{where}: {error.reason} in {quote(bytes(value))}") from error
    except TypeError as error:
        raise WireError(f"string {index} should be bytes, found {quote(value)}") from error


def _bytes(index: int, value: object) -> bytes:
    if not isinstance(value, str):
        raise WireError(f"string {index} should be str, found {quote(value)}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise WireError(f"string {index} has no UTF-8 form: {quote(value)}") from error
