"""Saving models: to a path, an open file or bytes, in any format."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from sabir.base import FileError, WireError, run_with_limits
from sabir.files import LazyBytes, reason, replace_file
from sabir.serial._encoding import always, encode, external_stays, never, require_model
from sabir.serial._external import Folder
from sabir.serial._formats import format_by_name, format_named
from sabir.serial._loading import load_by_any_name, path_of
from sabir.serial._nesting import may_be_too_deep

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from sabir.base import Limits
    from sabir.ir import Buffer, Model, OperatorSet
    from sabir.serial._data_files import Progress
    from sabir.serial._encoding import Encoded
    from sabir.serial._formats import Format
    from sabir.serial._placement import Layout


@runtime_checkable
class Writable(Protocol):
    """An open binary file."""

    def write(self, data: Any, /) -> Any:
        """Write bytes, and return how many were written."""
        ...


def save(  # ruff: ignore[too-many-arguments]  all but two are by keyword
    model: Model,
    path: str | os.PathLike[str] | Writable,
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
    """Write a model to a file, which has the old bytes or all of the new ones at any moment.

    `path` may also be an open binary file. `format` is as in `load`; by default the extension of the path
    decides, and without one, and for an open file, it is "protobuf"; an unknown extension raises
    UnsupportedError. As "textproto" and "json" a NaN loses its payload bits; nothing else is lost in any
    format.

    With `external`, the data of every tensor of at least `threshold` bytes goes to a file of that name beside
    the model, each at a multiple of `align` bytes: to several files of at most `shard` bytes, where that is
    specified; to one for each tensor, where the name contains `{name}`; in the safetensors format, where it
    ends in `.safetensors`. With `checksum`, the model states the SHA1 digests of these files. An existing
    file is replaced, unless another model in the folder uses it.

    Without `external`, external data stays where it is when the model stays in its folder, and is moved into
    the file otherwise; with `external=False` all of it is moved in. An open file is in no folder: what is
    written to it is what `dumps` returns, and with `external=False` has all data. The model object is not
    changed.

    `progress` is called with the number of bytes written so far and in all: of the data files, where there
    are any, else of the model. Raises FileError where a file cannot be written, ExternalDataError where data
    to be moved is not found, WireError for what no file can contain, LimitError where external data that very
    many tensors read would take more than `limits` allow.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> import io
    >>> file = io.BytesIO()
    >>> sabir.save(model, file)
    >>> file.getvalue() == sabir.dumps(model)
    True
    """
    require_model(model, "save", path)
    if isinstance(path, Writable):
        chosen = format_named(format) if format else "protobuf"
        run_with_limits(limits, save_open, model, path, chosen, external, progress)
        return
    target = path_of(path)
    chosen = format_named(format) if format else format_by_name(target) or "protobuf"
    if external is None or external is False:
        run_with_limits(limits, save_whole, model, target, chosen, external, progress)
        return
    from sabir.serial._placement import Layout  # ruff: ignore[import-outside-top-level]  few move data

    layout = Layout(external, threshold, align, shard, checksum)
    run_with_limits(limits, _save_split, model, target, chosen, layout, progress)


def save_open(
    model: Model | OperatorSet,
    file: Writable,
    chosen: Format,
    external: str | Literal[False] | None,
    progress: Progress | None = None,
) -> None:
    """Write a model or an operator set to an open file; raises FileError."""
    if external:
        raise FileError("an open file has no folder for `external` data; save to a path")
    if isinstance(file, io.TextIOBase):
        raise FileError("the open file takes text; open it as binary, with mode 'wb'")
    encoded = encode(model, chosen, never if external is False else _kept_in_bytes(chosen))
    written = _counted(progress, encoded)
    try:
        for piece in encoded.pieces():
            _write_all(file, piece)
            if written is not None:
                written(len(piece))
    except OSError as error:
        raise FileError(f"the open file: {reason(error)}") from error


def _write_all(file: Writable, data: Buffer) -> None:
    """Write bytes to a file that may take a part of them at a time."""
    rest = memoryview(data)
    while rest:
        done = file.write(rest)
        rest = rest[done:] if isinstance(done, int) else rest[:0]  # many write all, and return nothing


def save_whole(
    model: Model | OperatorSet,
    target: Path,
    chosen: Format,
    external: Literal[False] | None,
    progress: Progress | None = None,
) -> None:
    """Write a model or an operator set to one file; raises FileError and WireError."""
    encoded = encode(model, chosen, external_stays(Folder.of(target)) if external is None else never)
    replace_file(target, encoded.chunks, written=_counted(progress, encoded))


def _save_split(
    model: Model, target: Path, chosen: Format, layout: Layout, progress: Progress | None
) -> None:
    from sabir.serial._data_files import SplitSave  # ruff: ignore[import-outside-top-level]  few move data
    from sabir.serial._placement import Placement  # ruff: ignore[import-outside-top-level]  as before

    placement = Placement(model, layout)

    def model_file() -> Iterable[Buffer | LazyBytes]:
        return encode(model, chosen, never, placement.entries).chunks

    if may_be_too_deep(model, chosen):
        model_file()  # raises for a model that is, before its data is written
    SplitSave(model, target, placement, chunks=model_file, read=load_by_any_name).run(progress)


def dumps(
    model: Model,
    *,
    format: str = "protobuf",  # ruff: ignore[builtin-argument-shadowing]  the word for it
    limits: Limits | None = None,
) -> bytes:
    """Return a model as bytes; `format` is as in `load`.

    Protobuf includes external data; the other formats, which are for people, refer to it. Raises WireError
    for what the format cannot contain, and LimitError as `save` does.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> print(sabir.dumps(model, format='textproto')[:14].decode())
    ir_version: 10
    """
    require_model(model, "dumps")
    return run_with_limits(limits, dumped, model, format_named(format))


def dumped(model: Model | OperatorSet, chosen: Format) -> bytes:
    """Return a model or an operator set as bytes; raises WireError."""
    encoded = encode(model, chosen, _kept_in_bytes(chosen))
    try:
        return encoded.joined()
    except MemoryError:
        size = "" if encoded.size is None else f" for the {encoded.size:,} bytes"
        raise WireError(f"there is not enough memory{size}; save it to a file") from None


def _kept_in_bytes(chosen: Format) -> Callable[[Any], bool]:
    """Return which external data is not included in bytes that belong to no folder."""
    return external_stays(None) if chosen == "protobuf" else always


def _counted(progress: Progress | None, encoded: Encoded) -> Callable[[int], None] | None:
    """Return a function that adds up the bytes written, and reports them."""
    if progress is None:
        return None
    # the size of a text is known only once it was written, so it is written twice
    total = sum(map(len, encoded.chunks)) if encoded.size is None else encoded.size
    done = 0

    def written(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    return written
