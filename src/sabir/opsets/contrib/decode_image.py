"""DecodeImage: the pixels of an image in the format PNG or JPEG."""

import base64
import importlib.util
from collections.abc import Iterator

import numpy as np

from sabir.elements import UINT8
from sabir.ir import TensorType
from sabir.opsets.families.images import codecs
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

decode_image = Operator(
    "DecodeImage", domain="ai.onnx.contrib", summary="The pixels of an image in the format PNG or JPEG."
)

v1 = decode_image.first(
    1,
    inputs=[Input("raw_input_image", "tensor(uint8)", "The bytes of the file, [N].")],
    outputs=[Output("decoded_image", "tensor(uint8)", "The colours of the pixels, [height, width, 3].")],
    attributes=[codecs.COLOR_SPACE],
)

v1.absent("lower", "kernels decode no images")
v1.absent("gradient", "the results are integers")


@v1.infer
def infer(data: TensorType, /) -> TensorType:
    check_rank("raw_input_image", data, 1)
    return TensorType(UINT8, (None, None, codecs.CHANNELS))


@v1.evaluate
def evaluate(data: Array, /, *, color_space: str) -> Array:
    check_rank("raw_input_image", data, 1)
    return codecs.decoded(data.tobytes(), "DecodeImage", color_space)


@decode_image.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    if importlib.util.find_spec("PIL") is None:  # an extra; tests/rooms/test_image_decoder.py says so
        return
    file = (
        "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAF0lEQVR4nGNk4BKRk5OTk5NjiYqKgrAA"
        "FrwCmocus4wAAAAASUVORK5CYII="
    )
    data = np.frombuffer(base64.b64decode(file), np.uint8)
    rgb = (10 * np.arange(18)).astype(np.uint8).reshape(2, 3, 3)
    yield Example(1, data, expect=[rgb[..., ::-1]])
    yield Example(1, data, color_space="rgb", expect=[rgb])
