"""RestorePadding: tokens at their places in a padded batch of sequences, zeros elsewhere."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value, product
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.sequences.padded import token_count
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

restore_padding = Operator(
    "RestorePadding",
    domain="com.microsoft",
    summary="The tokens at the places that RemovePadding took them from; the padding is zero.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"))
M = Constraint("M", tensors("int32"))

v1 = restore_padding.first(
    1,
    inputs=[
        Input("input", T, "The tokens, [total_tokens, hidden].", differentiable=True),
        Input(
            "token_offset",
            M,
            "The places in the batch of all tokens, and then those of the padding, [batch, sequence].",
            differentiable=False,
        ),
    ],
    outputs=[Output("output", T, "The padded sequences, [batch, sequence, hidden].", differentiable=True)],
)


@v1.infer
def infer(x: TensorType, places: TensorType, /) -> TensorType:
    check_rank("input", x, 2)
    check_rank("token_offset", places, 2)
    total, hidden = x.shape or (None, None)
    batch, length = places.shape or (None, None)
    room = product([batch, length]) if isinstance(batch, int) and isinstance(length, int) else None
    if isinstance(total, int) and isinstance(room, int) and total > room:
        raise InferenceError(f"there are {total} tokens, and {room} places for them")
    return TensorType(x.element, (batch, length, hidden))


@v1.evaluate
def evaluate(x: Array, places: Array, /) -> Array:
    hold(infer, x, places)
    y = np.zeros(allotted((places.size, x.shape[1]), x.dtype, x.size), x.dtype)
    used = places.ravel()[: len(x)]
    outside = (used < 0) | (used >= len(y))
    if outside.any():
        raise ValueError(f"the place {used[outside][0]} is outside [0, {len(y) - 1}]")
    y[used] = x
    return y.reshape(*places.shape, x.shape[1])


@v1.body
def body(b: Builder, x: Value, places: Value, /) -> Value:
    hidden, zero = b.Shape(x, start=1), np.zeros(1, element_of(x).dtype)
    padding = b.ConstantOfShape(b.Concat(token_count(b, b.Shape(places)), hidden, axis=0), value=zero)
    flat = b.Cast(b.Reshape(places, as_input(b, "flat", [-1])), to=INT64.number)
    used = b.Slice(flat, as_input(b, "start", [0]), b.Shape(x, start=0, end=1), as_input(b, "axis", [0]))
    y = b.ScatterND(padding, b.Unsqueeze(used, as_input(b, "axes", [1])), x)
    return b.Reshape(y, b.Concat(b.Shape(places), hidden, axis=0), allowzero=1)


@restore_padding.examples
def examples() -> Iterator[Example]:
    for kind in (np.float32, np.float16):
        x = np.array([[1, 2], [3, 4], [5, 6]], kind)
        y = np.array([[[1, 2], [0, 0]], [[3, 4], [5, 6]], [[0, 0], [0, 0]]], kind)
        yield Example(1, x, [[0, 2], [3, 1], [4, 5]], expect=[y])
    f = np.float32
    yield Example(1, np.ones((1, 3), f), [[0]], expect=[np.ones((1, 1, 3), f)])
    yield Example(1, np.zeros((0, 3), f), [[0, 1]], expect=[np.zeros((1, 2, 3), f)])
    yield Example(1, np.zeros((0, 3), f), np.zeros((0, 2), np.int32), expect=[np.zeros((0, 2, 3), f)])
