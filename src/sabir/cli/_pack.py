"""`sabir unpack` and `sabir pack`: tensor data moved to files beside the model, and back into it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabir.base import quote
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import STREAM, ModelPath, load_any, report_screen, save_any
from sabir.cli._progress import progress_bar
from sabir.cli._screen import bytes_text, exact_bytes_text, plain
from sabir.cli._usage import refuse
from sabir.ir import ExternalTensor, all_tensors
from sabir.serial import largest_movable, load, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Model

UNPACK_EXAMPLES = (
    "sabir unpack model.onnx -o model.onnx --data weights.data",
    "sabir unpack model.onnx -o out/model.onnx --data weights.data --shard 2GB --checksum",
    "sabir unpack model.onnx -o out/model.onnx --data weights.safetensors",
    "sabir unpack model.onnx -o out/model.onnx --data 'weights/{name}.bin' --threshold 64KiB",
)
PACK_EXAMPLES = ("sabir pack model.onnx -o packed.onnx", "sabir pack model.onnx -o model.onnx")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(?:([kKMGT])(i)?)?[bB]?", re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def _size(text: str | int) -> int:
    """Read `4096`, `64KiB`, `2GB` or `1.5 GiB` as a number of bytes; raises typer's BadParameter."""
    found = _SIZE.fullmatch(str(text))  # typer passes a default through here too
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a size; write it as 4096, 64KiB or 2GB")
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[(unit or "").lower()])


Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Write the model here.")]


def unpack(
    model: ModelPath,
    *,
    output: Output,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="NAME",
            help="Name of the data file beside the model; by default the model's name with .data. "
            "With {name} in it, one file for each tensor; with the extension .safetensors, in that format.",
        ),
    ] = None,
    threshold: Annotated[
        int, typer.Option(parser=_size, metavar="SIZE", help="Keep tensors smaller than this in the model.")
    ] = 1024,
    align: Annotated[
        int, typer.Option(parser=_size, metavar="SIZE", help="Start each tensor at a multiple of this.")
    ] = 4096,
    shard: Annotated[
        int | None,
        typer.Option(
            parser=_size,
            metavar="SIZE",
            help="Limit each data file to this size; a larger tensor gets a separate file.",
        ),
    ] = None,
    checksum: Annotated[
        bool, typer.Option("--checksum", help="Write the SHA1 digests of the data files into the model.")
    ] = False,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Move the data of a model's tensors to files beside it.

    The output may replace the model itself: at every moment the old or the new one is complete.
    """
    if output == STREAM:
        refuse("unpack needs -o FILE: the data files are written beside it")
    if align < 1 or (shard is not None and shard < 1):
        raise typer.BadParameter("--align and --shard must be at least 1")
    external = data or f"{output.stem}.data"
    if shard is not None and "{name}" in external:
        raise typer.BadParameter(
            "--shard limits files that tensors share; with {name} each tensor has a separate file"
        )
    loaded = load_any(model)
    with progress_bar("writing") as progress:
        save(
            loaded, output, external=external, threshold=threshold, align=align, shard=shard,
            checksum=checksum, progress=progress,
        )  # fmt: skip
    data_files = _data_files(output)
    _report(output, data_files, "" if data_files else _nothing_moved(loaded, threshold), as_json=as_json)


def pack(
    model: ModelPath,
    *,
    output: Output,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Move the data of external files into the model file.

    The data files stay. The output may replace the model itself; - is standard output.
    """
    if output == STREAM:
        save_any(load_any(model), output)  # protobuf on a stream includes external data
        return
    with progress_bar("writing") as progress:
        save(load_any(model), output, external=False, progress=progress)
    _report(output, (), "", as_json=as_json)


def _nothing_moved(model: Model, threshold: int) -> str:
    """Return why no tensor of a model goes to a data file."""
    largest = largest_movable(model)
    if largest is None:
        return "the model has no tensor whose data can be in another file"
    name, size = largest
    named = f"the largest tensor, {quote(name)}," if name else "the largest tensor"
    kept = f"--threshold keeps all below {exact_bytes_text(threshold)} in the model"
    return f"{named} has {exact_bytes_text(size)}, and {kept}"


def _data_files(path: Path) -> list[str]:
    """Return the names of the data files that a model uses."""
    tensors = [tensor for tensor, *_ in all_tensors(load(path)) if isinstance(tensor, ExternalTensor)]
    return list(dict.fromkeys(tensor.entries.get("location", "") for tensor in tensors))


def _report(path: Path, data: Sequence[str], note: str, *, as_json: bool) -> None:
    """List the files of a saved model, with their sizes; `note` says why it has no data file."""
    files = [(path.name, path), *((name, path.parent / name) for name in data)]
    if as_json:
        sizes = [{"path": str(file), "bytes": file.stat().st_size} for _, file in files]
        write_json({"files": sizes, **({"note": note} if note else {})})
        return
    screen = report_screen(path)
    screen.line(screen.paint(f"Written in {plain(path.absolute().parent)}", bold=True))
    screen.table([(plain(name), bytes_text(file.stat().st_size)) for name, file in files], "cyan", "right")
    if note:
        screen.line(f"No data file: {note}")
