"""Loading models: from a path, bytes, a string or an open file, in any format."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from google.protobuf.message import EncodeError

from sabir.base import FileError, SabirError, WireError, run_with_limits, without_collector
from sabir.files import OpenedFile, absolute, map_file, opened_file, reason
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
from sabir.serial._reader import read_model_message
from sabir.serial._verifying import require_external

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.base import Limits
    from sabir.serial._formats import Format

_HEAD = 4096  # bytes that are enough to guess a format
_BINARY_MAGIC = b"\n\x09ONNXOPSET"
# only as the first field: any other text, such as documentation, may mention it
_TEXT_MAGIC = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n)*(?:\{\s*\"magic\"|magic)\s*:\s*[\"']ONNXOPSET")
T = TypeVar("T")


class Kind(NamedTuple, Generic[T]):
    """What a file contains: how messages name it, and the function that decodes it."""

    name: str
    decode: Callable[[memoryview, Folder, Format], T]


@runtime_checkable
class ReadableFile(Protocol):
    """An open file."""

    def read(self, size: int = -1, /) -> bytes | str:
        """Return up to `size` bytes or characters, or all that are left."""
        ...


def load(
    source: str | os.PathLike[str] | bytes | ReadableFile,
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    verify: bool = False,
    mapped: bool = True,
    limits: Limits | None = None,
) -> Model:
    """Return the model in a file; `source` is its path, its bytes, or an open file.

    `format` is "protobuf", "textproto", "json" (both as protobuf defines them) or "onnxtxt" (the standard's
    text syntax). By default the extension of the path decides, and without an extension the content; an
    unknown extension raises UnsupportedError.

    A large file is mapped and no tensor is copied: the model reads its data from the file on demand. With
    `mapped=False` the whole file is read, and later changes to it have no effect. `verify` checks at once
    that all external data exists and has the declared length and SHA1 digest.

    Raises FileError where the file cannot be read, WireError or ParseError where it is no model, each with
    its name; ExternalDataError where `verify` finds a problem; and LimitError where loading would exceed
    `limits`, by default those of `Limits()`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     sabir.save(model, Path(folder, 'model.onnx'))
    ...     print(sabir.load(Path(folder, 'model.onnx')).graph[0].op)
    Relu
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return loads(source, format=format, verify=verify, limits=limits)
    if isinstance(source, ReadableFile):
        return run_with_limits(limits, _load_open, source, format, verify=verify)
    chosen = format_named(format) if format else None
    return run_with_limits(
        limits, lambda: _verified(_load_path(path_of(source), chosen, mapped=mapped), verify)
    )


def _load_open(source: ReadableFile, format_name: str | None, *, verify: bool) -> Model:
    return _verified(read_open(source, format_name, MODEL), verify)


def read_open(source: ReadableFile, stated: str | None, kind: Kind[T]) -> T:
    """Return what an open file contains; raises as `load` does."""
    return read_data(all_of(source), stated, "the open file", Folder(None), kind)


def _load_path(
    path: Path, chosen: Format | None = None, *, any_name: bool = False, mapped: bool = True
) -> Model:
    """Return the model in a file; with `any_name` the content decides where the extension is unknown."""
    model = read_file(path, chosen, MODEL, any_name=any_name, mapped=mapped)
    model.path = absolute(path)
    return model


def read_file(
    path: Path, chosen: Format | None, kind: Kind[T], *, any_name: bool = False, mapped: bool = True
) -> T:
    """Return what a file contains; `any_name` is as in `_load_path`. Raises as `load` does."""
    file = opened_file(path, mapped=mapped)
    named = chosen or (format_of if any_name else format_by_name)(path)
    return _read_opened(file, named or _format(file.data), kind, mapped=mapped)


def _read_opened(file: OpenedFile, chosen: Format, kind: Kind[T], *, mapped: bool) -> T:
    folder = Folder.of(file.path, mapped=mapped, opened=file.status)
    return _read(file.data, str(file.path), folder, chosen, kind)


def load_opened(file: OpenedFile) -> Model:
    """Return the model in a file that is open: `load`, of bytes that are at hand; raises as that does.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sabir.files import opened_file
    >>> with TemporaryDirectory() as folder:
    ...     sabir.save(model, Path(folder, 'model.onnx'))
    ...     print(load_opened(opened_file(Path(folder, 'model.onnx'))).graph[0].op)
    Relu
    """

    def read() -> Model:
        chosen = format_by_name(file.path) or _format(file.data)
        model = _read_opened(file, chosen, MODEL, mapped=True)
        model.path = absolute(file.path)
        return model

    return run_with_limits(None, read)


def load_by_any_name(path: Path) -> Model:
    """Return the model in a file, whose content decides the format where the extension is unknown."""
    return _load_path(path, any_name=True)


