"""Saving models: to a path or as bytes, in any format."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from google.protobuf.message import EncodeError

from sabir.base import WireError, run_within
from sabir.files import Streamed, replace_file
from sabir.ir import ExternalTensor, Model, Tensor, all_tensors
from sabir.proto import (
    Bulk,
    BulkWriter,
)
from sabir.serial._external import Folder
from sabir.serial._formats import (
    Inline,
    format_by_name,
    format_named,
    write_message_text,
)
from sabir.serial._loading import load_by_any_name, path_of
from sabir.serial._nesting import may_be_too_deep, require_readable
from sabir.serial._reader import Reader
from sabir.serial._tensors import TensorWriter
from sabir.serial._writer import Writer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from sabir.base import Limits
    from sabir.ir import Buffer
    from sabir.serial._data_files import Progress
    from sabir.serial._formats import Format
    from sabir.serial._placement import Layout
    from sabir.serial._tensors import Entries

_LARGE = 1 << 26


def save(  # ruff: ignore[too-many-arguments]  each is a word of its own
    model: Model,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
    external: str | Literal[False] | None = None,
    threshold: int = 1024,
    align: int = 4096,
    shard: int | None = None,
    checksum: bool = False,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> None:
    """Write a model to a file, which holds the old bytes or all of the new ones at any moment.

    `format` is as in `load`. Without it the extension of the file's name tells the format, and where there is
    no extension the format is protobuf; an unknown extension is an UnsupportedError. As "textproto"
    and "json" a NaN loses which of the many it was; nothing else is lost in any format.

    With `external`, the data of every tensor of at least `threshold` bytes goes to a file of that name beside
    the model, each at a multiple of `align` bytes: to several of at most `shard` bytes, where that is given;
    to one for each tensor, where the name has `{name}` in it; in the safetensors format, where it ends in
    `.safetensors`. With `checksum`, the model tells the SHA1 digests of these files. A file that is there is
    replaced, unless another model in the folder uses it.

    Without, external data stays where it is when the model stays in its folder, and is taken into the file
    otherwise; with `external=False` all of it is. The model object is not changed.

    `progress` is called with the bytes written so far and those to be written: of the data files, where there
    are any, else of the model. Raises FileError where a file cannot be written, ExternalDataError where data
    to be moved is not found, WireError for what no file can hold, LimitError where external data that very
    many tensors read would take more than `limits` allow.
    """
    target = path_of(path)
    chosen = format_named(format) if format else format_by_name(target) or "protobuf"
    if external is None or external is False:
        run_within(limits, _save_whole, model, target, chosen, external, progress)
        return
    from sabir.serial._placement import Layout  # ruff: ignore[import-outside-top-level]  few move data

    layout = Layout(external, threshold, align, shard, checksum)
    run_within(limits, _save_split, model, target, chosen, layout, progress)


def _save_whole(
    model: Model, target: Path, chosen: Format, external: Literal[False] | None, progress: Progress | None
) -> None:
    stays = _staying(Folder.of(target)) if external is None else _never
    encoded = _encoded(model, chosen, stays)
    replace_file(target, encoded.chunks, written=_counted(progress, encoded))


def _save_split(
    model: Model, target: Path, chosen: Format, layout: Layout, progress: Progress | None
) -> None:
    from sabir.serial._data_files import Saving  # ruff: ignore[import-outside-top-level]  few move data
    from sabir.serial._placement import Placement  # ruff: ignore[import-outside-top-level]  as before

    placement = Placement(model, layout)

    def model_file() -> Iterable[Buffer | Streamed]:
        return _encoded(model, chosen, _never, placement.entries).chunks

    if may_be_too_deep(model, chosen):
        model_file()  # raises for a model that is, before its data is written
    Saving(model, target, placement, chunks=model_file, read=load_by_any_name).run(progress)


def dumps(
    model: Model,
    *,
    format: str = "protobuf",  # ruff: ignore[builtin-argument-shadowing]  the word for it
    limits: Limits | None = None,
) -> bytes:
    """Return a model as bytes; `format` is as in `load`.

    As protobuf, external data is included; the other formats, which are for people, say where it lies. Raises
    WireError for what the format cannot hold, and LimitError as `save` does.
    """
    return run_within(limits, _dumped, model, format_named(format))


def _dumped(model: Model, chosen: Format) -> bytes:
    encoded = _encoded(model, chosen, _staying(None) if chosen == "protobuf" else _always)
    try:
        return encoded.joined()
    except MemoryError:
        raise WireError(
            f"there is no memory for the {encoded.size:,} bytes of the model; save it to a file"
        ) from None


class _Encoded(NamedTuple):
    """The bytes of a model in a format; `size` is None where only writing them tells how many they are."""

    chunks: Iterable[Buffer | Streamed]
    size: int | None

    def joined(self) -> bytes:
        """Return all bytes; where they are many, memory for all is allocated before any is read."""
        pieces = (p for chunk in self.chunks for p in (chunk if isinstance(chunk, Streamed) else (chunk,)))
        if self.size is not None and self.size < _LARGE:
            return b"".join(pieces)
        buffer = io.BytesIO()
        if self.size is not None:
            buffer.seek(self.size - 1)
            buffer.write(b"\0")
            buffer.seek(0)
        for piece in pieces:
            buffer.write(piece)
        return buffer.getvalue()


def _encoded(
    model: Model,
    chosen: Format,
    stays: Callable[[ExternalTensor], bool],
    placed: Callable[[Tensor], Entries | None] | None = None,
) -> _Encoded:
    """Return a model in a format; `stays` and `placed` are as in `TensorWriter`."""
    try:
        return _written(model, chosen, stays, placed)
    except RecursionError:
        raise WireError(
            "graphs are nested too deep for this Python to save; call functions instead of nesting graphs"
        ) from None
    except (MemoryError, EncodeError) as error:
        raise WireError(
            f"there is no memory for the model as {chosen}; keep its data in external files"
        ) from error


def _written(
    model: Model,
    chosen: Format,
    stays: Callable[[ExternalTensor], bool],
    placed: Callable[[Tensor], Entries | None] | None,
) -> _Encoded:
    if chosen == "protobuf":
        bulk = BulkWriter()
        chunks = bulk.chunks(_message(model, TensorWriter(bulk, keeps_external=stays, placed=placed), chosen))
        return _Encoded(chunks, bulk.size)

    def message() -> Any:
        return _message(model, TensorWriter(Inline(), keeps_external=stays, placed=placed), chosen)

    if chosen == "onnxtxt":
        kept = all(stays(t.tensor) for t in all_tensors(model) if isinstance(t.tensor, ExternalTensor))
        if placed is not None or not kept:
            model = Reader(message(), Bulk(), Folder(None)).model()
        return _Encoded(_Syntax(model), None)
    text = write_message_text(message(), chosen)
    return _Encoded([text], len(text))


class _Syntax:
    """The bytes of a model in the text syntax, which each iteration writes anew."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __iter__(self) -> Iterator[bytes]:
        from sabir.syntax import text_chunks  # ruff: ignore[import-outside-top-level]  4 ms that few need

        return (chunk.encode("utf-8", "surrogateescape") for chunk in text_chunks(self._model))


def _message(model: Model, tensors: TensorWriter, chosen: Format) -> Any:
    message = Writer(tensors).model(model)
    if may_be_too_deep(model, chosen):
        require_readable(message, chosen)
    return message


def _staying(home: Folder | None) -> Callable[[ExternalTensor], bool]:
    """Return which external data stays where it is when the model goes to a folder, or to none."""
    same: dict[Folder, Callable[[str], bool]] = {}

    def stays(tensor: ExternalTensor) -> bool:
        own = tensor.opener
        if not isinstance(own, Folder) or own.path is None:
            return True  # where its data lies is all that is known of it
        if home is None:
            return False
        if own not in same:
            same[own] = own.has_same(home)
        return same[own](tensor.entries.get("location", ""))

    return stays


def _always(_: ExternalTensor) -> bool:
    return True


def _never(_: ExternalTensor) -> bool:
    return False


def _counted(progress: Progress | None, encoded: _Encoded) -> Callable[[int], None] | None:
    """Return what counts the bytes written; where only writing tells how many there are, it is done twice."""
    if progress is None:
        return None
    total = sum(map(len, encoded.chunks)) if encoded.size is None else encoded.size
    done = 0

    def written(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    return written
