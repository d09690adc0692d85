"""EncodeImage: an image as a file in the format PNG or JPEG."""

import importlib.util
from collections.abc import Iterator

import numpy as np

from sabir.elements import UINT8
from sabir.ir import TensorType
from sabir.opsets.families.images import codecs
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output, one_of

encode_image = Operator(
    "EncodeImage",
    domain="ai.onnx.contrib",
    summary="An image as the bytes of a file in the format PNG or JPEG.",
)

_KINDS = {"jpg": "JPEG", "png": "PNG"}

v1 = encode_image.first(
    1,
    inputs=[Input("image", "tensor(uint8)", "The colours of the pixels, [height, width, 3].")],
    outputs=[Output("encoded_image", "tensor(uint8)", "The bytes of the file, [N].")],
    attributes=[
        codecs.COLOR_SPACE,
        Attribute("format", "string", "The format: jpg or png.", required=True, values=one_of(*_KINDS)),
    ],
)

v1.absent("lower", "kernels encode no images")
v1.absent("gradient", "the results are integers")


@v1.infer
def infer(image: TensorType, /) -> TensorType:
    check_shape("image", image, None, None, codecs.CHANNELS)
    return TensorType(UINT8, (None,))


@v1.evaluate
def evaluate(image: Array, /, *, color_space: str, format: str) -> Array:  # ruff: ignore[builtin-argument-shadowing]  the published name
    check_shape("image", image, None, None, codecs.CHANNELS)
    if 0 in image.shape:
        raise ValueError(f"an image of {image.shape[0]} x {image.shape[1]} pixels cannot be encoded")
    return codecs.encoded(image, "EncodeImage", color_space, _KINDS[format])


@encode_image.examples
def examples() -> Iterator[Example]:
    """The bytes depend on the encoder; tests/rooms/test_contrib.py decodes them again."""
    if importlib.util.find_spec("PIL") is None:  # an extra; tests/rooms/test_image_decoder.py says so
        return
    image = np.full((8, 8, 3), [10, 100, 200], np.uint8)
    yield Example(1, image, format="png")
    yield Example(1, image, format="jpg", color_space="rgb")
