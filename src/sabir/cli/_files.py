"""Input values from files: .npy, .npz, .pb, and pictures."""

from __future__ import annotations

import zipfile
import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import (
    ACCIDENTS,
    ExternalDataError,
    FeedError,
    FileError,
    UnsupportedError,
    WireError,
    listed_names,
    quote,
    suggest,
)
from sabir.ir import OptionalType, TensorType
from sabir.serial import PICTURES, Normalization, load_value, read_image

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sabir.ir import Array, Type


def read_value(path: Path, kind: Type | None, name: str, normalization: Normalization) -> Any:
    """Return the value of an input of type `kind` from a file; raises FeedError or FileError, naming it."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return as_declared(_read_numpy(path), present_type(kind), path)
    if suffix == ".npz":
        return as_declared(_only_array(read_archive(path), path, name), present_type(kind), path)
    if suffix == ".pb":
        return read_message(path, kind)
    if suffix in PICTURES:
        return read_image(path, present_type(kind), normalization)
    raise FeedError(
        f"{path}: inputs are read from .npy, .npz and .pb files and from pictures ({', '.join(PICTURES)})"
    )


def read_message(path: Path, kind: Type | None) -> Any:
    """Return the value in a file of one TensorProto, SequenceProto, MapProto or OptionalProto."""
    try:
        return load_value(path, kind)
    except (WireError, ExternalDataError, UnsupportedError) as error:
        wanted = f"value of type {kind}" if kind is not None else "tensor"
        raise FeedError(f"{path}: no {wanted} can be read from this file: {error}") from error


def read_archive(path: Path) -> dict[str, Array]:
    """Return the arrays of a .npz file by name."""
    loaded = _loaded(path)
    if not isinstance(loaded, dict):
        raise FeedError(f"{path}: this is one array, not an archive of arrays; name it .npy")
    return loaded


def as_declared(array: Array, kind: Type | None, path: Path) -> Array:
    """Return an array in the declared element type if that is one which the .npy format lacks.

    Raises FeedError for integers that the declared type cannot represent.
    """
    if not isinstance(kind, TensorType):
        return array
    wanted = kind.element.dtype
    if wanted.kind == "O" and array.dtype.kind == "U":
        return array.astype(wanted)
    if wanted.isbuiltin == 1 or array.dtype == wanted:
        return array
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)
    converted = array.astype(wanted)
    if kind.element.is_integer and (converted.astype(array.dtype) != array).any():
        raise FeedError(f"{path}: some of its numbers are not {kind.element}, the declared type of the input")
    return converted


def present_type(kind: Type | None) -> Type | None:
    """Return the type of a value that is present, for an optional type too."""
    return kind.item if isinstance(kind, OptionalType) else kind


def _read_numpy(path: Path) -> Array:
    loaded = _loaded(path)
    if isinstance(loaded, dict):
        raise FeedError(f"{path}: this is an archive of arrays, not a .npy file; name it .npz")
    return loaded


def _loaded(path: Path) -> Array | dict[str, Array]:
    try:
        with path.open("rb") as file:
            loaded: Any = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return cast("Array", loaded)
            return {name: loaded[name] for name in loaded}
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or f'this is not a {path.suffix} file'}") from error
    except (*ACCIDENTS, EOFError, SyntaxError, zipfile.BadZipFile, zlib.error) as error:
        message = f"this is not a {path.suffix} file of plain numbers or texts: {error}"
        raise FeedError(f"{path}: {message}") from error


def _only_array(arrays: Mapping[str, Array], path: Path, name: str) -> Array:
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    near = suggest(name, arrays) or f"; its arrays are {listed_names(arrays)}"
    raise FeedError(f"{path}: no array of this archive has the name {quote(name)}{near}")
