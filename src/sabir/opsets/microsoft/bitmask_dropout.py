"""BitmaskDropout: Dropout, with a mask of bits."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.random import fused_dropping
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Call, Example, Operator

bitmask_dropout = Operator(
    "BitmaskDropout",
    domain="com.microsoft",
    summary="A copy of `data`; while training, 0 with probability `ratio`, else `data / (1 - ratio)`;"
    " and a mask of bits.",
    random=True,
    body_opset=18,
)

v1 = bitmask_dropout.first(
    1,
    inputs=[fused_dropping.DATA, *fused_dropping.MODE],
    outputs=[fused_dropping.OUTPUT, fused_dropping.BITS],
    attributes=[fused_dropping.SEED],
)


@v1.infer
def infer(
    data: TensorType, ratio: TensorType | None = None, training: TensorType | None = None, /
) -> tuple[TensorType, TensorType]:
    return fused_dropping.infer(data, ratio, training, bits=True)


@v1.evaluate
def evaluate(
    data: Array, ratio: Array | None = None, training: Array | None = None, /, *, seed: int | None
) -> tuple[Array, Array]:
    hold(infer, data, ratio, training)
    y, mask = fused_dropping.evaluate(data, None, None, (ratio, training), seed)
    return y, fused_dropping.packed(mask, training)


@v1.body
def body(
    b: Builder, data: Value, ratio: Value | None = None, training: Value | None = None, /,
    *, seed: int | None, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    y, mask = fused_dropping.emitted(b, data, None, None, (ratio, training), seed=seed)
    return (y, fused_dropping.emitted_bits(b, mask, training)) if call.wants(1) else (y,)


@bitmask_dropout.examples
def examples() -> Iterator[Example]:
    ones = 0xFFFFFFFF
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for kind in (np.float32, np.float64, np.float16):
        y = x.astype(kind)
        yield Example(1, y, expect=[y])
        yield Example(1, y, 0.75, 0, outputs=2, expect=[y, np.array([ones, ones], np.uint32)])
        yield Example(1, y, 0.0, 1, seed=2, outputs=2, expect=[y, np.array([ones, 7], np.uint32)])
    yield Example(1, 0 * x, np.float32(0.5), 1, seed=1, expect=[0 * x])
    yield Example(1, np.float32(3), outputs=2, expect=[3, np.array([ones], np.uint32)])
    yield Example(1, x[:0], 0.0, 1, outputs=2, expect=[x[:0], np.zeros(0, np.uint32)])
