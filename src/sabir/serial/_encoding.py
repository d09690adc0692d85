"""The bytes of a model in each format."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.message import EncodeError

from sabir.base import UnsupportedError, WireError
from sabir.files import LazyBytes
from sabir.ir import ExternalTensor, Model, OperatorSet, Tensor, all_tensors
from sabir.proto import Bulk, BulkWriter
from sabir.serial._external import Folder
from sabir.serial._formats import InlineData, write_message_text
from sabir.serial._nesting import may_be_too_deep, reporting_depth, require_readable
from sabir.serial._reader import read_model_message
from sabir.serial._tensors import TensorWriter
from sabir.serial._writer import ModelWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.ir import Buffer
    from sabir.serial._formats import Format
    from sabir.serial._tensors import Entries

_LARGE = 1 << 26
NO_SYNTAX = "the text syntax has no form of operator sets; use protobuf, textproto or json"


class Encoded(NamedTuple):
    """A model in a format: chunks of bytes, and their number, which for the text syntax is unknown."""

    chunks: Iterable[Buffer | LazyBytes]
    size: int | None

    def pieces(self) -> Iterator[Buffer]:
        """Yield all bytes in pieces."""
        for chunk in self.chunks:
            yield from chunk if isinstance(chunk, LazyBytes) else (chunk,)

    def joined(self) -> bytes:
        """Return all bytes; if they are many, memory for all is allocated before any is read."""
        if self.size is not None and self.size < _LARGE:
            return b"".join(self.pieces())
        buffer = io.BytesIO()
        if self.size is not None:
            buffer.seek(self.size - 1)
            buffer.write(b"\0")
            buffer.seek(0)
        for piece in self.pieces():
            buffer.write(piece)
        return buffer.getvalue()


def encode(
    model: Model | OperatorSet,
    chosen: Format,
    stays: Callable[[ExternalTensor], bool],
    placed: Callable[[Tensor], Entries | None] | None = None,
) -> Encoded:
    """Return a model or an operator set in a format; `stays` and `placed` are as in `TensorWriter`."""
    try:
        with reporting_depth():
            return _encode(model, chosen, stays, placed)
    except (MemoryError, EncodeError) as error:
        raise WireError(
            f"there is not enough memory for this as {chosen}; keep its data in external files"
        ) from error


def require_model(model: object, function: str, path: object = None) -> None:
    """Raise TypeError where the first argument of `save` or `dumps` is not a model: say what was meant."""
    if isinstance(model, Model):
        return
    if isinstance(path, Model):
        raise TypeError(f"{function} takes the model first: {function}(model, {model!r})")
    if isinstance(path, OperatorSet) or isinstance(model, OperatorSet):
        raise TypeError(f"{function} takes a model; an operator set has a method `{function}`")
    hint = "; `sabir.from_proto` makes a model of a protobuf message" if hasattr(model, "DESCRIPTOR") else ""
    raise TypeError(f"{function} takes a sabir.Model, not a {type(model).__name__}{hint}")


def _encode(
    model: Model | OperatorSet,
    chosen: Format,
    stays: Callable[[ExternalTensor], bool],
    placed: Callable[[Tensor], Entries | None] | None,
) -> Encoded:
    if chosen == "protobuf":
        bulk = BulkWriter()
        chunks = bulk.chunks(_message(model, TensorWriter(bulk, keeps_external=stays, placed=placed), chosen))
        return Encoded(chunks, bulk.size)

    def message() -> Any:
        return _message(model, TensorWriter(InlineData(), keeps_external=stays, placed=placed), chosen)

    if chosen == "onnxtxt":
        if isinstance(model, OperatorSet):
            raise UnsupportedError(NO_SYNTAX)
        unchanged = all(stays(t.tensor) for t in all_tensors(model) if isinstance(t.tensor, ExternalTensor))
        if placed is not None or not unchanged:
            model = read_model_message(message(), Bulk(), Folder(None))
        return Encoded(_SyntaxBytes(model), None)
    text = write_message_text(message(), chosen)
    return Encoded([text], len(text))


class _SyntaxBytes:
    """The bytes of a model in the text syntax; each iteration writes them anew."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __iter__(self) -> Iterator[bytes]:
        from sabir.syntax import text_chunks  # ruff: ignore[import-outside-top-level]  4 ms that few need

        return (chunk.encode("utf-8", "surrogateescape") for chunk in text_chunks(self._model))


def _message(model: Model | OperatorSet, tensors: TensorWriter, chosen: Format) -> Any:
    writer = ModelWriter(tensors)
    message = writer.operator_set(model) if isinstance(model, OperatorSet) else writer.model(model)
    if may_be_too_deep(model, chosen):
        require_readable(message, chosen)
    return message


def external_stays(home: Folder | None) -> Callable[[ExternalTensor], bool]:
    """Return which external data stays where it is when the model goes to a folder, or to none."""
    same: dict[Folder, Callable[[str], bool]] = {}

    def stays(tensor: ExternalTensor) -> bool:
        folder = tensor.opener
        if not isinstance(folder, Folder) or folder.path is None:
            return True  # the data cannot be found, and only the reference to it can be saved
        if home is None:
            return False
        if folder not in same:
            same[folder] = folder.has_same(home)
        return same[folder](tensor.entries.get("location", ""))

    return stays


def always(_: ExternalTensor) -> bool:
    """All external data stays where it is."""
    return True


def never(_: ExternalTensor) -> bool:
    """All external data is included."""
    return False
