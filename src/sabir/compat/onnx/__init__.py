"""The package `onnx` 1.23: messages, files, and the modules that work on them."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sabir.base import FileError
from sabir.compat import VERSION
from sabir.compat.onnx import (
    checker,
    compose,
    defs,
    gen_proto,
    helper,
    numpy_helper,
    parser,
    printer,
    serialization,
    shape_inference,
    utils,
    version_converter,
)
from sabir.compat.onnx._representation import install_representations
from sabir.compat.onnx.external_data_helper import (
    convert_model_to_external_data,
    load_external_data_for_model,
    write_external_data_tensors,
)
from sabir.compat.onnx.onnx_data_pb import MapProto, OptionalProto, SequenceProto
from sabir.compat.onnx.onnx_operators_pb import OperatorProto, OperatorSetProto
from sabir.compat.onnx.onnx_pb import (
    EXPERIMENTAL,
    IR_VERSION,
    IR_VERSION_2017_10_10,
    IR_VERSION_2017_10_30,
    IR_VERSION_2017_11_3,
    IR_VERSION_2019_1_22,
    IR_VERSION_2019_3_18,
    IR_VERSION_2019_9_19,
    IR_VERSION_2020_5_8,
    IR_VERSION_2021_7_30,
    IR_VERSION_2023_5_5,
    IR_VERSION_2024_3_25,
    STABLE,
    AttributeProto,
    DeviceConfigurationProto,
    FunctionProto,
    GraphProto,
    IntIntListEntryProto,
    ModelProto,
    NodeDeviceConfigurationProto,
    NodeProto,
    OperatorSetIdProto,
    OperatorStatus,
    ShardedDimProto,
    ShardingSpecProto,
    SimpleShardedDimProto,
    SparseTensorProto,
    StringStringEntryProto,
    TensorAnnotation,
    TensorProto,
    TensorShapeProto,
    TrainingInfoProto,
    TypeProto,
    ValueInfoProto,
    Version,
)
from sabir.files import absolute, replace_file

if TYPE_CHECKING:
    from typing import IO

    File: TypeAlias = IO[bytes] | str | os.PathLike[str]

__version__ = VERSION
ONNX_ML = True
"""Whether this is the variant of onnx with the operators of ai.onnx.ml: it always is."""

_PROTOBUF = "protobuf"
_LONG = 1 << 22  # bytes; to search more takes longer than to ask each tensor, as most of them are weights


def load_model(f: File, format: str | None = None, load_external_data: bool = True) -> Any:
    """Return the ModelProto of a file, with its external data unless `load_external_data` is False.

    `f` is a path or an open binary file. `format` is `protobuf`, `textproto`, `json`, `onnxtxt` or a
    registered one, by default that of the file's extension.
    """
    content = _content_of(f)
    model = _format_for(format, f).deserialize_proto(content, ModelProto())
    path = _path_of(f)
    if load_external_data and path and _may_be_external(content):
        load_external_data_for_model(model, str(path.parent))
    return model


def load_tensor(f: File, format: str | None = None) -> Any:
    """Return the TensorProto of a file; the arguments are those of `load_model`."""
    return _format_for(format, f).deserialize_proto(_content_of(f), TensorProto())


def load_model_from_string(s: bytes | str, format: str = _PROTOBUF) -> Any:
    """Return the ModelProto of the content of a file."""
    return _format_for(format).deserialize_proto(s, ModelProto())


def load_tensor_from_string(s: bytes, format: str = _PROTOBUF) -> Any:
    """Return the TensorProto of the content of a file."""
    return _format_for(format).deserialize_proto(s, TensorProto())


def save_model(
    proto: Any,
    f: File,
    format: str | None = None,
    *,
    save_as_external_data: bool = False,
    all_tensors_to_one_file: bool = True,
    location: str | None = None,
    size_threshold: int = 1024,
    convert_attribute: bool = False,
) -> None:
    """Write a ModelProto, or the bytes of one, to a path or an open binary file.

    With `save_as_external_data` the data of its tensors moves to files, as `convert_model_to_external_data`
    says. The message is changed: data in files leaves it.
    """
    if isinstance(proto, bytes):
        proto = load_model_from_string(proto)
    if save_as_external_data:
        convert_model_to_external_data(
            proto, all_tensors_to_one_file, location, size_threshold, convert_attribute
        )
    path = _path_of(f)
    if path is not None:
        proto = write_external_data_tensors(proto, str(path.parent))
    _write(_format_for(format, path).serialize_proto(proto), f)


def save_tensor(proto: Any, f: File, format: str | None = None) -> None:
    """Write a TensorProto; the arguments are those of `save_model`."""
    _write(_format_for(format, f).serialize_proto(proto), f)


load = load_model
load_from_string = load_model_from_string
save = save_model


def _may_be_external(content: Any) -> bool:
    """Whether a file is too large to search, or has the word that a tensor with data elsewhere needs."""
    if len(content) > _LONG:
        return True
    word: Any = "location" if isinstance(content, str) else b"location"
    return word in content


def _content_of(f: Any) -> bytes:
    return f.read() if hasattr(f, "read") else Path(f).read_bytes()


def _write(content: bytes, f: Any) -> None:
    """Write to an open file, or replace a file in one step; raises OSError, as programs of onnx expect."""
    if hasattr(f, "write"):
        f.write(content)
        return
    path = Path(f)
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        path.write_bytes(content)  # a device or a pipe, or the error of the operating system
        return
    try:
        replace_file(path, [content])
    except FileError as error:
        raise OSError(str(error)) from error


def _path_of(f: Any) -> Path | None:
    """Return the absolute path of a file, or None for an open one without a path."""
    is_open = hasattr(f, "read") or hasattr(f, "write")
    name: Any = getattr(f, "name", None) if is_open else f
    if not isinstance(name, (str, os.PathLike)):
        return None
    return absolute(Path(cast("str | os.PathLike[str]", name)))


def _format_for(name: str | None, f: Any = None) -> serialization.ProtoSerializer:
    """Return the format of a name, else that of the extension of a file, else protobuf."""
    path = _path_of(f)
    if name is None and path is not None:
        name = serialization.registry.get_format_from_file_extension(path.suffix)
    return serialization.registry.get(name or _PROTOBUF)


def __getattr__(name: str) -> Any:
    """Import a submodule that a program uses without importing it, or say what is missing."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(
            f"Sabir's module onnx has no attribute {name!r}; docs/compat.md lists what it has"
        ) from None


