"""Pictures as inputs of a model: decoded, resized and laid out as the input declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, FeedError, FileError, UnsupportedError
from sabir.ir import TensorType

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.ir import Array, Type

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
"""The endings of the names of picture files."""

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's names, by the number of channels
_CHANNELS = (3, 1, 4)  # the likeliest first, as a height may be 4 too
_GREY_RANK, _IMAGE_RANK, _BATCH_RANK = 2, 3, 4
_MOST_PIXELS = 1 << 28


class Normalization(NamedTuple):
    """How pixels become numbers: scaled to 0 to 1, then `(x - mean) / std` for each channel.

    >>> Normalization(mean=(0.5,)).std
    ()
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


class PictureLayout(NamedTuple):
    """The layout of a picture as an input declares it; a height or width of None is that of the picture.

    >>> layout_of(sabir.ir.tensor_type('float', ['N', 3, 32, 48])).channels
    3
    """

    height: int | None
    width: int | None
    channels: int
    axes: tuple[int, ...]  # transposition of (height, width, channels)
    batch: int | None  # the size of the first axis of a batch; 0 without one, None where it is open


def read_image(path: Path, kind: Type | None, normalization: Normalization) -> Array:
    """Return a picture as an array of type `kind`: [N,C,H,W], [N,H,W,C], [C,H,W], [H,W,C] or [H,W].

    It is resized to the declared height and width, and converted to as many channels (1, 3 or 4; 3 where
    that is open). An integer input gets 0 to 255; a float input gets 0 to 1, normalized.

    Raises FileError or FeedError, naming the file, and UnsupportedError without Pillow.

    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'grey.png'
    >>> Image.new('L', (8, 6), 255).save(path)
    >>> read_image(path, sabir.ir.tensor_type('float', [1, 3, 2, 2]), Normalization(mean=(0.5,))).ravel()[:2]
    array([0.5, 0.5], dtype=float32)
    """
    layout = layout_of(kind)
    if layout is None or layout.batch not in {0, 1, None}:
        raise FeedError(f"{path}: a picture does not fit an input of type {kind}; pass a .npy file")
    pixels = decoded(path, layout.channels, (layout.height, layout.width))
    array = laid_out(pixels, kind, layout, normalization)
    return array if layout.batch == 0 else array[np.newaxis]


def layout_of(kind: Type | None) -> PictureLayout | None:
    """Return how an input of a type takes pictures, None where it takes none.

    >>> print(layout_of(sabir.ir.tensor_type('float', ['N', 5])), layout_of(None))
    PictureLayout(height=None, width=5, channels=1, axes=(2, 0, 1), batch=0) None
    """
    if not isinstance(kind, TensorType) or kind.element.kind not in {"integer", "float"}:
        return None
    sizes = [d if isinstance(d, int) else None for d in kind.shape or ()]
    if len(sizes) == _GREY_RANK:
        return PictureLayout(sizes[0], sizes[1], 1, (2, 0, 1), 0)
    batch = sizes[0] if len(sizes) == _BATCH_RANK else 0
    image = sizes[1:] if len(sizes) == _BATCH_RANK else sizes
    if len(image) != _IMAGE_RANK:
        return None
    first, last = image[0], image[2]
    for channels in _CHANNELS:
        if first == channels:
            return PictureLayout(image[1], image[2], channels, (2, 0, 1), batch)
        if last == channels:
            return PictureLayout(image[0], image[1], channels, (0, 1, 2), batch)
    return PictureLayout(image[1], image[2], 3, (2, 0, 1), batch) if first is None else None


def laid_out(pixels: Array, kind: Type | None, layout: PictureLayout, normalization: Normalization) -> Array:
    """Return pixels, uint8[height, width, channels], as one sample of an input; raises FeedError.

    >>> kind, pixels = sabir.ir.tensor_type('float', ['N', 3, 4, 6]), np.full((4, 6, 3), 255, np.uint8)
    >>> laid_out(pixels, kind, layout_of(kind), Normalization()).shape
    (3, 4, 6)
    """
    if not isinstance(kind, TensorType):
        raise FeedError(f"an input of type {kind} takes no picture")
    if kind.element.kind == "float":
        pixels = _normalized(pixels / np.float32(255), normalization)
    elif normalization != Normalization():
        raise FeedError(f"mean and std are for float inputs; this one is {kind}")
    array = pixels.transpose(layout.axes)
    if len(kind.shape or ()) == _GREY_RANK:
        array = array[0]
    return np.ascontiguousarray(array).astype(kind.element.dtype)


def decoded(path: Path, channels: int, size: tuple[int | None, int | None]) -> Array:
    """Return the pixels of a picture, uint8[height, width, channels], resized to a height and a width.

    None keeps that of the picture. Raises FileError or FeedError, naming the file, and UnsupportedError
    without Pillow.

    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'white.png'
    >>> Image.new('RGB', (8, 6), (255, 255, 255)).save(path)
    >>> decoded(path, 3, (2, None)).shape
    (2, 8, 3)
    """
    try:
        from PIL import Image  # ruff: ignore[import-outside-top-level]  an extra that few commands need
    except ImportError:
        raise UnsupportedError(
            f"{path}: pictures are read with Pillow; install it with `pip install 'sabir[image]'`"
        ) from None
    try:
        with Image.open(path) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                raise FeedError(
                    f"{path}: the picture has {picture.width} x {picture.height} pixels, too many"
                )
            converted = picture.convert(_MODES[channels])
    except OSError as error:
        raise FileError(
            f"{path}: {error.strerror or 'this is not a picture that Pillow can read'}"
        ) from error
    except ACCIDENTS as error:
        raise FeedError(f"{path}: this picture cannot be decoded: {error}") from error
    wanted = size[1] or converted.width, size[0] or converted.height
    resized = converted if wanted == converted.size else converted.resize(wanted, Image.Resampling.BILINEAR)
    return np.asarray(resized, np.uint8).reshape(wanted[1], wanted[0], channels)


def _normalized(pixels: Any, normalization: Normalization) -> Any:
    mean, std = (np.array(n or default, np.float32) for n, default in zip(normalization, (0, 1), strict=True))
    channels = pixels.shape[2]
    if any(n.size not in {1, channels} for n in (mean, std)):
        raise FeedError(f"mean and std take 1 number or {channels}, one for each channel")
    return (pixels - mean) / std


__all__ = [
    "PICTURES", "Normalization", "PictureLayout", "decoded", "laid_out", "layout_of", "read_image",
]  # fmt: skip
