"""How `sabir run` shows values, and saves them."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import FileError, UnsupportedError, quote
from sabir.cli._screen import cut, plain
from sabir.debugging import statistics_of, type_text
from sabir.elements import element
from sabir.files import is_device_name, replace_file
from sabir.ir import OptionalType
from sabir.serial import save_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sabir.ir import Array, Type

ARCHIVE = ".npz"
_FILES_OF_ONE = (".npy", ".pb")
_EXTENSION = re.compile(r"\.[A-Za-z]\w*")
_SHOWN = 4  # elements of an array, items of a collection
_LONGEST_NAME = 100


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


def as_json(value: Any) -> dict[str, Any]:
    """Return the type of a value, and of a tensor the shape and the range."""
    data: dict[str, Any] = {"type": type_text(value)}
    if value is None or isinstance(value, (list, dict)):
        return data
    array = np.asarray(value)
    data |= {"element": str(element(array.dtype)), "shape": list(array.shape)}
    numbers = statistics_of(array)
    if numbers is None or not array.size:
        return data
    if numbers.finite:
        data |= {"min": numbers.minimum, "max": numbers.maximum, "mean": numbers.mean}
    return data | {"not_finite": array.size - numbers.finite}


class Saved(NamedTuple):
    """A value in a file: its name, the file's name, and what the file contains."""

    name: str
    file: str
    form: str


def is_file_of_one(path: Path) -> bool:
    """Return whether a path names a file of one value, and no folder of this name exists."""
    return path.suffix.lower() in _FILES_OF_ONE and not path.is_dir()


def require_place(path: Path, values: int) -> None:
    """Raise UnsupportedError for a path that cannot contain so many values, before they are computed."""
    if is_file_of_one(path) and values != 1:
        advice = "name a folder, or a file that ends in .npz"
        raise UnsupportedError(
            f"{path}: this file has one value, and the model has {values} outputs; {advice}"
        )
    known = (ARCHIVE, *_FILES_OF_ONE)
    if path.suffix.lower() not in known and _EXTENSION.fullmatch(path.suffix) and not path.is_dir():
        raise UnsupportedError(
            f"{path}: results are saved as {', '.join(known)}, and not as {path.suffix}; name such a file "
            "or a folder without an extension"
        )


def save_one(name: str, value: Any, path: Path, declared: Type | None) -> Saved:
    """Write one value into a file, whose extension is .npy or .pb.

    Raises FileError, and UnsupportedError for a value that the format cannot represent.
    """
    if path.suffix.lower() == ".pb":
        return Saved(name, path.name, save_value(value, path, declared, name=name))
    array = None if value is None or isinstance(value, (list, dict)) else np.asarray(value)
    if array is None or not _is_storable(array):
        raise UnsupportedError(
            f"{path}: {quote(name)}, {type_text(value)}, does not fit .npy; name a .pb file"
        )
    written = io.BytesIO()
    np.lib.format.write_array(written, _plain_array(array), allow_pickle=False)
    replace_file(path, [written.getbuffer()])
    return Saved(name, path.name, "NumPy array")


def save_each(
    values: Mapping[str, Any], folder: Path, types: Mapping[str, Type | None] | None = None
) -> Iterator[Saved]:
    """Write each value into a file of a folder, which is created if it is missing; yield what was written.

    A tensor is a .npy file where that format has its element type; everything else is a .pb file with the
    message of its type, which `types` declares by name. Raises FileError, or UnsupportedError for a value
    that no message can represent.
    """
    declared = types or {}
    files = ValueFolder(folder)
    for name, value in values.items():
        yield files.save(name, value, declared.get(name))


class ValueFolder:
    """A folder that gets a file for each value, as `save_each` writes them, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: set[str] = set()

    def save(self, name: str, value: Any, declared: Type | None = None) -> Saved:
        """Write one value; raises as `save_each`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            stem = _file_name(name, self._taken)
            return Saved(name, *_saved(value, self._folder, stem, declared, name))
        except OSError as error:
            raise FileError(f"{error.filename or self._folder}: {error.strerror or error}") from error


def save_archive(values: Mapping[str, Any], path: Path) -> Iterator[Saved]:
    """Write all values into one .npz file, in one step; return what was written.

    Raises FileError, and UnsupportedError for a value that the .npy format cannot represent.
    """
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        array = None if value is None or isinstance(value, (list, dict)) else np.asarray(value)
        if array is None or not _is_storable(array):
            advice = "name a folder with --output, which takes .pb files too"
            raise UnsupportedError(f"{path}: {quote(name)}, {type_text(value)}, does not fit .npz; {advice}")
        arrays[name] = _plain_array(array)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():  # np.savez takes names as keywords, and refuses some
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    replace_file(path, [written.getbuffer()])
    return (Saved(name, path.name, "NumPy array") for name in arrays)


def _saved(value: Any, folder: Path, stem: str, declared: Type | None, name: str) -> tuple[str, str]:
    """Write one value; return the file's name and what it contains."""
    array = None if value is None or isinstance(value, (list, dict)) else np.asarray(value)
    if array is None or isinstance(declared, OptionalType) or not _is_storable(array):
        return f"{stem}.pb", save_value(value, folder / f"{stem}.pb", declared, name=name)
    np.save(folder / f"{stem}.npy", _plain_array(array), allow_pickle=False)
    return f"{stem}.npy", "NumPy array"


def _plain_array(array: Array) -> Array:
    """Return an array as the .npy format has it: texts in elements of one width."""
    return array.astype(np.str_) if array.dtype == object else array


def _is_storable(array: Array) -> bool:
    """Return whether a .npy file preserves an array: it has few element types, and trims texts."""
    if array.dtype == object:
        return not any(isinstance(text, str) and text.endswith("\0") for text in array.flat)
    return array.dtype.isbuiltin == 1 or array.dtype.kind == "U"


def _array_summary(array: Array) -> str:
    first = array.reshape(-1)[:_SHOWN].tolist()
    more = ", …" if array.size > _SHOWN else ""
    if array.dtype.kind in "OUb" or not array.size:
        return cut(f"[{', '.join(map(str, first))}{more}]")
    numbers = statistics_of(array)
    if numbers is None:
        return f"[{', '.join(f'{x:.4g}' for x in first)}{more}]"
    listed = f"[{', '.join(_short(x) for x in first)}{more}]"
    if not numbers.finite:
        return f"no finite value  {listed}"
    others = f"  {array.size - numbers.finite:,} not finite" if numbers.finite < array.size else ""
    return f"min {numbers.minimum:.4g}  mean {numbers.mean:.4g}  max {numbers.maximum:.4g}{others}  {listed}"


def _short(number: Any) -> str:
    return str(number) if isinstance(number, int) else f"{float(number):.3g}"


def _file_name(name: str, taken: set[str]) -> str:
    """Return a file name similar to a value's name: unused in this folder, and valid on every system."""
    base = re.sub(r"[^\w.\-]", "_", plain(name)).lstrip(".")[:_LONGEST_NAME] or "output"
    if is_device_name(base):
        base = f"_{base}"
    found, number = base, 1
    while found.casefold() in taken:
        number += 1
        found = f"{base}_{number}"
    taken.add(found.casefold())
    return found
