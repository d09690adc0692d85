"""Size: how many elements a tensor has."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT8,
    SMALL_TYPES,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    tensors,
)

size = Operator("Size", summary="The number of elements of `data`: the product of its dimensions.")

T = Constraint("T", CLASSIC)
T1 = Constraint("T1", tensors("int64"))

v1 = size.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("size", T1, "One number, as a scalar.", differentiable=False)],
)
v13 = v1.widen(13, T=BFLOAT16)
v19 = v13.widen(19, T=FLOAT8)
v25 = v19.widen_stepwise(SMALL_TYPES, "T")


@v1.infer
def infer(data: TensorType, /) -> TensorType:
    count = data.size
    return TensorType(INT64, (), None if count is None else (count,))


@v1.evaluate
def evaluate(data: Array, /) -> Array:
    return np.array(data.size, np.int64)


@size.examples
def examples() -> Iterator[Example]:
    for opset in (1, 13, 19, 21, 23, 24, 25):
        yield Example(opset, np.zeros((2, 3, 4), np.float32), expect=[24])
    yield Example(1, "text", expect=[1])
    yield Example(13, np.zeros((3, 0), bool), expect=[0])
    yield Example(21, np.zeros(3, ml_dtypes.int4), expect=[3])
