"""What `sabir run` says of values, and how it saves them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import FileError
from sabir.cli._screen import cut, plain
from sabir.elements import element
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sabir.ir import Array

_SHOWN = 4  # elements of an array, items of a collection
_LONGEST_NAME = 100
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # device names of Windows


def type_text(value: Any) -> str:
    """Return what a value is: `float[1,10]`, `sequence of 3`."""
    match value:
        case None:
            return "nothing"
        case list():
            return f"sequence of {len(cast('list[Any]', value))}"
        case dict():
            return f"map of {len(cast('dict[Any, Any]', value))}"
        case _:
            array = np.asarray(value)
            return str(TensorType(element(array.dtype), array.shape))


def summary(value: Any) -> str:
    """Return a value in a few words: its range, and its first elements."""
    match value:
        case None:
            return ""
        case list():
            return cut("; ".join(type_text(item) for item in cast("list[Any]", value)[:_SHOWN]))
        case dict():
            pairs = list(cast("dict[Any, Any]", value).items())[:_SHOWN]
            return cut(", ".join(f"{key!r}: {item}" for key, item in pairs))
        case _:
            return _array_summary(np.asarray(value))


def save_all(values: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """Write values as .npy files into a folder, made where it is missing; yield each name with its file's.

    A sequence becomes a file an item; maps and missing values have no array to write. Raises FileError.
    """
    taken: set[str] = set()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in values.items():
            for part, array in _arrays(name, value):
                file = f"{_file_name(part, taken)}.npy"
                np.save(folder / file, _storable(array), allow_pickle=False)
                yield part, file
    except OSError as error:
        raise FileError(f"{error.filename or folder}: {error.strerror or error}") from error


def _array_summary(array: Array) -> str:
    first = array.reshape(-1)[:_SHOWN].tolist()
    more = ", …" if array.size > _SHOWN else ""
    if array.dtype.kind in "OUb" or not array.size:
        return cut(f"[{', '.join(map(str, first))}{more}]")
    if array.dtype.kind == "c":
        return f"[{', '.join(f'{x:.4g}' for x in first)}{more}]"
    listed = f"[{', '.join(_short(x) for x in first)}{more}]"
    wide = array.astype(np.float64)
    usual = wide[np.isfinite(wide)]
    if not usual.size:
        return f"no finite value  {listed}"
    odd = f"  {array.size - usual.size:,} not finite" if usual.size < array.size else ""
    with np.errstate(over="ignore"):  # the sum behind a mean may be larger than any number
        mean = usual.mean()
    return f"min {usual.min():.4g}  mean {mean:.4g}  max {usual.max():.4g}{odd}  {listed}"


def _short(number: Any) -> str:
    return str(number) if isinstance(number, int) else f"{float(number):.3g}"


def _arrays(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    if isinstance(value, list):
        for place, item in enumerate(cast("list[Any]", value)):
            yield from _arrays(f"{name}.{place}", item)
    elif value is not None and not isinstance(value, dict):
        yield name, np.asarray(value)


def _storable(array: Array) -> Array:
    """Return an array in a dtype that .npy files have; the narrow types fit exactly into a wider one."""
    if array.dtype == object:
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:
        return array
    kind = element(array.dtype)
    narrow = np.int8 if kind.is_signed else np.uint8
    return array.astype(np.float32 if kind.is_float else narrow)


def _file_name(name: str, taken: set[str]) -> str:
    """Return a file name that resembles a value's, and means one new file in this folder on every system."""
    base = re.sub(r"[^\w.\-]", "_", plain(name)).lstrip(".")[:_LONGEST_NAME] or "output"
    if _RESERVED.fullmatch(base):
        base = f"_{base}"
    found, number = base, 1
    while found.casefold() in taken:
        number += 1
        found = f"{base}_{number}"
    taken.add(found.casefold())
    return found
