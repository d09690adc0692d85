"""Saving models: to a path or as bytes, in any format."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal

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
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from sabir.base import Limits
    from sabir.ir import Buffer
    from sabir.serial._data_files import Progress
    from sabir.serial._formats import Format
    from sabir.serial._placement import Layout
    from sabir.serial._tensors import Entries

_WORTH_ROOM = 1 << 26


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
    size, chunks = _encoded(model, chosen, stays)
    replace_file(target, chunks, written=_counted(progress, size))


def _save_split(
    model: Model, target: Path, chosen: Format, layout: Layout, progress: Progress | None
) -> None:
    from sabir.serial._data_files import Saving  # ruff: ignore[import-outside-top-level]  few move data
    from sabir.serial._placement import Placement  # ruff: ignore[import-outside-top-level]  as before

    placement = Placement(model, layout)

    def model_file() -> Iterable[Buffer | Streamed]:
        return _encoded(model, chosen, _never, placement.entries)[1]

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
    size, chunks = _encoded(model, chosen, _staying(None) if chosen == "protobuf" else _always)
    try:
        return _joined(size, chunks)
    except MemoryError:
        raise WireError(
            f"there is no memory for the {size:,} bytes of the model; save it to a file"
        ) from None


def _joined(size: int, chunks: Iterable[Buffer | Streamed]) -> bytes:
    """Put chunks together; where they are many bytes, there is room for all of them before any is read."""
    if size < _WORTH_ROOM:
        return b"".join(b"".join(c) if isinstance(c, Streamed) else c for c in chunks)
    made, at = io.BytesIO(), 0
    made.seek(size - 1)
    made.write(b"\0")
    made.seek(0)
    for chunk in chunks:
        for piece in chunk if isinstance(chunk, Streamed) else (chunk,):
            at += made.write(piece)
    return made.getvalue()


def _encoded(
    model: Model,
    chosen: Format,
    stays: Callable[[ExternalTensor], bool],
    placed: Callable[[Tensor], Entries | None] | None = None,
) -> tuple[int, Iterable[Buffer | Streamed]]:
    """Return how many bytes a model has in a format, and them; `stays` and `placed` as for a TensorWriter."""
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
) -> tuple[int, Iterable[Buffer | Streamed]]:
    if chosen == "protobuf":
        bulk = BulkWriter()
        chunks = bulk.chunks(_message(model, TensorWriter(bulk, keeps_external=stays, placed=placed), chosen))
        return bulk.size, chunks

    def message() -> Any:
        return _message(model, TensorWriter(Inline(), keeps_external=stays, placed=placed), chosen)

    if chosen == "onnxtxt":
        from sabir.syntax import text  # ruff: ignore[import-outside-top-level]  4 ms that few need

        kept = all(stays(t.tensor) for t in all_tensors(model) if isinstance(t.tensor, ExternalTensor))
        if placed is not None or not kept:
            model = Reader(message(), Bulk(), Folder(None)).model()
        written = text(model).encode("utf-8", "surrogateescape")
    else:
        written = write_message_text(message(), chosen)
    return len(written), [written]


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


def _counted(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    if progress is None:
        return None
    done = 0

    def written(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    return written
