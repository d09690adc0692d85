"""Tensors whose data is in files beside the model."""

from __future__ import annotations

import os
import re
import uuid
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sabir.base import SabirError
from sabir.compat.onnx._errors import ValidationError, raising
from sabir.compat.onnx.onnx_ml_pb2 import AttributeProto, TensorProto
from sabir.files import absolute, open_inside, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ALLOWED_EXTERNAL_DATA_KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})
_NUMBERS = frozenset({"offset", "length"})
_MAX_EXTERNAL_DATA_PADDING = 64 * 1024
# types of attributes that hold no tensors and no graphs; the type may be missing in old files
_PLAIN = frozenset({
    AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING,
    AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS,
})  # fmt: skip
_KEEPS_LINKS = getattr(os, "O_NOFOLLOW", 0)


class ExternalDataInfo:
    """Where the data of a tensor is: `location`, `offset`, `length`, `checksum`, `basepath`.

    Absent numbers are None, absent text is empty or None. Raises ValueError for a number that is none or
    negative; warns of unknown entries.
    """

    def __init__(self, tensor: Any) -> None:
        self.location = ""
        self.offset: int | None = None
        self.length: int | None = None
        self.checksum: str | None = None
        self.basepath = ""
        unknown: list[str] = []
        for entry in tensor.external_data:
            if entry.key not in _ALLOWED_EXTERNAL_DATA_KEYS:
                unknown.append(entry.key)
            elif entry.key in _NUMBERS:
                setattr(self, entry.key, _number(entry, tensor.name))
            else:
                setattr(self, entry.key, entry.value)
        if unknown:
            warnings.warn(
                f"the tensor {tensor.name!r} has unknown external data keys, now ignored: {sorted(unknown)}",
                stacklevel=2,
            )


def uses_external_data(tensor: Any) -> bool:
    """Whether the data of a tensor is in a file."""
    return tensor.HasField("data_location") and tensor.data_location == TensorProto.EXTERNAL


def set_external_data(
    tensor: Any,
    location: str,
    offset: int | None = None,
    length: int | None = None,
    checksum: str | None = None,
    basepath: str | None = None,
) -> None:
    """Declare that the data of a tensor belongs into a file; `raw_data` stays until it is saved.

    Raises ValueError for a tensor without `raw_data`.
    """
    _require_data(tensor)
    entries = {
        "location": location, "offset": offset, "length": length, "checksum": checksum, "basepath": basepath,
    }  # fmt: skip
    tensor.ClearField("external_data")
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    tensor.data_location = TensorProto.EXTERNAL


def remove_external_data_field(tensor: Any, field_key: str) -> None:
    """Remove an entry of the external data of a tensor."""
    for place in reversed(range(len(tensor.external_data))):
        if tensor.external_data[place].key == field_key:
            del tensor.external_data[place]


def read_external_data(tensor: Any, base_dir: str) -> bytes:
    """Return the data of a tensor from its file below `base_dir`.

    Raises ValidationError for a location that leads out of the directory, a link, and a missing file;
    ValueError for an offset or a length beyond the end of the file.
    """
    info = ExternalDataInfo(tensor)
    folder = absolute(Path(base_dir or os.curdir))
    with raising(ValidationError):
        parts = parts_of(info.location)
        if folder.joinpath(*parts).is_symlink():
            raise ValidationError(
                f"the file {info.location!r} of the tensor {tensor.name!r} is a symbolic link, which may "
                "lead anywhere; replace it by the file itself"
            )
        descriptor = open_inside(folder, info.location)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = info.offset or 0
        if start > size:
            raise ValueError(
                f"the tensor {tensor.name!r} has the offset {start}, and its file {info.location!r} has only "
                f"{size} bytes; correct the offset, or restore the file"
            )
        length = size - start if info.length is None else info.length
        if length > size - start:
            raise ValueError(
                f"the tensor {tensor.name!r} has the length {length}, and its file {info.location!r} has "
                f"only {size - start} bytes from the offset on; correct the length, or restore the file"
            )
        file.seek(start)
        return file.read(length)


def load_external_data_for_tensor(tensor: Any, base_dir: str) -> None:
    """Read the data of a tensor into `raw_data`; raises as `read_external_data`."""
    tensor.raw_data = read_external_data(tensor, base_dir)


def load_external_data_for_model(model: Any, base_dir: str) -> None:
    """Read the data of all tensors of a model from the files below `base_dir`."""
    for tensor in all_tensors(model):
        if uses_external_data(tensor):
            load_external_data_for_tensor(tensor, base_dir)
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]


def convert_model_to_external_data(
    model: Any,
    all_tensors_to_one_file: bool = True,
    location: str | None = None,
    size_threshold: int = 1024,
    convert_attribute: bool = False,
) -> None:
    """Declare that tensors of at least `size_threshold` bytes belong into files when the model is saved.

    `location` is the one file of all, by default a new name; or, with `all_tensors_to_one_file=False`, each
    tensor has a file of its name. `convert_attribute` includes tensors of attributes. Raises ValueError for
    an absolute location.
    """
    tensors = list(all_tensors(model) if convert_attribute else _initializers(model))
    if not all_tensors_to_one_file:
        _give_each_a_file(tensors, size_threshold)
        return
    if location and Path(location).is_absolute():
        raise ValueError(
            f"the location {location!r} is absolute; pass a path relative to the directory of the model"
        )
    name = location or f"{uuid.uuid1()}"
    for tensor in _movable(tensors, size_threshold):
        set_external_data(tensor, name)


