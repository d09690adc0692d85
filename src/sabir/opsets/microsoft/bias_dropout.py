"""BiasDropout: Dropout of a tensor and a bias, plus a residual."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.random import fused_dropping
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Call, Example, Operator

bias_dropout = Operator(
    "BiasDropout",
    domain="com.microsoft",
    summary="Dropout of `data + bias`, plus `residual`; without training `data + bias + residual`.",
    random=True,
    body_opset=18,
)

v1 = bias_dropout.first(
    1,
    inputs=[fused_dropping.DATA, *fused_dropping.BIAS_AND_RESIDUAL, *fused_dropping.MODE],
    outputs=[fused_dropping.OUTPUT, fused_dropping.MASK],
    attributes=[fused_dropping.SEED],
)


@v1.infer
def infer(
    data: TensorType, bias: TensorType, residual: TensorType | None = None, ratio: TensorType | None = None,
    training: TensorType | None = None, /,
) -> tuple[TensorType, TensorType]:  # fmt: skip
    fused_dropping.check_operands(data, bias, residual)
    return fused_dropping.infer(data, ratio, training, bits=False)


@v1.evaluate
def evaluate(
    data: Array, bias: Array, residual: Array | None = None, ratio: Array | None = None,
    training: Array | None = None, /, *, seed: int | None,
) -> tuple[Array, Array]:  # fmt: skip
    hold(infer, data, bias, residual, ratio, training)
    return fused_dropping.evaluate(data, bias, residual, (ratio, training), seed)


@v1.body
def body(
    b: Builder, data: Value, bias: Value, residual: Value | None = None, ratio: Value | None = None,
    training: Value | None = None, /, *, seed: int | None, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    made = fused_dropping.emitted(b, data, bias, residual, (ratio, training), seed=seed)
    return made[: len(call.outputs)]


@bias_dropout.examples
def examples() -> Iterator[Example]:
    x, bias, kept = np.array([[1, 2], [3, 4]]), np.array([10, 20]), np.ones((2, 2), bool)
    for kind in (np.float32, np.float64, np.float16):
        y = np.array([[11, 22], [13, 24]], kind)
        data, offset = x.astype(kind), bias.astype(kind)
        yield Example(1, data, offset, outputs=2, expect=[y, kept])
        yield Example(1, data, np.broadcast_to(offset, (2, 2)), y, expect=[2 * y])
        yield Example(1, data, offset, y, 0.75, 0, outputs=2, expect=[2 * y, kept])
        yield Example(1, data, offset, None, np.float32(0), 1, seed=3, outputs=2, expect=[y, kept])
    zeros = np.zeros((40, 3), np.float32)
    yield Example(1, zeros, zeros[0], zeros + 7, np.float32(0.5), 1, seed=1, expect=[zeros + 7])
    yield Example(1, zeros[:0], zeros[0], expect=[zeros[:0]])
