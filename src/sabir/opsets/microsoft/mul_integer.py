"""MulInteger: the product of 8-bit integers minus their zero points, elementwise, as 32-bit integers."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT32
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import broadcasting
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.shapes.ranks import check_one, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

mul_integer = Operator(
    "MulInteger",
    domain="com.microsoft",
    summary="`(A - A_zero_point) * (B - B_zero_point)` as int32.",
    body_opset=18,
)

T = Constraint("T", tensors("int8", "uint8"))
T1 = Constraint("T1", tensors("int32"))

v1 = mul_integer.first(
    1,
    inputs=[
        Input("A", T, "The first operand."),
        Input(
            "A_zero_point", T, "The number in `A` that represents 0, a scalar; 0 by default.", optional=True
        ),
        Input("B", T, "The second operand, of a shape that broadcasts with that of `A`."),
        Input(
            "B_zero_point", T, "The number in `B` that represents 0, a scalar; 0 by default.", optional=True
        ),
    ],
    outputs=[Output("C", T1, "The shape to which `A` and `B` broadcast.")],
)


@v1.infer
def infer(
    a: TensorType, a_zero: TensorType | None, b: TensorType, b_zero: TensorType | None = None, /
) -> TensorType:
    check_one("A_zero_point", a_zero)
    check_one("B_zero_point", b_zero)
    return broadcasting.merged(a, b, element=INT32)


@v1.evaluate
def evaluate(a: Array, a_zero: Array | None, b: Array, b_zero: Array | None = None, /) -> Array:
    hold(infer, a, a_zero, b, b_zero)
    left, right = (
        x.astype(np.int32) - (0 if zero is None else zero.reshape(()).astype(np.int32))
        for x, zero in ((a, a_zero), (b, b_zero))
    )
    return np.asarray(left * right, np.int32)


@v1.body
def body(b: Builder, x: Value, x_zero: Value | None, y: Value, y_zero: Value | None = None, /) -> Value:
    left, right = (
        graphs.centred(b, v, None if zero is None else graphs.single(b, zero), INT32)
        for v, zero in ((x, x_zero), (y, y_zero))
    )
    return b.Mul(left, right)


v1.absent("gradient", "integers have no gradients")


@mul_integer.examples
def examples() -> Iterator[Example]:
    u, s = np.uint8, np.int8
    a, b = np.array([[0, 255], [3, 4]], u), np.array([255, 7], u)
    yield Example(1, a, u(1), b, u(5), expect=[np.array([[-250, 508], [500, 6]], np.int32)])
    yield Example(1, a, None, b, expect=[np.array([[0, 1785], [765, 28]], np.int32)])
    least = np.array([-128], s)
    yield Example(1, least, s(127), least, np.array([127], s), expect=[np.array([65025], np.int32)])
    yield Example(1, np.array(5, s), s(7), np.zeros((0, 1), s), None, expect=[np.zeros((0, 1), np.int32)])
