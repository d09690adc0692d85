"""Loading models: from a path, bytes or an open file, in any format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from google.protobuf.message import EncodeError

from sabir.base import FileError, SabirError, WireError, run_within, without_collector
from sabir.files import absolute, map_file, open_file, reason, view_of
from sabir.ir import Model, Tensor, WireTensor
from sabir.proto import (
    Bulk,
    TensorProto,
    guess_format,
    looks_like_model,
    read_message,
    read_model,
)
from sabir.serial._external import Folder
from sabir.serial._formats import (
    format_by_name,
    format_named,
    format_of,
    guess_text,
    read_message_text,
    read_text,
)
from sabir.serial._reader import Reader
from sabir.serial._verifying import require_external

if TYPE_CHECKING:
    from sabir.base import Limits
    from sabir.serial._formats import Format

_HEAD = 4096  # as much as is looked at to tell what a file is


@runtime_checkable
class Readable(Protocol):
    """An open binary file."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, or all that are left."""
        ...


def load(
    source: str | os.PathLike[str] | bytes | Readable,
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    verify: bool = False,
    mapped: bool = True,
    limits: Limits | None = None,
) -> Model:
    """Return the model in a file, given by path, as bytes, or as an open binary file.

    `format` is "protobuf", "textproto", "json" (both as protobuf defines them) or "onnxtxt" (the standard's
    text syntax). Without it the extension of the file's name tells the format, and where there is no
    extension the content; an unknown extension is an UnsupportedError.

    A large file is mapped and no tensor is copied: the model reads its data from the file as it is asked for.
    With `mapped=False` all is read, and what others do to the file afterwards matters no more. `verify` looks
    at once whether all external data is there, as long as it must be, and of the SHA1 digest that is told.
    Raises FileError where the file cannot be read, WireError or ParseError where it is no model; they name
    it; ExternalDataError where `verify` finds something wrong; and LimitError where the job would cost more
    than `limits` allow, or the defaults where none are given.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return loads(source, format=format, verify=verify, limits=limits)
    if isinstance(source, Readable):
        return run_within(limits, _load_open, source, format, verify=verify)
    chosen = format_named(format) if format else None
    return run_within(limits, lambda: _verified(_load_path(path_of(source), chosen, mapped=mapped), verify))


def _load_open(source: Readable, format_name: str | None, *, verify: bool) -> Model:
    data = _all_of(source)
    return _verified(_read(data, "the open file", Folder(None), _format(data, format_name)), verify)


def _load_path(
    path: Path, chosen: Format | None = None, *, any_name: bool = False, mapped: bool = True
) -> Model:
    """Return the model in a file; with `any_name` the content tells what an unknown extension does not."""
    descriptor = open_file(path)
    try:
        named = chosen or (format_of if any_name else format_by_name)(path)
        data = view_of(descriptor, str(path), mapped=mapped)
        folder = Folder.of(path, mapped=mapped, opened=os.fstat(descriptor))
    finally:
        os.close(descriptor)
    model = _read(data, str(path), folder, named or _format(data))
    model.path = absolute(path)
    return model


def load_by_any_name(path: Path) -> Model:
    """Return the model in a file whose extension may be unknown; the content tells the format then."""
    return _load_path(path, any_name=True)


def loads(
    data: bytes | bytearray | memoryview,
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    folder: str | os.PathLike[str] | None = None,
    verify: bool = False,
    limits: Limits | None = None,
) -> Model:
    """Return the model in some bytes; `folder` is where its external data lies, if it has any.

    `format` is as in `load`; where it is not given, the content tells. Raises WireError or ParseError where
    the bytes are no model, ExternalDataError where `verify` finds data missing, FileError where there can be
    no such folder, and LimitError as `load` does.
    """
    place = Folder(None if folder is None else absolute(path_of(folder)))
    view = memoryview(data)
    return run_within(limits, lambda: _verified(_read(view, "", place, _format(view, format)), verify))


def load_tensor(source: str | os.PathLike[str] | bytes) -> Tensor:
    """Return the tensor in a file that holds one `TensorProto` (`input_0.pb`); raises as `load` does."""
    if isinstance(source, bytes):
        return WireTensor(read_message(TensorProto, source))
    path = path_of(source)
    return WireTensor(read_message(TensorProto, map_file(path), source=str(path)))


def path_of(given: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> Path:
    return Path(os.fsdecode(given))


def _all_of(source: Readable) -> memoryview:
    """Return what is left of an open file; raises FileError where that cannot be read."""
    try:
        data: Any = source.read()
    except OSError as error:
        raise FileError(f"the open file: {reason(error)}") from error
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise FileError("the open file gives no bytes; open it as binary, with mode 'rb'")
    return memoryview(cast("bytes", data))


def _verified(model: Model, asked: bool) -> Model:  # ruff: ignore[boolean-type-hint-positional-argument] - internal
    if asked:
        require_external(model)
    return model


def _format(data: memoryview, stated: str | None = None) -> Format:
    """Return the format of some bytes: as stated, or by their content."""
    return format_named(stated) if stated else guess_text(data[:_HEAD]) or "protobuf"


def _read(data: memoryview, name: str, folder: Folder, chosen: Format) -> Model:
    try:
        with without_collector():
            return _decoded(data, folder, chosen)
    except SabirError as error:
        raise (error.within(name) if name else error) from error
    except (MemoryError, EncodeError) as error:
        told = f"there is no memory to read a model of {len(data):,} bytes as {chosen}"
        raise WireError(f"{name}: {told}" if name else told) from error


def _decoded(data: memoryview, folder: Folder, chosen: Format) -> Model:
    if chosen == "onnxtxt":
        from sabir.syntax import parse  # ruff: ignore[import-outside-top-level]  as in writing

        return parse(read_text(data), opener=folder)
    proto, bulk = read_model(data) if chosen == "protobuf" else (read_message_text(data, chosen), Bulk())
    _require_graph(proto, data)
    model = Reader(proto, bulk, folder).model()
    bulk.release()  # a reader refers to itself, and would keep the data until the cycle collector runs
    return model


def _require_graph(proto: Any, data: memoryview) -> None:
    """Raise WireError for a message that holds nothing of a model: other bytes may parse too."""
    if not looks_like_model(proto):
        guess = guess_format(bytes(data[:_HEAD]))
        raise WireError(f"no ONNX model: {f'this looks like {guess}' if guess else 'it has no graph'}")
    if not proto.HasField("graph") and not proto.functions:
        raise WireError("the model has no graph")