def loads(
    data: bytes | bytearray | memoryview | str,
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    folder: str | os.PathLike[str] | None = None,
    verify: bool = False,
    limits: Limits | None = None,
) -> Model:
    """Return the model in bytes, or in a string of one of the text formats.

    `folder` contains its external data, if it has any. `format` is as in `load`; by default the content
    decides. Raises WireError or ParseError where the data is no model, ExternalDataError where `verify` finds
    data missing, FileError for a folder that cannot exist, and LimitError as `load` does.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> sabir.loads(sabir.dumps(model)).opsets
    {'': 21}
    """
    place = Folder(None if folder is None else absolute(path_of(folder)))
    return run_with_limits(limits, lambda: _verified(read_data(data, format, "", place, MODEL), verify))


def load_tensor(source: str | os.PathLike[str] | bytes) -> Tensor:
    """Return the tensor in a file of one `TensorProto` (`input_0.pb`); raises as `load` does.

    >>> message = sabir.to_proto(sabir.ir.ArrayTensor(np.float32([1, 2])))
    >>> load_tensor(message.SerializeToString()).array()
    array([1., 2.], dtype=float32)
    """
    if isinstance(source, bytes):
        return WireTensor(read_message(TensorProto, source))
    path = path_of(source)
    return WireTensor(read_message(TensorProto, map_file(path), source=str(path)))


def path_of(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> Path:
    """Return a path of any type as a `Path`."""
    return Path(os.fsdecode(path))


def all_of(source: ReadableFile) -> memoryview | str:
    """Return the rest of an open file; raises FileError where it cannot be read."""
    try:
        data: Any = source.read()
    except OSError as error:
        raise FileError(f"the open file: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise FileError("the open file is not UTF-8; open it as binary, with mode 'rb'") from error
    if isinstance(data, str):
        return data
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise FileError(f"the open file returned a {type(data).__name__}; it must return bytes or a string")
    return memoryview(cast("bytes", data))


def read_data(
    data: bytes | bytearray | memoryview | str, stated: str | None, name: str, folder: Folder, kind: Kind[T]
) -> T:
    """Return what bytes or a string contain; `name` is that of the source in errors."""
    if not isinstance(data, str):
        view = memoryview(data)
        return _read(view, name, folder, _format(view, stated), kind)
    try:
        view = memoryview(data.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError as error:
        raise WireError(f"the string has half of a surrogate pair at character {error.start}") from None
    chosen = format_named(stated) if stated else guess_text(view[:_HEAD])
    if chosen is None or chosen == "protobuf":
        raise WireError(
            f"the string is no {kind.name}: a {kind.name} in protobuf is bytes, and `load(path)` loads a file"
        )
    return _read(view, name, folder, chosen, kind)


def _verified(model: Model, asked: bool) -> Model:  # ruff: ignore[boolean-type-hint-positional-argument] - internal
    if asked:
        require_external(model)
    return model


def _format(data: memoryview, stated: str | None = None) -> Format:
    """Return the format of bytes: as stated, or by their content."""
    return format_named(stated) if stated else guess_text(data[:_HEAD]) or "protobuf"


def _read(data: memoryview, name: str, folder: Folder, chosen: Format, kind: Kind[T]) -> T:
    try:
        with without_collector():
            return kind.decode(data, folder, chosen)
    except SabirError as error:
        raise (error.located(name) if name else error) from error
    except (MemoryError, EncodeError) as error:
        problem = f"there is not enough memory to read {len(data):,} bytes as {chosen}"
        raise WireError(f"{name}: {problem}" if name else problem) from error


def is_operator_set(data: memoryview, chosen: Format) -> bool:
    """Return whether bytes begin as those of an operator set do."""
    head = bytes(data[:_HEAD])
    return head.startswith(_BINARY_MAGIC) if chosen == "protobuf" else bool(_TEXT_MAGIC.match(head))


def _decoded(data: memoryview, folder: Folder, chosen: Format) -> Model:
    if is_operator_set(data, chosen):
        raise WireError("this is an operator set, and no model; `sabir.OperatorSet.load` reads it")
    if chosen == "onnxtxt":
        from sabir.syntax import parse  # ruff: ignore[import-outside-top-level]  as in writing

        return parse(read_text(data), opener=folder)
    proto, bulk = read_model(data) if chosen == "protobuf" else (read_message_text(data, chosen), Bulk())
    _require_graph(proto, data)
    model = read_model_message(proto, bulk, folder)
    bulk.release()  # a reader refers to itself, and would keep the data until the cycle collector runs
    return model


MODEL = Kind("model", _decoded)


def _require_graph(proto: Any, data: memoryview) -> None:
    """Raise WireError for a message without any part of a model: other bytes may parse as one too."""
    if not looks_like_model(proto):
        guess = guess_format(bytes(data[:_HEAD]))
        raise WireError(f"no ONNX model: {f'this looks like {guess}' if guess else 'it has no graph'}")
    if not proto.HasField("graph") and not proto.functions:
        raise WireError("the model has no graph")
