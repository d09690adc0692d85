"""Pictures as inputs of a model: decoded, resized and laid out as the input declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, FeedError, FileError, UnsupportedError
from sabir.ir import TensorType

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.ir import Array, Dim, Type

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's names, by the number of channels
_CHANNELS = (3, 1, 4)  # the likeliest first, as a height may be 4 too
_GREY_RANK, _IMAGE_RANK, _BATCH_RANK = 2, 3, 4
_MOST_PIXELS = 1 << 28
_NUMBERS = ("integer", "float")


class Normalization(NamedTuple):
    """How pixels become numbers: scaled to 0 to 1, then `(x - mean) / std` for each channel."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


class _Layout(NamedTuple):
    """The layout of a picture as an input declares it; a height or width of None is the picture's."""

    height: int | None
    width: int | None
    channels: int
    axes: tuple[int, ...]  # transposition of (height, width, channels)
    batch: bool


def read_image(path: Path, kind: Type | None, normalization: Normalization) -> Array:
    """Return a picture as an array of type `kind`: [N,C,H,W], [N,H,W,C], [C,H,W], [H,W,C] or [H,W].

    It is resized to the declared height and width, and converted to as many channels (1, 3 or 4; 3 where
    that is open). An integer input gets 0 to 255; a float input gets 0 to 1, normalized.

    Raises FileError or FeedError, naming the file, and UnsupportedError without Pillow.
    """
    if (
        not isinstance(kind, TensorType)
        or kind.shape is None
        or kind.element.kind not in {"integer", "float"}
    ):
        raise FeedError(f"{path}: an input of type {kind} does not take a picture; pass a .npy file")
    layout = _layout(kind.shape)
    if layout is None:
        raise FeedError(f"{path}: a picture does not fit the declared shape of {kind}; pass a .npy file")
    pixels = _decoded(path, layout)
    if kind.element.kind == "float":
        pixels = _normalized(pixels / np.float32(255), normalization, path)
    elif normalization != Normalization():
        raise FeedError(f"{path}: --mean and --std are for float inputs; this one is {kind}")
    array = pixels.transpose(layout.axes)
    if len(kind.shape) == _GREY_RANK:
        array = array[0]
    return np.ascontiguousarray(array[np.newaxis] if layout.batch else array).astype(kind.element.dtype)


def _layout(shape: tuple[Dim, ...]) -> _Layout | None:
    sizes = [d if isinstance(d, int) else None for d in shape]
    if len(sizes) == _GREY_RANK:
        return _Layout(sizes[0], sizes[1], 1, (2, 0, 1), batch=False)
    batch = len(sizes) == _BATCH_RANK
    if batch and sizes[0] not in {None, 1}:
        return None
    image = sizes[1:] if batch else sizes
    if len(image) != _IMAGE_RANK:
        return None
    first, last = image[0], image[2]
    for channels in _CHANNELS:
        if first == channels:
            return _Layout(image[1], image[2], channels, (2, 0, 1), batch=batch)
        if last == channels:
            return _Layout(image[0], image[1], channels, (0, 1, 2), batch=batch)
    return _Layout(image[1], image[2], 3, (2, 0, 1), batch=batch) if first is None else None


def _decoded(path: Path, layout: _Layout) -> Any:
    """Return the pixels of a picture, uint8[height, width, channels]."""
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
            converted = picture.convert(_MODES[layout.channels])
    except OSError as error:
        raise FileError(
            f"{path}: {error.strerror or 'this is not a picture that Pillow can read'}"
        ) from error
    except ACCIDENTS as error:
        raise FeedError(f"{path}: this picture cannot be decoded: {error}") from error
    size = layout.width or converted.width, layout.height or converted.height
    resized = converted if size == converted.size else converted.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(resized, np.uint8).reshape(size[1], size[0], layout.channels)


def _normalized(pixels: Any, normalization: Normalization, path: Path) -> Any:
    mean, std = (np.array(n or default, np.float32) for n, default in zip(normalization, (0, 1), strict=True))
    channels = pixels.shape[2]
    if any(n.size not in {1, channels} for n in (mean, std)):
        raise FeedError(f"{path}: --mean and --std take 1 number or {channels}, one for each channel")
    return (pixels - mean) / std
