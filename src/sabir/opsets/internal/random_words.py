"""RandomWords: two random words for each element of a shape, by a key."""

import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.families.shapes.ranks import as_list
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.typing import Array
from sabir.schema import INTERNAL, Constraint, Input, Operator, Output, tensors

random_words = Operator(
    "RandomWords",
    domain=INTERNAL,
    summary="Two random words for each element, a function of the key and of the number of the element.",
)

WORD = Constraint("T", tensors("uint32"))
SIZE = Constraint("S", tensors("int64"))

v1 = random_words.first(
    1,
    inputs=[Input("key", WORD, "Two words."), Input("shape", SIZE, "The sizes of the results.")],
    outputs=[
        Output("first", WORD, "The first word of each element."),
        Output("second", WORD, "The second word of each element."),
    ],
)


@v1.infer
def infer(key: TensorType, shape: TensorType, /) -> tuple[TensorType, TensorType]:
    kind = TensorType(element("uint32"), sizes_in("shape", shape))
    return kind, kind


@v1.evaluate
def evaluate(key: Array, shape: Array, /) -> tuple[Array, Array]:
    sizes = allotted(as_list("shape", shape), np.dtype(np.float64))
    first, second = key.tolist()
    return randomness.words(sizes, (first, second))


@v1.lower
def lower(key: Expression, shape: Expression, /, *, call: Lowering) -> tuple[Expression, Expression]:
    kernels.check_sizing(shape, "`shape`")
    return random_kernels.words(call.shape(), key)
