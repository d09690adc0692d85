"""QLinearWhere: one of two quantized numbers, chosen by a condition, quantized again."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import broadcasting
from sabir.opsets.families.quantization import scaled
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

qlinear_where = Operator(
    "QLinearWhere",
    domain="com.microsoft",
    summary="`quantize(dequantize(X))` where `condition` is true, else `quantize(dequantize(Y))`.",
    body_opset=18,
)

B = Constraint("B", tensors("bool"))
T = Constraint("T", tensors("int8", "uint8"))
TF = Constraint("TF", tensors("float"))

v1 = qlinear_where.first(
    1,
    inputs=[
        Input("condition", B, "Which of the two is chosen."),
        Input("X", T, "What is chosen where the condition is true."),
        *scaled.parameters("x_scale", "x_zero_point", T, "X", optional=False, scale_type=TF),
        Input("Y", T, "What is chosen elsewhere."),
        *scaled.parameters("y_scale", "y_zero_point", T, "Y", optional=False, scale_type=TF),
        *scaled.parameters("z_scale", "z_zero_point", T, "Z", optional=False, scale_type=TF),
    ],
    outputs=[Output("Z", T, "The shape to which `condition`, `X` and `Y` broadcast.")],
)


@v1.infer
def infer(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    condition: TensorType, x: TensorType, x_scale: TensorType, x_zero: TensorType, y: TensorType,
    y_scale: TensorType, y_zero: TensorType, z_scale: TensorType, z_zero: TensorType, /,
) -> TensorType:  # fmt: skip
    scaled.check(X=(x_scale, x_zero), Y=(y_scale, y_zero), Z=(z_scale, z_zero))
    return broadcasting.merged(condition, x, y, element=x.element)


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    condition: Array, x: Array, x_scale: Array, x_zero: Array, y: Array, y_scale: Array, y_zero: Array,
    z_scale: Array, z_zero: Array, /,
) -> Array:  # fmt: skip
    hold(infer, condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero)
    first, second = (
        scaled.as_bytes(scaled.as_floats(*triple), z_scale, z_zero, element(z_zero.dtype))
        for triple in ((x, x_scale, x_zero), (y, y_scale, y_zero))
    )
    return np.where(condition, first, second)


@v1.body
def body(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    b: Builder, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value,
    y_zero: Value, z_scale: Value, z_zero: Value, /,
) -> Value:  # fmt: skip
    first, second = (
        scaled.quantize(b, scaled.dequantize(b, *triple), z_scale, z_zero, z_zero)
        for triple in ((x, x_scale, x_zero), (y, y_scale, y_zero))
    )
    return b.Where(condition, first, second)


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@qlinear_where.examples
def examples() -> Iterator[Example]:
    f = np.float32
    for dtype in (np.uint8, np.int8):
        limits = np.iinfo(dtype)
        x = np.arange(limits.min, limits.max + 1).astype(dtype).reshape(8, 32)
        condition = (x.astype(np.int16) % 3 == 1).astype(bool)
        own, other, to = (f(0.1), dtype(5)), (f(0.07), dtype(100)), (f(0.13), dtype(7))
        yield Example(1, condition, x, *own, x[::-1], *other, *to)
        yield Example(1, condition[:, :1], x, *own, x[:1], *other, *own)
        # by hand: 2 * (3 - 1) and 1 * (9 - 0) in steps of 3 from 10
        pair = np.array([3], dtype), f(2), dtype(1), np.array([9], dtype), f(1), dtype(0), f(3), dtype(10)
        yield Example(1, [[True], [False]], *pair, expect=[np.array([[11], [13]], dtype)])
    nothing = np.zeros((0, 1), dtype)
    yield Example(1, np.zeros((0, 1), bool), nothing, *own, nothing, *other, *to, expect=[nothing])
