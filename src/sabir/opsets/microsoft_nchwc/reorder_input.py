"""ReorderInput: an image, stored in blocks of channels."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Dim, TensorType, Value
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.windows import blocked_channels as blocks
from sabir.opsets.families.windows.blocked_channels import Blocks, T
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

reorder_input = Operator(
    "ReorderInput",
    domain=blocks.DOMAIN,
    summary="The image X with its channels in blocks, after channels of zeros up to a whole block.",
    body_opset=blocks.BODY_OPSET,
    lacks=blocks.LACKS,
)

v1 = reorder_input.first(
    1,
    inputs=[
        Input("X", T, "The image, (N, C, H, W), or (N, H, W, C) with `channels_last`.", differentiable=True)
    ],
    outputs=[Output("Y", T, "The image, stored in blocks, (N, C', H, W).", differentiable=True)],
    attributes=[Attribute("channels_last", "int", "1: the last axis of X has the channels.", default=0)],
)


def _padded(channels: Dim) -> Dim:
    """Return the number of channels in whole blocks, where all sizes of blocks have the same."""
    if not isinstance(channels, int):
        return None
    counts = {blocks.padded_to(channels, size) for size in Blocks.of().sizes}
    return counts.pop() if len(counts) == 1 else None


v1.absent("lower", blocks.NOT_LOWERED)


@v1.infer
def infer(x: TensorType, /, *, channels_last: int) -> TensorType:
    check_rank("X", x, blocks.RANK)
    n, *rest = x.shape or (None,) * blocks.RANK
    channels = rest.pop(-1 if channels_last else 0)
    return TensorType(x.element, (n, _padded(channels), *rest))


def _size(channels: int, image: tuple[Dim, ...]) -> int:
    return Blocks.of().size(*(image if _padded(channels) is not None else ()))


@v1.evaluate
def evaluate(x: Array, /, *, channels_last: int) -> Array:
    check_rank("X", x, blocks.RANK)
    image = np.moveaxis(x, -1, 1) if channels_last else x
    size = _size(image.shape[1], image.shape[2:])
    missing = -image.shape[1] % size
    return blocks.blocked(np.pad(image, ((0, 0), (0, missing), (0, 0), (0, 0))), size)


@v1.body
def body(b: Builder, x: Value, /, *, channels_last: int) -> Value:
    shape = shape_of("X", x)
    channels, *image = (shape[-1], *shape[1:-1]) if channels_last else shape[1:]
    count = blocks.known_channels(channels)
    with blocks.unconvertible():
        size = _size(count, tuple(image))
    last = x if channels_last else b.Transpose(x, perm=[0, 2, 3, 1])
    padded = blocks.padded_to(count, size)
    if padded != count:
        last = b.Pad(last, as_input(b, "pads", [0] * 7 + [padded - count]))
    return blocks.emit_from_last(b, last, padded, size)


@reorder_input.examples
def examples() -> Iterator[Example]:
    # of one pixel, in blocks of any size
    pixel = np.arange(1, 17, dtype=np.float32).reshape(1, 16, 1, 1)
    yield Example(1, pixel, expect=[pixel])
    yield Example(1, pixel.reshape(1, 1, 1, 16), channels_last=1, expect=[pixel])
    padded = np.concatenate([pixel[:, :12], np.zeros((1, 4, 1, 1), np.float32)], 1)
    yield Example(1, pixel[:, :12], expect=[padded])
    yield Example(1, pixel[:, :12].reshape(1, 1, 1, 12), channels_last=1, expect=[padded])
    yield Example(1, np.zeros((0, 32, 1, 1), np.float32), expect=[np.zeros((0, 32, 1, 1), np.float32)])
