"""RandomUniform: random numbers of the uniform distribution."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families import randomness
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Operator,
    Output,
    at_least,
    element_types,
)

random_uniform = Operator(
    "RandomUniform",
    summary="Independent numbers anywhere in `[low, high)`, each as likely as another.",
    random=True,
)

T = Constraint("T", FLOATS)

v1 = random_uniform.first(
    1,
    outputs=[Output("output", T, "The numbers, in the shape that `shape` tells.")],
    attributes=[
        Attribute("shape", "ints", "The size of each dimension.", required=True, values=at_least(0)),
        Attribute(
            "dtype",
            "int",
            "The element type, as a number of TensorProto.DataType; float by default.",
            default=1,
            values=element_types("T"),
        ),
        Attribute("seed", "float", "Where the random numbers start; anywhere if absent."),
        Attribute("high", "float", "The upper end, which is never drawn.", default=1.0),
        Attribute("low", "float", "The lower end.", default=0.0),
    ],
)
v22 = v1.widen(22, T=BFLOAT16)


@v1.infer
def infer(*, shape: tuple[int, ...], dtype: int) -> TensorType:
    return TensorType(element(dtype), tuple(shape))


@v1.evaluate
def evaluate(*, shape: tuple[int, ...], dtype: int, low: float, high: float, seed: float | None) -> Array:
    return randomness.uniform(shape, element(dtype), low, high, seed)


@random_uniform.examples
def examples() -> Iterator[Example]:
    for opset in (1, 22):
        for kind in (np.float32, np.float64, np.float16):
            number = element(np.dtype(kind)).number
            yield Example(
                opset,
                shape=[2, 3],
                dtype=number,
                seed=1.0,
                low=1.5,
                high=1.5,
                expect=[np.full((2, 3), 1.5, kind)],
            )
        yield Example(opset, shape=[2, 0], expect=[np.zeros((2, 0), np.float32)])
        yield Example(opset, shape=[])
    brain = element("bfloat16").number
    yield Example(22, shape=[2], dtype=brain, low=1.5, high=1.5, expect=[np.full(2, 1.5, ml_dtypes.bfloat16)])
