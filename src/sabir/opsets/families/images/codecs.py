"""Files of images in the formats PNG and JPEG, through the library Pillow."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import ACCIDENTS, EvaluationError, UnsupportedError
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from types import ModuleType

    from sabir.opsets.typing import Array

COLOR_SPACE = Attribute(
    "color_space",
    "string",
    "The order of the colours: bgr or rgb.",
    default="bgr",
    values=one_of("bgr", "rgb"),
)
CHANNELS = 3
_MOST_PIXELS = 1 << 26  # of an image to decode
_FORMATS = ("PNG", "JPEG")


def decoded(data: bytes, operator: str, order: str) -> Array:
    """Return the pixels of a file, uint8 [height, width, 3]; raises EvaluationError where it is no image."""
    library = _library(operator)
    try:
        with library.open(BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise EvaluationError(
                    f"an image of {image.width} x {image.height} pixels is too large to decode"
                )
            return ordered(np.array(image.convert("RGB")), order)
    except library.DecompressionBombError as error:
        raise EvaluationError(f"the image is too large to decode: {error}") from error
    except (OSError, EOFError, SyntaxError, struct.error, zlib.error, *ACCIDENTS) as error:
        raise EvaluationError("the data is no image in the format PNG or JPEG") from error


def encoded(pixels: Array, operator: str, order: str, kind: str) -> Array:
    """Return pixels, uint8 [height, width, 3], as the bytes of a file."""
    file = BytesIO()
    _library(operator).fromarray(ordered(pixels, order)).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


def ordered(pixels: Array, order: str) -> Array:
    """Return pixels with the colours in the order `rgb`, or from it in another order."""
    return pixels if order == "rgb" else np.ascontiguousarray(pixels[..., ::-1])


def _library(operator: str) -> ModuleType:
    try:
        from PIL import Image  # ruff: ignore[import-outside-top-level]  an extra that few models need
    except ImportError as error:
        raise UnsupportedError(f"{operator} needs Pillow: pip install sabir[image]") from error
    return Image
