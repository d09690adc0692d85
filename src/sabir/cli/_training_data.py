"""The data of `sabir train`: files of arrays, tables, folders of pictures, and what the target is in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

from sabir.base import FeedError, UnsupportedError, listed_names, quote, suggest
from sabir.cli._feed_options import numbers_of
from sabir.cli._files import read_archive
from sabir.ir import TensorType
from sabir.training import ImageFolder, Table, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Array, Model

    Samples: TypeAlias = Mapping[str, Array] | Table | ImageFolder
    """What the data of a training is."""

MeanOption: TypeAlias = Annotated[
    str | None, typer.Option("--mean", metavar="M,...", help="What is subtracted from channels of pictures.")
]
StdOption: TypeAlias = Annotated[
    str | None, typer.Option("--std", metavar="S,...", help="What channels of pictures are divided by then.")
]
ImageSizeOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--image-size", min=1, help="The sides of pictures where the model leaves them open."),
]
FlipOption: TypeAlias = Annotated[
    bool, typer.Option("--flip", help="Mirror half of the pictures at random while training.")
]
CropOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--crop", help="Cut this share of the sides of pictures off at random while training."),
]
_ARCHIVE = ".npz"
_TARGET = "label"
_SIZE = 32  # of a batch, by default


class PictureOptions(NamedTuple):
    """The options about pictures in folders."""

    mean: str | None
    std: str | None
    size: int | None
    flip: bool
    crop: float | None

    def folder(self, path: Path) -> ImageFolder:
        """Return the pictures of a folder; raises FeedError, UnsupportedError."""
        mean, std = numbers_of("--mean", self.mean), numbers_of("--std", self.std)
        return ImageFolder(path, self.size, mean, std, self.flip, self.crop or 0.0)


def training_data(path: Path, pictures: PictureOptions) -> Samples:
    """Return the data of a file or a folder; raises FeedError, FileError, UnsupportedError."""
    if path.is_dir():
        return pictures.folder(path)
    option = next((name for name, value in pictures._asdict().items() if value not in {None, False}), None)
    if option is not None:
        shown = "image-size" if option == "size" else option
        raise UnsupportedError(f"--{shown} is for a folder of pictures, and {path} is a file")
    return read_archive(path) if path.suffix.lower() == _ARCHIVE else read_table(path)


def validation_data(text: str | None, pictures: PictureOptions) -> Samples | float | None:
    """Return what --validate names: data, or the share of the data to set apart."""
    share = share_of(text)
    if text is None or share is not None:
        return share
    return training_data(Path(text), pictures)


def share_of(text: str | None) -> float | None:
    """Return the share that --validate names; None where it names data."""
    try:
        share = float(text or "")
    except ValueError:
        return None
    if not 0 < share < 1:
        raise UnsupportedError(f"--validate {quote(text)}: a share of the data is above 0 and below 1")
    return share


def steps_of(samples: Samples, model: Model, batch: int | None, held: float | None) -> int:
    """Return the number of steps of an epoch, where a share of the samples is held for validation."""
    if isinstance(samples, Table):
        count = samples.rows
    elif isinstance(samples, ImageFolder):
        count = samples.count
    else:
        count = max((len(array) for array in samples.values() if array.ndim), default=0)
    return -(-(count - round(count * (held or 0.0))) // (batch or _fixed_batch(model) or _SIZE))


def target_of(samples: Samples, model: Model, *, needed: bool) -> str:
    """Return the name of the target: the array that is no input, or the column `label`; raises FeedError."""
    if isinstance(samples, ImageFolder):
        return _TARGET
    columns: Mapping[str, Any] = samples.columns if isinstance(samples, Table) else samples
    inputs = {v.name for v in model.graph.inputs}
    others = [name for name in columns if name not in inputs]
    if isinstance(samples, Table):
        if needed and _TARGET not in columns and len(others) != 1:
            raise FeedError(
                f"--target names the column that is the target; the columns are {listed_names(columns)}"
            )
        return _TARGET if _TARGET in columns or not others else others[0]
    _require_inputs(samples, model, others)
    if needed and len(others) != 1:
        listed = f"{listed_names(others)} are no inputs" if others else "all are inputs"
        raise FeedError(
            f"one array of the data is the target, and the others are inputs, "
            f"{listed_names(sorted(inputs))}; {listed}"
        )
    return others[0] if others else _TARGET


def _require_inputs(arrays: Mapping[str, Array], model: Model, others: list[str]) -> None:
    missing = [
        v.name for v in model.graph.inputs if v.name not in arrays and v not in model.graph.initializers
    ]
    if missing:
        near = suggest(missing[0], others) or f"; its arrays are {listed_names(arrays)}"
        raise FeedError(f"the data has no array {quote(missing[0])}, which is an input of the model{near}")


def _fixed_batch(model: Model) -> int | None:
    """Return the size of the first axis of the first input where that is a number."""
    kinds = [v.type for v in model.graph.inputs if v not in model.graph.initializers]
    shape = kinds[0].shape if kinds and isinstance(kinds[0], TensorType) else None
    return shape[0] if shape and isinstance(shape[0], int) and shape[0] else None