def convert_model_from_external_data(model: Any) -> None:
    """Declare that all data belongs into the model; raises ValueError for data that is not loaded."""
    for tensor in all_tensors(model):
        if uses_external_data(tensor):
            if not tensor.HasField("raw_data"):
                raise ValueError(
                    f"the data of the tensor {tensor.name!r} is not loaded; call load_external_data_for_model"
                )
            del tensor.external_data[:]
            tensor.data_location = TensorProto.DEFAULT


def save_external_data(tensor: Any, base_path: str) -> None:
    """Append `raw_data` of a tensor to its file below `base_path`, and record offset and length.

    A stated offset may be at most 64 KiB beyond the end of the file, which is padded with zeros. Raises
    ValueError for a tensor without `raw_data`, ValidationError for a location that leads out of the
    directory, a link, and an offset within the file.
    """
    _require_data(tensor)
    info = ExternalDataInfo(tensor)
    with _opened_for_appending(info.location, base_path, tensor.name) as file:
        end = file.seek(0, os.SEEK_END)
        start = end if info.offset is None else info.offset
        if not end <= start <= end + _MAX_EXTERNAL_DATA_PADDING:
            raise ValidationError(
                f"the tensor {tensor.name!r} has the offset {start} in {info.location!r}; it must be between "
                f"{end}, the end of the file, and {end + _MAX_EXTERNAL_DATA_PADDING}"
            )
        file.write(bytes(start - end))
        file.write(tensor.raw_data)
    set_external_data(tensor, info.location, start, len(tensor.raw_data))


def write_external_data_tensors(model: Any, filepath: str) -> Any:
    """Write the data of all tensors that belong into files below a directory, and clear their `raw_data`."""
    for tensor in filter(uses_external_data, _movable(all_tensors(model), 0)):
        save_external_data(tensor, filepath)
        tensor.ClearField("raw_data")
    return model


def _require_data(tensor: Any) -> None:
    if not tensor.HasField("raw_data"):
        raise ValueError(
            f"the tensor {tensor.name!r} has no `raw_data`, the only field that a file can replace; make it "
            "with numpy_helper.from_array"
        )


def _opened_for_appending(location: str, base_path: str, name: str) -> Any:
    """Open a file below a directory; its folders are made."""
    folder = absolute(Path(base_path or os.curdir))
    try:
        parts = parts_of(location)
    except SabirError as error:
        raise ValidationError(f"the location of the tensor {name!r}: {error}") from error
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or not path.parent.resolve().is_relative_to(folder.resolve()):
        raise ValidationError(
            f"the tensor {name!r} would be written to {path} through a symbolic link; remove the link"
        )
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | _KEEPS_LINKS
    return os.fdopen(os.open(path, flags, 0o644), "r+b")


def _give_each_a_file(tensors: Iterable[Any], threshold: int) -> None:
    used: set[str] = set()
    for tensor in _movable(tensors, threshold):
        name = tensor.name
        if not _can_name_a_file(name) or name in used:
            name = f"{uuid.uuid1()}"
        used.add(name)
        set_external_data(tensor, name)


def _movable(tensors: Iterable[Any], threshold: int) -> Iterator[Any]:
    return (t for t in tensors if t.HasField("raw_data") and len(t.raw_data) >= threshold)


def _can_name_a_file(filename: str) -> bool:
    return re.fullmatch(r"[^<>:;,?\"*|/]+", filename) is not None


def _number(entry: Any, name: str) -> int:
    if not entry.value.isdecimal():
        raise ValueError(
            f"the tensor {name!r} has the {entry.key} {entry.value!r} in its file; it must be a non-negative "
            "number"
        )
    return int(entry.value)


# all tensors of a model


def all_tensors(model: Any) -> Iterator[Any]:
    """Every tensor of a model: initializers, then those of attributes, in all graphs and functions."""
    yield from _initializers(model)
    yield from _attribute_values(model)


def _initializers(model: Any) -> Iterator[Any]:
    for body in bodies(model):
        yield from getattr(body, "initializer", ())


def _attribute_values(model: Any) -> Iterator[Any]:
    for attribute in _attributes_of(bodies(model)):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors


def bodies(model: Any) -> Iterator[Any]:
    """Every graph and function of a model, and the graphs within them."""
    waiting: list[Any] = [model.graph, *model.functions]
    while waiting:
        body = waiting.pop(0)
        yield body
        for attribute in _attributes_of([body]):
            if attribute.HasField("g"):
                waiting.append(attribute.g)
            waiting.extend(attribute.graphs)


def _attributes_of(graphs: Iterable[Any]) -> Iterator[Any]:
    """The attributes of the nodes of graphs that have tensors or graphs."""
    for graph in graphs:
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type not in _PLAIN:
                    yield attribute


# the names by which programs know them
_get_all_tensors = all_tensors
_get_attribute_tensors = _attribute_values
_get_initializer_tensors = _initializers

__all__ = [
    "ExternalDataInfo",
    "all_tensors",
    "bodies",
    "convert_model_from_external_data",
    "convert_model_to_external_data",
    "load_external_data_for_model",
    "load_external_data_for_tensor",
    "read_external_data",
    "remove_external_data_field",
    "save_external_data",
    "set_external_data",
    "uses_external_data",
    "write_external_data_tensors",
]
