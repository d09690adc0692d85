"""Loading and saving models."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sabir.base import SabirError, WireError, map_file, replace_file
from sabir.ir import Model, Tensor, WireTensor
from sabir.proto import BulkWriter, TensorProto, guess_format, looks_like_model, read_message, read_model
from sabir.serial._external import Folder
from sabir.serial._reader import Reader
from sabir.serial._writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from sabir.ir import ExternalTensor


@runtime_checkable
class Readable(Protocol):
    """An open binary file."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, or all that are left."""
        ...


def load(source: str | os.PathLike[str] | bytes | Readable) -> Model:
    """Return the model in a file, given by path, as bytes, or as an open binary file.

    A file is mapped and no tensor is copied: the model reads its data from the file as it is asked for.
    Raises FileError where the file cannot be read, WireError where it is no model; both name it.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return loads(source)
    if isinstance(source, Readable):
        return _read(memoryview(source.read()), "the open file", None)
    path = Path(os.fspath(source))
    model = _read(map_file(path), str(path), path.absolute().parent)
    model.path = path.absolute()
    return model


def loads(data: bytes | bytearray | memoryview, *, folder: str | os.PathLike[str] | None = None) -> Model:
    """Return the model in some bytes; `folder` is where its external data lies, if it has any.

    Raises WireError where the bytes are no model.
    """
    return _read(memoryview(data), "", None if folder is None else Path(os.fspath(folder)).absolute())


def load_tensor(source: str | os.PathLike[str] | bytes) -> Tensor:
    """Return the tensor in a file that holds one `TensorProto` (`input_0.pb`); raises as `load` does."""
    if isinstance(source, bytes):
        return WireTensor(read_message(TensorProto, source))
    path = Path(os.fspath(source))
    return WireTensor(read_message(TensorProto, map_file(path), source=str(path)))


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, which holds the old bytes or all of the new ones at any moment.

    External data stays external when the model stays in its folder, and is taken into the file otherwise.
    Raises FileError where the file cannot be written, WireError for what no file can hold.
    """
    target = Path(os.fspath(path))
    replace_file(target, _chunks(model, target.resolve().parent))


def dumps(model: Model) -> bytes:
    """Return a model as bytes, external data included; raises WireError for what no file can hold."""
    return b"".join(_chunks(model, None))


def _chunks(model: Model, folder: Path | None) -> Iterator[bytes | memoryview]:
    def stays(tensor: ExternalTensor) -> bool:
        where = tensor.opener.path if isinstance(tensor.opener, Folder) else None
        return where is not None and folder is not None and where.resolve() == folder

    bulk = BulkWriter()
    return bulk.chunks(Writer(bulk, keeps_external=stays).model(model))


def _read(data: memoryview, name: str, folder: Path | None) -> Model:
    prefix = f"{name}: " if name else ""
    proto, bulk = read_model(data, source=name)
    if not looks_like_model(proto):
        guess = guess_format(bytes(data[:4096]))
        raise WireError(
            f"{prefix}no ONNX model: {f'this looks like {guess}' if guess else 'it has no graph'}"
        )
    if not proto.HasField("graph") and not proto.functions:
        raise WireError(f"{prefix}the model has no graph")
    try:
        with _without_collector():
            return Reader(proto, bulk, Folder(folder)).model()
    except SabirError as error:
        raise type(error)(f"{prefix}{error}") from error


@contextlib.contextmanager
def _without_collector() -> Generator[None, None, None]:
    """Hold the cycle collector off: a graph is all links and no garbage, and each pass would visit it all."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
