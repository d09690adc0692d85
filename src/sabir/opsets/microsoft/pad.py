"""Pad: elements added around a tensor, or removed from its ends."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.shapes import padding
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_one, check_rank, check_shape
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output, one_of

pad = Operator(
    "Pad",
    domain="com.microsoft",
    summary="`data` with `pads` elements added before and after each axis, or removed if negative.",
    body_opset=18,
)

T = Constraint("T", FLOATS)

v1 = pad.first(
    1,
    inputs=[
        Input("data", T, "A tensor of any shape.", differentiable=True),
        Input(
            "pads",
            "tensor(int64)",
            "The elements to add before each axis, then after each: a vector, or a matrix of one row.",
            differentiable=False,
        ),
        Input(
            "value", T, "The padding of the mode constant, one element; 0 by default.", optional=True,
            differentiable=False,
        ),
    ],
    outputs=[Output("output", T, "The padded tensor.", differentiable=True)],
    attributes=[
        Attribute(
            "mode",
            "string",
            "constant; edge: repeats the ends; reflect: mirrors at the ends.",
            default="constant",
            values=one_of("constant", "reflect", "edge"),
        )
    ],
)  # fmt: skip


@v1.infer
def infer(data: TensorType, pads: TensorType, value: TensorType | None = None, /, *, mode: str) -> TensorType:
    _check(pads, value)
    sizes = padding.known_pads(pads, data.rank)
    return TensorType(data.element) if sizes is None else padding.inferred(data, sizes, None, mode, None)


def _check(pads: TensorType | Array, value: TensorType | Array | None) -> None:
    check_rank("pads", pads, 1, 2)
    if pads.shape is not None and len(pads.shape) > 1:
        check_shape("pads", pads, 1, None)
    check_one("value", value)


@v1.evaluate
def evaluate(data: Array, pads: Array, value: Array | None = None, /, *, mode: str) -> Array:
    _check(pads, value)
    filling = 0 if value is None else value.reshape(-1)[0]
    return padding.with_pads(data, pads.ravel().tolist(), None, mode, filling)


@v1.body
def body(b: Builder, data: Value, pads: Value, value: Value | None = None, /, *, mode: str) -> Value:
    number = None if value is None else b.Reshape(value, as_input(b, "scalar", []))
    return b.Pad(data, b.Reshape(pads, as_input(b, "vector", [-1])), number, mode=mode)


@pad.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    yield Example(1, x, [0, 1, 0, 0], expect=[[[0, 1, 2, 3], [0, 4, 5, 6]]])
    yield Example(1, x, [[0, 0, 0, 1]], 9, expect=[[[1, 2, 3, 9], [4, 5, 6, 9]]])
    yield Example(1, x, [0, -1, 1, 0], [7], mode="constant", expect=[[[2, 3], [5, 6], [7, 7]]])
    yield Example(1, x, [0, 1, 0, 1], mode="reflect", expect=[[[2, 1, 2, 3, 2], [5, 4, 5, 6, 5]]])
    yield Example(1, x, [[1, 0, 0, 1]], mode="edge", expect=[[[1, 2, 3, 3], [1, 2, 3, 3], [4, 5, 6, 6]]])
    for kind in (np.float16, np.float64):
        yield Example(1, x.astype(kind), [0, 0, 0, 1], kind(9), expect=[[[1, 2, 3, 9], [4, 5, 6, 9]]])
    yield Example(1, np.zeros(0, np.float32), [1, 1], expect=[[0, 0]])
