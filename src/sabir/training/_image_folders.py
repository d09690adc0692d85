"""Pictures in a folder for each class as training data, with random changes that the seed decides."""

from __future__ import annotations

import os  # ruff: ignore[typing-only-standard-library-import]  of a field
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import FeedError, FileError, UnsupportedError, quote
from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.serial import PICTURES, Normalization, decoded, laid_out, layout_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Array, Type
    from sabir.serial import PictureLayout
    from sabir.training._step_inputs import StepInputs

_CHANGING = 4  # beside the random numbers of the order of samples


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """Training data: the pictures in the folders of a folder, which are the classes in alphabetical order.

    A picture has the height and the width of the input, or where that is open `size`. A float input gets
    numbers from 0 to 1, then `(x - mean) / std` for each channel; an integer input gets 0 to 255.

    Pictures change at random in each epoch of a training, and not in a validation: with `flip` half of them
    are mirrored, left and right. With `crop`, such as 0.1, they are made larger by that share, and a window
    of the size of the input is taken at random; a validation takes the middle. The changes depend on the seed
    of the session, the epoch and the picture, so that a training that is resumed repeats them.

    Pillow reads the pictures (the extra `image`). Raises FileError for no folder, FeedError for one without
    folders or pictures, and UnsupportedError for numbers out of their range.

    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> for name, shade in (('day', 255), ('night', 0)):
    ...     (root / name).mkdir()
    ...     Image.new('L', (4, 4), shade).save(root / name / '1.png')
    >>> ImageFolder(root).classes
    ('day', 'night')
    """

    path: str | os.PathLike[str]
    size: int | tuple[int, int] | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    flip: bool = False
    crop: float = 0.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a crop that is no share below 1."""
        if not 0 <= self.crop < 1:
            raise UnsupportedError(f"crop is a share of the picture, from 0 to below 1; got {self.crop}")

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the folders, whose places are the labels."""
        folder = Path(self.path)
        try:
            found = sorted(item.name for item in folder.iterdir() if item.is_dir())
        except OSError as error:
            raise FileError(f"{folder}: {error.strerror}") from error
        if not found:
            raise FeedError(f"{folder}: it has no folders; each class of pictures has one")
        return tuple(found)

    @property
    def count(self) -> int:
        """The number of pictures; raises as `classes`, and FeedError for a class without one."""
        return sum(map(len, self.files()))

    def files(self) -> list[list[Path]]:
        """Return the pictures of each class in alphabetical order; raises as `count`."""
        found: list[list[Path]] = []
        for name in self.classes:
            inside = Path(self.path) / name
            files = sorted(f for f in inside.rglob("*") if f.suffix.lower() in PICTURES)
            if not files:
                raise FeedError(f"{inside}: it has no pictures ({', '.join(PICTURES)})")
            found.append(files)
        return found

    def source(self, inputs: StepInputs) -> ImageSource:
        """Return the samples for an input that takes pictures, and a target of labels; raises FeedError."""
        kinds = {name: inputs.ports[name].type for name in inputs.required}
        labels = [name for name, kind in kinds.items() if _takes_labels(kind)]
        found = {name: layout_of(kind) for name, kind in kinds.items()}
        layouts = {name: layout for name, layout in found.items() if layout is not None and layout.batch != 0}
        pictures = list(layouts)
        if len(labels) != 1 or len(pictures) != 1 or {*labels, *pictures} != kinds.keys():
            shown = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
            raise FeedError(
                "pictures by class are for an input [N,C,H,W] or [N,H,W,C] and a target int64[N]; the inputs "
                f"are {shown}"
            )
        name = pictures[0]
        return ImageSource(self, _Ports(name, kinds[name], layouts[name], labels[0]))


class _Ports(NamedTuple):
    picture: str
    kind: Type | None
    layout: PictureLayout
    label: str


class ImageSource:
    """The samples of a folder of pictures for a model."""

    def __init__(self, folder: ImageFolder, ports: _Ports) -> None:
        """List the pictures; raises FeedError for a class without one, and where no size is known."""
        self._folder, self._ports = folder, ports
        classes = folder.files()
        self._files = [file for files in classes for file in files]
        self._labels = np.repeat(np.arange(len(classes), dtype=np.int64), [len(files) for files in classes])
        self._size = self._sizes(folder.size)

    def __len__(self) -> int:
        return len(self._files)

    def take(self, places: Array, key: tuple[int, ...] | None) -> Mapping[str, Any]:
        """Return pictures and labels; a key changes the pictures at random."""
        pictures = [self._picture(int(place), key) for place in places]
        return {self._ports.picture: np.stack(pictures), self._ports.label: self._labels[places]}

    def _sizes(self, given: int | tuple[int, int] | None) -> tuple[int, int]:
        """Return the height and the width of all pictures; raises FeedError where neither side has them."""
        declared = self._ports.layout.height, self._ports.layout.width
        wanted = (given, given) if isinstance(given, int) or given is None else given
        for side, other in zip(declared, wanted, strict=True):
            if side is None and other is None:
                raise FeedError(
                    f"the input {quote(self._ports.picture)} is {self._ports.kind}, which leaves the size of "
                    "pictures open; pass ImageFolder(path, size=224)"
                )
            if side is not None and other not in {None, side}:
                raise FeedError(
                    f"the input {quote(self._ports.picture)} is {self._ports.kind}; size={given} does not fit"
                )
        height, width = (side or other or 0 for side, other in zip(declared, wanted, strict=True))
        return height, width

    def _picture(self, place: int, key: tuple[int, ...] | None) -> Array:
        folder, (height, width) = self._folder, self._size
        rng = None if key is None else np.random.default_rng((*key, _CHANGING, place))
        large = (round(height / (1 - folder.crop)), round(width / (1 - folder.crop)))
        pixels = decoded(self._files[place], self._ports.layout.channels, large)
        spare = np.subtract(large, (height, width))
        top, left = spare // 2 if rng is None else rng.integers(0, spare + 1)
        pixels = pixels[top : top + height, left : left + width]
        if folder.flip and rng is not None and rng.random() < 0.5:  # ruff: ignore[magic-value-comparison]  one half
            pixels = pixels[:, ::-1]
        return laid_out(pixels, self._ports.kind, self._ports.layout, Normalization(folder.mean, folder.std))


def _takes_labels(kind: Type | None) -> bool:
    return isinstance(kind, TensorType) and kind.element is INT64 and len(kind.shape or ()) == 1


__all__ = ["ImageFolder", "ImageSource"]