install_representations()

__all__ = [
    "EXPERIMENTAL",
    "IR_VERSION",
    "IR_VERSION_2017_10_10",
    "IR_VERSION_2017_10_30",
    "IR_VERSION_2017_11_3",
    "IR_VERSION_2019_1_22",
    "IR_VERSION_2019_3_18",
    "IR_VERSION_2019_9_19",
    "IR_VERSION_2020_5_8",
    "IR_VERSION_2021_7_30",
    "IR_VERSION_2023_5_5",
    "IR_VERSION_2024_3_25",
    "ONNX_ML",
    "STABLE",
    "AttributeProto",
    "DeviceConfigurationProto",
    "FunctionProto",
    "GraphProto",
    "IntIntListEntryProto",
    "MapProto",
    "ModelProto",
    "NodeDeviceConfigurationProto",
    "NodeProto",
    "OperatorProto",
    "OperatorSetIdProto",
    "OperatorSetProto",
    "OperatorStatus",
    "OptionalProto",
    "SequenceProto",
    "ShardedDimProto",
    "ShardingSpecProto",
    "SimpleShardedDimProto",
    "SparseTensorProto",
    "StringStringEntryProto",
    "TensorAnnotation",
    "TensorProto",
    "TensorShapeProto",
    "TrainingInfoProto",
    "TypeProto",
    "ValueInfoProto",
    "Version",
    "__version__",
    "checker",
    "compose",
    "convert_model_to_external_data",
    "defs",
    "gen_proto",
    "helper",
    "load",
    "load_external_data_for_model",
    "load_from_string",
    "load_model",
    "load_model_from_string",
    "load_tensor",
    "load_tensor_from_string",
    "numpy_helper",
    "parser",
    "printer",
    "save",
    "save_model",
    "save_tensor",
    "shape_inference",
    "utils",
    "version_converter",
    "write_external_data_tensors",
]
