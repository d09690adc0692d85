"""DepthToSpace: the depth of each pixel as a block of pixels."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.windows.blocks import (
    MODE,
    build_to_depth,
    build_to_space,
    declare_first,
    infer_to_space,
    lower_to_space,
    to_space,
)
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Example, Operator

depth_to_space = Operator(
    "DepthToSpace",
    summary="Each pixel of `input` becomes a block of `blocksize` by `blocksize` pixels with part of its"
    " depth; the inverse of SpaceToDepth.",
)

v1 = declare_first(depth_to_space, "[N, C / blocksize**2, H * blocksize, W * blocksize]")
v11 = v1.extend(11, "`mode` selects the order of the depth.", attributes=[MODE])
v13 = v11.widen(13, T=BFLOAT16)
v28 = v13.restate(28, "Defined as a function of other operators.")


@v1.infer
def infer(x: TensorType, /, *, blocksize: int, mode: str = "DCR") -> TensorType:
    return infer_to_space(x, blocksize, mode)


@v1.evaluate
def evaluate(x: Array, /, *, blocksize: int, mode: str = "DCR") -> Array:
    return to_space(x, blocksize, mode)


@v1.lower
def lower(x: Expression, /, *, blocksize: int, mode: str = "DCR", call: Lowering) -> Expression:
    return lower_to_space(x, blocksize, mode, call.shape())


@v28.body
def body(b: Builder, x: Value, /, *, blocksize: int, mode: str) -> Value:
    return build_to_space(b, x, blocksize, mode)


@v13.gradient
def gradient(g: Gradient, x: Value, /, *, blocksize: int, mode: str) -> Value:
    if mode == "DCR":
        return g.SpaceToDepth(g.dy, blocksize=blocksize)
    return build_to_depth(g, g.dy, blocksize, mode)  # SpaceToDepth has a mode only from operator set 28 on


@depth_to_space.examples
def examples() -> Iterator[Example]:
    deep = np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1)
    columns = [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]
    rows = [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]
    wide = [[[[0, 2]], [[10, 12]], [[20, 22]], [[30, 32]]]]
    for opset in (1, 11, 13, 28):
        yield Example(opset, deep, blocksize=2, expect=[columns])
        yield Example(opset, wide, blocksize=2, expect=[[[[[0, 10, 2, 12], [20, 30, 22, 32]]]]])
        yield Example(opset, np.zeros((0, 9, 2, 1), bool), blocksize=3, expect=[np.zeros((0, 1, 6, 3), bool)])
    for opset in (11, 13, 28):
        yield Example(opset, deep, blocksize=2, mode="CRD", expect=[rows])
    yield Example(28, deep.astype(str).astype(object), blocksize=1)
    yield Example(28, deep.astype(ml_dtypes.bfloat16), blocksize=1)
