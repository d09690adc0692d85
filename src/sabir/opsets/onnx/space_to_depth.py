"""SpaceToDepth: each block of pixels in the depth of one pixel."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.windows.blocks import (
    MODE,
    build_to_depth,
    declare_first,
    infer_to_depth,
    lower_to_depth,
    to_depth,
)
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Example, Operator

space_to_depth = Operator(
    "SpaceToDepth", summary="Each block of `blocksize` by `blocksize` pixels of `input` becomes one pixel."
)

v1 = declare_first(space_to_depth, "[N, C * blocksize**2, H / blocksize, W / blocksize]")
v13 = v1.widen(13, T=BFLOAT16)
v28 = v13.extend(
    28, "`mode` selects the order of the depth; defined as a function of other operators.", attributes=[MODE]
)


@v1.infer
def infer(x: TensorType, /, *, blocksize: int, mode: str = "DCR") -> TensorType:
    return infer_to_depth(x, blocksize, mode)


@v1.evaluate
def evaluate(x: Array, /, *, blocksize: int, mode: str = "DCR") -> Array:
    return to_depth(x, blocksize, mode)


@v1.lower
def lower(x: Expression, /, *, blocksize: int, mode: str = "DCR", call: Lowering) -> Expression:
    return lower_to_depth(x, blocksize, mode, call.shape())


@v28.body
def body(b: Builder, x: Value, /, *, blocksize: int, mode: str) -> Value:
    return build_to_depth(b, x, blocksize, mode)


@v13.gradient
def gradient(g: Gradient, x: Value, /, *, blocksize: int, mode: str = "DCR") -> Value:
    return g.DepthToSpace(g.dy, blocksize=blocksize, mode=mode)


@space_to_depth.examples
def examples() -> Iterator[Example]:
    image = np.array([[[[0, 1, 2, 3], [4, 5, 6, 7]]]], np.float32)
    deep, layers = [[[[0, 2]], [[1, 3]], [[4, 6]], [[5, 7]]]], [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]
    alternating = np.array([0, 4, 1, 5, 2, 6, 3, 7]).reshape(1, 8, 1, 1)
    for opset in (1, 13, 28):
        yield Example(opset, image, blocksize=2, expect=[deep])
        yield Example(opset, layers, blocksize=2, expect=[alternating])
        yield Example(opset, np.zeros((0, 1, 6, 3), bool), blocksize=3, expect=[np.zeros((0, 9, 2, 1), bool)])
    yield Example(28, layers, blocksize=2, mode="CRD", expect=[np.arange(8).reshape(1, 8, 1, 1)])
    for opset in (13, 28):
        yield Example(
            opset, [[[["a", "b"]] * 2]], blocksize=2, expect=[[[[["a"]], [["b"]], [["a"]], [["b"]]]]]
        )
        yield Example(opset, image.astype(ml_dtypes.bfloat16), blocksize=2, expect=[deep])
