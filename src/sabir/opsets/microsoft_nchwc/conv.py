"""Conv: a convolution of an image, plus a summand, and an activation; the result is stored in blocks."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.ir import Builder, Dim, TensorType, Value
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.windows import blocked_channels as blocks
from sabir.opsets.families.windows import fused_convolution
from sabir.opsets.families.windows.blocked_channels import Blocks, T
from sabir.opsets.families.windows.convolution import ATTRIBUTES
from sabir.opsets.families.windows.fused_convolution import ACTIVATION_ATTRIBUTES
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

conv = Operator(
    "Conv",
    domain=blocks.DOMAIN,
    summary="An activation of `Conv(X, W, B) + Sum`, with filters that are stored in blocks.",
    body_opset=blocks.BODY_OPSET,
    lacks=blocks.LACKS,
)

v1 = conv.first(
    1,
    inputs=[
        Input(
            "X",
            T,
            "The image, (N, C, H, W), stored in blocks; without blocks if `group` is 1 and a block has more "
            "than C channels.",
            differentiable=True,
        ),
        Input("W", T, "The filters, (M, C/group, kH, kW), stored in blocks.", differentiable=True),
        Input("B", T, "The bias of each filter, (M).", optional=True, differentiable=True),
        Input(
            "Sum", T, "A summand of the output's shape, stored in blocks.", optional=True, differentiable=True
        ),
    ],
    outputs=[Output("Y", T, "The result, (N, M, O1, O2), stored in blocks.", differentiable=True)],
    attributes=[*ATTRIBUTES, *ACTIVATION_ATTRIBUTES],
)


def _admitted(filters: Sequence[Dim], group: int) -> Blocks:
    """Return the sizes of blocks that the shape of the filters admits.

    Filters of one group with fewer channels than a block read an image without blocks. Otherwise blocks are
    whole in a group, or a channel is a group.
    """
    count, channels = filters[:2]
    found = Blocks.of(count)
    if not isinstance(channels, int) or (channels == 1 and group > 1):
        return found.that_divide(group if channels == 1 else None)
    if group > 1:
        return found.that_divide(channels)
    return found.that_hold(channels)


def _reads_blocks(channels: int, group: int, size: int) -> bool:
    """Return whether the image is stored in blocks."""
    return group > 1 or channels >= size


v1.absent("lower", blocks.NOT_LOWERED)


@v1.infer
def infer(
    x: TensorType, w: TensorType, bias: TensorType | None = None, total: TensorType | None = None, /, *,
    group: int, **attributes: Any,
) -> TensorType:  # fmt: skip
    for name, image in (("X", x), ("W", w), ("Sum", total)):
        if image is not None:
            check_rank(name, image, blocks.RANK)
    if w.shape is not None:
        _admitted(w.shape, group)
    return fused_convolution.infer(x, w, bias, total, group=group, **attributes)


@v1.evaluate
def evaluate(
    x: Array, w: Array, bias: Array | None = None, total: Array | None = None, /, *, group: int,
    **attributes: Any,
) -> Array:  # fmt: skip
    for name, image in (("X", x), ("W", w), ("Sum", total)):
        if image is not None:
            check_rank(name, image, blocks.RANK)
    size = _admitted(w.shape, group).size()
    whole = _reads_blocks(w.shape[1], group, size)
    filters = blocks.restored_filters(w, size, read_blocks=whole and w.shape[1] > 1)
    image = blocks.unblocked(x, size) if whole else x
    addend = None if total is None else blocks.unblocked(total, size)
    y = fused_convolution.evaluate(image, filters, bias, addend, group=group, **attributes)
    return blocks.blocked(y, size)


@v1.body
def body(
    b: Builder, x: Value, w: Value, bias: Value | None = None, total: Value | None = None, /, *, group: int,
    **attributes: Any,
) -> Value:  # fmt: skip
    shape = blocks.known_shape(w)
    with blocks.unconvertible():
        size = _admitted(shape, group).size()
    whole = _reads_blocks(shape[1], group, size)
    filters = blocks.emit_filters(b, w, shape, size, read_blocks=whole and shape[1] > 1)
    image = blocks.emit_unblocked(b, x, shape[1] * group, size) if whole else x
    addend = None if total is None else blocks.emit_unblocked(b, total, shape[0], size)
    y = fused_convolution.emit(b, image, filters, bias, addend, group=group, **attributes)
    return blocks.emit_blocked(b, y, shape[0], size)


@conv.examples
def examples() -> Iterator[Example]:
    rng = np.random.default_rng(3)

    def numbers(*shape: int) -> Array:
        return rng.integers(-3, 4, shape).astype(np.float32)

    # three channels without blocks; one tap, so that the sum is a product of matrices
    x, w = numbers(2, 3, 2, 3), numbers(8, 3, 1, 1)
    y = np.einsum("mc,nchw->nhwm", w[:, :, 0, 0], x)
    stored = w[:, :, 0, 0].T.reshape(8, 3, 1, 1)
    yield Example(1, x, stored, expect=[y.reshape(2, 8, 2, 3)])
    bias = numbers(8)
    relu = np.maximum(y + bias, 0).reshape(2, 8, 2, 3)
    yield Example(1, x, stored, bias, activation="Relu", expect=[relu])
    total = numbers(2, 8, 2, 3)
    limits: dict[str, Any] = {"activation": "Clip", "activation_params": [-2, 3]}
    clipped = np.clip(y.reshape(total.shape) + total, -2, 3)
    yield Example(1, x, stored, None, total, **limits, expect=[clipped])
    # 24 channels in blocks of 8, each a group: one tap, which is a factor
    pixels, factors = numbers(1, 3, 2, 2, 8), numbers(3, 8)
    products = (pixels * factors[:, None, None]).reshape(1, 24, 2, 2)
    yield Example(1, pixels.reshape(1, 24, 2, 2), factors.reshape(24, 1, 1, 1), group=24, expect=[products])


@conv.examples
def examples_of_blocks() -> Iterator[Example]:
    rng = np.random.default_rng(4)
    pixels, blocked = rng.integers(-3, 4, (1, 3, 2, 2, 8)), rng.integers(-3, 4, (1, 3, 8, 8))
    x = pixels.astype(np.float32).reshape(1, 24, 2, 2)  # in blocks of 8, as the 8 filters are
    w = blocked.astype(np.float32).reshape(8, 24, 1, 1)
    y = np.einsum("bij,nbhwi->nhwj", blocked[0], pixels).astype(np.float32)
    yield Example(1, x, w, expect=[y.reshape(1, 8, 2, 2)])
    yield Example(1, x, w, kernel_shape=[1, 1], strides=[2, 2], expect=[y[:, ::2, ::2].reshape(1, 8, 1, 1)])
    yield Example(1, x, w, pads=[1, 0, 0, 0], activation="LeakyRelu", activation_params=[0.5])
    grouped = np.einsum("bij,nbhwi->nbhwj", blocked[0], pixels).astype(np.float32)
    yield Example(1, x, w.reshape(24, 8, 1, 1), group=3, expect=[grouped.reshape(1, 24, 2, 2)])
    yield Example(1, x[:0], w, expect=[np.zeros((0, 8, 2, 2), np.float32)])
