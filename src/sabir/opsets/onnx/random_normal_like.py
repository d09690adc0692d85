"""RandomNormalLike: random numbers of the normal distribution, in the shape of another tensor."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families import randomness
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    element_types,
)

random_normal_like = Operator(
    "RandomNormalLike",
    summary="Independent normally distributed numbers, in the shape of another tensor.",
    random=True,
)

T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)

v1 = random_normal_like.first(
    1,
    inputs=[Input("input", T1, "A tensor of which the shape counts, and without `dtype` the element type.")],
    outputs=[Output("output", T2, "The numbers, in the input's shape.")],
    attributes=[
        Attribute(
            "dtype",
            "int",
            "The element type, as a number of TensorProto.DataType; the input's by default.",
            values=element_types("T2"),
        ),
        Attribute("seed", "float", "Where the random numbers start; anywhere if absent."),
        Attribute("scale", "float", "The standard deviation.", default=1.0, values=at_least(0)),
        Attribute("mean", "float", "The mean.", default=0.0),
    ],
)
v22 = v1.widen(22, T1=BFLOAT16, T2=BFLOAT16)


@v1.infer
def infer(x: TensorType, /, *, dtype: int | None) -> TensorType:
    return TensorType(x.element if dtype is None else element(dtype), x.shape)


@v1.evaluate
def evaluate(x: Array, /, *, dtype: int | None, mean: float, scale: float, seed: float | None) -> Array:
    return randomness.normal(x.shape, element(x.dtype if dtype is None else dtype), mean, scale, seed)


@random_normal_like.examples
def examples() -> Iterator[Example]:
    for opset in (1, 22):
        for kind in (np.float32, np.float64, np.float16):
            yield Example(
                opset, np.ones((2, 3), kind), mean=1.5, scale=0.0, expect=[np.full((2, 3), 1.5, kind)]
            )
            number = element(np.dtype(kind)).number
            yield Example(
                opset, ["a", "b"], dtype=number, seed=1.0, mean=1.5, scale=0.0, expect=[np.full(2, 1.5, kind)]
            )
        yield Example(opset, np.zeros((2, 0), np.float32), expect=[np.zeros((2, 0), np.float32)])
        yield Example(opset, 3, dtype=1)
    brains = np.zeros(2, ml_dtypes.bfloat16)
    yield Example(22, brains, mean=1.5, scale=0.0, expect=[np.full(2, 1.5, brains.dtype)])
