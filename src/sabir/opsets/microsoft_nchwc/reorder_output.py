"""ReorderOutput: an image that is stored in blocks of channels, as it is without blocks."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.windows import blocked_channels as blocks
from sabir.opsets.families.windows.blocked_channels import Blocks, T
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

reorder_output = Operator(
    "ReorderOutput",
    domain=blocks.DOMAIN,
    summary="The first channels of an image that is stored in blocks, without blocks.",
    body_opset=blocks.BODY_OPSET,
    lacks=blocks.LACKS,
)

v1 = reorder_output.first(
    1,
    inputs=[Input("X", T, "The image, stored in blocks, (N, C', H, W).", differentiable=True)],
    outputs=[
        Output("Y", T, "The image, (N, C, H, W), or (N, H, W, C) with `channels_last`.", differentiable=True)
    ],
    attributes=[
        Attribute("channels", "int", "C; it must be given, and C' is C in whole blocks.", default=0),
        Attribute("channels_last", "int", "1: the last axis of Y has the channels.", default=0),
    ],
)


def _admitted(stored: Dim, channels: int) -> Blocks:
    if channels < 1:
        raise InferenceError(f"`channels` is {channels}, and must be 1 or more")
    return Blocks.of(stored).that_pad(channels, stored)


v1.absent("lower", blocks.NOT_LOWERED)


@v1.infer
def infer(x: TensorType, /, *, channels: int, channels_last: int) -> TensorType:
    check_rank("X", x, blocks.RANK)
    n, stored, *image = x.shape or (None,) * blocks.RANK
    _admitted(stored, channels)
    return TensorType(x.element, (n, *image, channels) if channels_last else (n, channels, *image))


@v1.evaluate
def evaluate(x: Array, /, *, channels: int, channels_last: int) -> Array:
    check_rank("X", x, blocks.RANK)
    size = _admitted(x.shape[1], channels).size(*x.shape[2:])
    image = blocks.unblocked(x, size)[:, :channels]
    return np.ascontiguousarray(np.moveaxis(image, 1, -1) if channels_last else image)


@v1.body
def body(b: Builder, x: Value, /, *, channels: int, channels_last: int) -> Value:
    _, stored, *image = shape_of("X", x)
    with blocks.unconvertible():
        size = _admitted(stored, channels).size(*image)
    count = blocks.known_channels(stored)
    y = blocks.emit_unblocked(b, x, count, size)
    if count != channels:
        y = b.Slice(y, *(as_input(b, "range", [i]) for i in (0, channels, 1)))
    return b.Transpose(y, perm=[0, 2, 3, 1]) if channels_last else y


@reorder_output.examples
def examples() -> Iterator[Example]:
    pixels = np.arange(1, 17, dtype=np.float32).reshape(2, 8)  # two pixels of a block of 8 channels
    stored, image = pixels.reshape(1, 8, 1, 2), pixels.T.reshape(1, 8, 1, 2)
    yield Example(1, stored, channels=8, expect=[image])
    yield Example(1, stored, channels=5, expect=[image[:, :5]])
    yield Example(1, stored, channels=8, channels_last=1, expect=[pixels.reshape(1, 1, 2, 8)])
    yield Example(1, stored, channels=3, channels_last=1, expect=[pixels[:, :3].reshape(1, 1, 2, 3)])
    wide = np.arange(64, dtype=np.float32).reshape(2, 2, 16)  # two blocks of 16: 20 channels need them
    y = wide.transpose(0, 2, 1).reshape(1, 32, 2, 1)[:, :20]
    yield Example(1, wide.reshape(1, 32, 2, 1), channels=20, expect=[y])
    yield Example(
        1, np.zeros((0, 8, 2, 2), np.float32), channels=8, expect=[np.zeros((0, 8, 2, 2), np.float32)]
    )
