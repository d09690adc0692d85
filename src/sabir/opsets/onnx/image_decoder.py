"""ImageDecoder: the pixels of an encoded image."""

import importlib.util
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import ACCIDENTS, EvaluationError, UnsupportedError
from sabir.elements import UINT8
from sabir.ir import TensorType
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, one_of, tensors

if TYPE_CHECKING:
    from PIL.Image import Image

image_decoder = Operator(
    "ImageDecoder", summary="The pixels of a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file, row by row."
)

T1 = Constraint("T1", tensors("uint8"))
T2 = Constraint("T2", tensors("uint8"))

CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}

v20 = image_decoder.first(
    20,
    inputs=[Input("encoded_stream", T1, "The bytes of the file.", differentiable=False)],
    outputs=[
        Output(
            "image",
            T2,
            "(height, width, channels); (0, 0, channels) if the file is not an image.",
            differentiable=False,
        )
    ],
    attributes=[
        Attribute("pixel_format", "string", "RGB, BGR or Grayscale.", default="RGB", values=one_of(*CHANNELS))
    ],
)

FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
MARKS = (
    *(b"BM", b"\xff\xd8\xff", b"\x00\x00\x00\x0cjP  ", b"\xff\x4f\xff\x51", b"\x89PNG", b"RIFF"),
    *(b"II*\x00", b"MM\x00*", *(b"P%d" % i for i in range(1, 8))),
)  # the first bytes of files in these formats
MOST_PIXELS = 1 << 26  # of an image to decode
DEEP = "I"  # the prefix of Pillow's modes with more than 8 bits per pixel

v20.absent("lower", "kernels decode no images")
v20.absent("downgrade", "no older operator decodes images")


@v20.infer
def infer(stream: TensorType, /, *, pixel_format: str) -> TensorType:
    return TensorType(UINT8, (None, None, CHANNELS[pixel_format]))


@v20.evaluate
def evaluate(stream: Array, /, *, pixel_format: str) -> Array:
    """Decode with Pillow; data in no known format has no pixels, as the standard says."""
    nothing: Array = np.zeros((0, 0, CHANNELS[pixel_format]), np.uint8)
    data = stream.tobytes()
    if not data.startswith(MARKS):
        return nothing
    try:
        from PIL import Image  # ruff: ignore[import-outside-top-level]  an extra that few models need
    except ImportError as error:
        raise UnsupportedError("ImageDecoder needs Pillow: pip install sabir[image]") from error
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise EvaluationError(
                    f"an image of {image.width} x {image.height} pixels is too large to decode"
                )
            return _pixels(image, pixel_format)
    except Image.DecompressionBombError as error:
        raise EvaluationError(f"the image is too large to decode: {error}") from error
    except (OSError, EOFError, SyntaxError, struct.error, zlib.error, *ACCIDENTS):  # from broken files
        return nothing


def _pixels(image: "Image", pixel_format: str) -> Array:
    if image.mode.startswith(DEEP):  # 16 bits, of which Pillow would keep the lower 8
        grey = np.clip(np.asarray(image).astype(np.int64) >> 8, 0, 255).astype(np.uint8)
        return np.repeat(grey[..., None], CHANNELS[pixel_format], axis=2)
    if pixel_format == "Grayscale":
        return np.array(image.convert("L"))[..., None]
    pixels = np.array(image.convert("RGB"))
    return pixels if pixel_format == "RGB" else pixels[..., ::-1].copy()


@image_decoder.examples
def examples() -> Iterator[Example]:
    noise = np.frombuffer(b"no image", np.uint8)
    yield Example(20, noise, expect=[np.zeros((0, 0, 3), np.uint8)])
    yield Example(20, noise[:0], pixel_format="Grayscale", expect=[np.zeros((0, 0, 1), np.uint8)])
    if importlib.util.find_spec("PIL") is None:  # an extra; tests/rooms/test_image_decoder.py says so
        return
    text = np.frombuffer(b"P6 2 1 255\n\x01\x02\x03\xf0\xf1\xf2", np.uint8)  # PPM stores pixels uncompressed
    rgb = np.array([[[1, 2, 3], [0xF0, 0xF1, 0xF2]]], np.uint8)
    yield Example(20, text, expect=[rgb])
    yield Example(20, text, pixel_format="BGR", expect=[rgb[..., ::-1]])
    yield Example(20, text, pixel_format="Grayscale", expect=[[[[2], [0xF1]]]])
    yield Example(20, text[:-4], expect=[np.zeros((0, 0, 3), np.uint8)])
    deep = np.frombuffer(b"P5 1 2 65535\n\x12\x34\xff\xff", np.uint8)
    yield Example(20, deep, pixel_format="Grayscale", expect=[[[[0x12]], [[0xFF]]]])
