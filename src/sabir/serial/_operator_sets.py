"""Operator sets from files and to files: the documents of the standard, in protobuf and its text formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import ParseError, UnsupportedError, WireError, run_with_limits
from sabir.files import absolute
from sabir.ir import MAGIC, Model, OperatorSet
from sabir.proto import Bulk, OperatorSetProto, looks_like_model, read_model
from sabir.serial._encoding import NO_SYNTAX
from sabir.serial._external import Folder
from sabir.serial._formats import format_by_name, format_named, read_message_text
from sabir.serial._loading import (
    MODEL,
    Kind,
    ReadableFile,
    is_operator_set,
    path_of,
    read_data,
    read_file,
    read_open,
)
from sabir.serial._reader import read_operator_set_message
from sabir.serial._saving import Writable, dumped, save_open, save_whole

if TYPE_CHECKING:
    import os

    from sabir.base import Limits
    from sabir.serial._formats import Format


def load_operator_set(
    source: str | os.PathLike[str] | bytes | ReadableFile,
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    limits: Limits | None = None,
) -> OperatorSet:
    """Return the operator set in a file, as `OperatorSet.load` does.

    >>> document = sabir.OperatorSet('com.acme', 2).dumps()
    >>> load_operator_set(document)
    <OperatorSet com.acme:2: 0 operators, 0 functions>
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return loads_operator_set(source, format=format, limits=limits)
    if isinstance(source, ReadableFile):
        return run_with_limits(limits, read_open, source, format, _SET)
    chosen = format_named(format) if format else None
    return run_with_limits(limits, lambda: read_file(path_of(source), chosen, _SET))


def loads_operator_set(
    data: bytes | bytearray | memoryview | str,
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    limits: Limits | None = None,
) -> OperatorSet:
    """Return the operator set in bytes or a string, as `OperatorSet.loads` does.

    >>> loads_operator_set('magic: "ONNXOPSET" domain: "com.acme" opset_version: 4').version
    4
    """
    return run_with_limits(limits, lambda: read_data(data, format, "", Folder(None), _SET))


def load_either(
    source: str | os.PathLike[str] | bytes, *, limits: Limits | None = None
) -> Model | OperatorSet:
    """Return the model or the operator set in a file or in bytes; raises as `load` does.

    >>> load_either(sabir.OperatorSet('com.acme', 2).dumps()).label
    'com.acme:2'
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return run_with_limits(limits, lambda: read_data(source, None, "", Folder(None), _EITHER))
    found = run_with_limits(limits, lambda: read_file(path_of(source), None, _EITHER))
    if isinstance(found, Model):
        found.path = absolute(path_of(source))
    return found


def save_operator_set(
    operator_set: OperatorSet,
    path: str | os.PathLike[str] | Writable,
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    limits: Limits | None = None,
) -> None:
    """Write an operator set to a file, as `OperatorSet.save` does.

    >>> import io
    >>> file = io.BytesIO()
    >>> save_operator_set(sabir.OperatorSet('com.acme', 2), file)
    >>> sabir.OperatorSet.loads(file.getvalue()).version
    2
    """
    if isinstance(path, Writable):
        chosen = format_named(format) if format else "protobuf"
        run_with_limits(limits, save_open, operator_set, path, chosen, None)
        return
    target = path_of(path)
    chosen = format_named(format) if format else format_by_name(target) or "protobuf"
    run_with_limits(limits, save_whole, operator_set, target, chosen, None)


def dumps_operator_set(
    operator_set: OperatorSet,
    *,
    format: str = "protobuf",  # ruff: ignore[builtin-argument-shadowing]  the word for it
    limits: Limits | None = None,
) -> bytes:
    """Return an operator set as bytes, as `OperatorSet.dumps` does.

    >>> dumps_operator_set(sabir.OperatorSet('com.acme', 2), format='textproto')[:18]
    b'magic: "ONNXOPSET"'
    """
    return run_with_limits(limits, dumped, operator_set, format_named(format))


def _decoded(data: memoryview, folder: Folder, chosen: Format) -> OperatorSet:
    if chosen == "onnxtxt":
        raise UnsupportedError(NO_SYNTAX)
    try:
        proto, bulk = _message(data, chosen)
    except (WireError, ParseError):
        if _is_model(data, chosen):
            raise WireError(_A_MODEL) from None
        raise
    if not proto.HasField("magic") and _is_model(data, chosen):
        raise WireError(_A_MODEL)
    found = read_operator_set_message(proto, bulk, folder)
    bulk.release()
    return found


def _message(data: memoryview, chosen: Format) -> tuple[Any, Bulk]:
    if chosen == "protobuf":
        return read_model(data, cls=OperatorSetProto)
    return read_message_text(data, chosen, OperatorSetProto), Bulk()


def _is_model(data: memoryview, chosen: Format) -> bool:
    """Return whether bytes without a magic are a model: as an operator set most of its fields are unknown."""
    try:
        proto = read_model(data)[0] if chosen == "protobuf" else read_message_text(data, chosen)
    except (WireError, ParseError):
        return False
    return looks_like_model(proto)


def _decoded_either(data: memoryview, folder: Folder, chosen: Format) -> Model | OperatorSet:
    if is_operator_set(data, chosen):
        return _decoded(data, folder, chosen)
    try:
        return MODEL.decode(data, folder, chosen)
    except (WireError, ParseError):
        # another writer may put other fields before the magic
        if MAGIC.encode() not in bytes(data[:_SEARCHED]) and not _has_another_magic(data, chosen):
            raise
        return _decoded(data, folder, chosen)


def _has_another_magic(data: memoryview, chosen: Format) -> bool:
    """Return whether bytes are an operator set but for its magic."""
    if chosen == "onnxtxt":
        return False
    try:
        proto, bulk = _message(data, chosen)
    except (WireError, ParseError):
        return False
    bulk.release()
    return proto.HasField("magic") and (proto.HasField("opset_version") or bool(proto.operator))


_A_MODEL = "this is a model, and no operator set; `sabir.load` reads it"
_SET = Kind("operator set", _decoded)
_SEARCHED = 1 << 20  # bytes in which a late magic is looked for
_EITHER = Kind("model", _decoded_either)
