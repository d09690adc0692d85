"""BitmaskBiasDropout: Dropout of a tensor and a bias, plus a residual, with a mask of bits."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.random import fused_dropping
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Call, Example, Operator

bitmask_bias_dropout = Operator(
    "BitmaskBiasDropout",
    domain="com.microsoft",
    summary="Dropout of `data + bias`, plus `residual`, and a mask of bits.",
    random=True,
    body_opset=18,
)

v1 = bitmask_bias_dropout.first(
    1,
    inputs=[fused_dropping.DATA, *fused_dropping.BIAS_AND_RESIDUAL, *fused_dropping.MODE],
    outputs=[fused_dropping.OUTPUT, fused_dropping.BITS],
    attributes=[fused_dropping.SEED],
)


@v1.infer
def infer(data: TensorType, bias: TensorType, /, *others: TensorType | None) -> tuple[TensorType, TensorType]:
    residual, ratio, training = _optional(others)
    fused_dropping.check_operands(data, bias, residual)
    return fused_dropping.infer(data, ratio, training, bits=True)


def _optional(others: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return the residual, the ratio and whether it trains; None for what is absent."""
    residual, ratio, training = (*others, None, None, None)[:3]
    return residual, ratio, training


@v1.evaluate
def evaluate(data: Array, bias: Array, /, *others: Array | None, seed: int | None) -> tuple[Array, Array]:
    hold(infer, data, bias, *others)
    residual, *mode = _optional(others)
    y, mask = fused_dropping.evaluate(data, bias, residual, (mode[0], mode[1]), seed)
    return y, fused_dropping.packed(mask, mode[1])


@v1.body
def body(
    b: Builder, data: Value, bias: Value, /, *others: Value | None, seed: int | None, call: Call
) -> tuple[Value, ...]:
    residual, ratio, training = _optional(others)
    y, mask = fused_dropping.emitted(b, data, bias, residual, (ratio, training), seed=seed)
    return (y, fused_dropping.emitted_bits(b, mask, training)) if call.wants(1) else (y,)


@bitmask_bias_dropout.examples
def examples() -> Iterator[Example]:
    data, bias = np.array([[1, 2], [3, 4]], np.float32), np.array([10, 20], np.float32)
    y, all_kept = np.array([[11, 22], [13, 24]], np.float32), np.array([0xFFFFFFFF], np.uint32)
    yield Example(1, data, bias, outputs=2, expect=[y, all_kept])
    yield Example(1, data, bias, y, outputs=2, expect=[2 * y, all_kept])
    yield Example(1, data, bias, y, np.float16(0.25), 0, expect=[2 * y])
    yield Example(1, data, bias, None, 0.0, 1, seed=3, outputs=2, expect=[y, np.array([15], np.uint32)])
    for kind in (np.float16, np.float64):
        yield Example(1, data.astype(kind), bias.astype(kind), expect=[y.astype(kind)])
    yield Example(1, data[:0], bias, outputs=2, expect=[data[:0], np.zeros(0, np.uint32)])
