"""QLinearMatMul: the matrix product of quantized numbers, as quantized numbers."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import FLOAT, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.products.products import matmul, matmul_shape
from sabir.opsets.families.quantization import quantization
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOAT8,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

qlinear_mat_mul = Operator(
    "QLinearMatMul",
    summary="`(a - a_zero_point) @ (b - b_zero_point) * (a_scale * b_scale / y_scale)`, rounded, plus "
    "`y_zero_point`, saturated.",
)

T1 = Constraint("T1", tensors("int8", "uint8"))
T2 = Constraint("T2", tensors("int8", "uint8"))
T3 = Constraint("T3", tensors("int8", "uint8"))


def _inputs(scale: Constraint | str) -> list[Input]:
    return [
        Input("a", T1, "Shape (..., M, K), or (K).", differentiable=False),
        Input("a_scale", scale, "The scale of `a`: a scalar, (M), or (..., M, 1).", differentiable=False),
        Input(
            "a_zero_point",
            T1,
            "The number in `a` that represents 0, in the shape of its scale.",
            differentiable=False,
        ),
        Input("b", T2, "Shape (..., K, N), or (K).", differentiable=False),
        Input("b_scale", scale, "The scale of `b`: a scalar, (N), or (..., 1, N).", differentiable=False),
        Input(
            "b_zero_point",
            T2,
            "The number in `b` that represents 0, in the shape of its scale.",
            differentiable=False,
        ),
        Input("y_scale", scale, "The scale of `y`, a scalar.", differentiable=False),
        Input("y_zero_point", T3, "The number in `y` that represents 0, a scalar.", differentiable=False),
    ]


v10 = qlinear_mat_mul.first(
    10, inputs=_inputs("tensor(float)"), outputs=[Output("y", T3, differentiable=False)]
)
TS = Constraint("TS", BFLOAT16, tensors("float", "float16"))
v21 = v10.evolve(
    21,
    "Admits 8-bit floats, and 16-bit floats as scales.",
    inputs=_inputs(TS),
    outputs=[Output("y", T3, "Shape (..., M, N), without M or N for a 1-D operand.", differentiable=False)],
    widen={"T1": FLOAT8, "T2": FLOAT8, "T3": FLOAT8},
)


@v10.infer
def infer(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    a: TensorType, a_scale: TensorType, a_zero: TensorType, b: TensorType, b_scale: TensorType,
    b_zero: TensorType, y_scale: TensorType, y_zero: TensorType, /,
) -> TensorType:  # fmt: skip
    for port, parameter in (("a_scale", a_scale), ("a_zero_point", a_zero)):
        quantization.check_rows(port, parameter, a)
    for port, parameter in (("b_scale", b_scale), ("b_zero_point", b_zero)):
        quantization.check_columns(port, parameter, b)
    check_one("y_scale", y_scale)
    check_one("y_zero_point", y_zero)
    return TensorType(y_zero.element, matmul_shape(a.shape, b.shape))


@v10.evaluate
def evaluate(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array, y_scale: Array,
    y_zero: Array, /,
) -> Array:  # fmt: skip
    check_one("y_zero_point", y_zero)
    left = quantization.centred(a, quantization.along_rows("a_zero_point", a_zero, a))
    right = quantization.centred(b, quantization.along_columns("b_zero_point", b_zero, b))
    whole = element(a.dtype).is_integer and element(b.dtype).is_integer
    y = quantization.exact_matmul(left, right) if whole else np.asarray(matmul(left, right))
    steps = (
        quantization.along_rows("a_scale", a_scale, a),
        quantization.along_columns("b_scale", b_scale, b),
        np.asarray(as_number("y_scale", y_scale), y_scale.dtype),
    )
    rows, columns, step = (s.astype(np.float32) for s in steps)
    return quantization.requantized(y, rows * columns / step, y_zero.reshape(()), element(y_zero.dtype))


@v10.lower
def lower(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    a: Expression, a_scale: Expression, a_zero: Expression, b: Expression, b_scale: Expression,
    b_zero: Expression, y_scale: Expression, y_zero: Expression, /,
) -> Expression:  # fmt: skip
    if {a.element, b.element} <= loops.BYTES:
        kernels.check_exact(a.shape[-1:])
    y = kernels.multiplied(a, b, a_zero, b_zero)
    row, column, step = (loops.cast(s, "float") for s in (
        kernels.rows(a_scale, a), kernels.columns(b_scale), kernels.only(y_scale)
    ))  # fmt: skip
    return kernels.requantized(y, loops.apply("div", loops.apply("mul", row, column), step), y_zero)


@v10.downgrade
def multiply(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    b: Builder, a: Value, a_scale: Value, a_zero: Value, other: Value, b_scale: Value, b_zero: Value,
    y_scale: Value, y_zero: Value, /,
) -> Value:  # fmt: skip
    y = b.Cast(graphs.product(b, a, other, a_zero, b_zero), to=FLOAT.number)
    scales = b.Mul(graphs.rows(b, a_scale, a), graphs.columns(b, b_scale))
    return graphs.requantized(b, y, b.Div(scales, graphs.single(b, y_scale)), y_zero)


@v21.upgrade
def same_call(b: Builder, /, *inputs: Value) -> Value:
    return b.QLinearMatMul(*inputs)


@v21.downgrade
def only_float_scales(b: Builder, /, *inputs: Value) -> Value:
    """16-bit floats are cast to float, in which the product of the scales is computed anyway."""
    operands: list[Value] = []
    for port, value in zip(v10.inputs, inputs, strict=True):
        signature = value.type.signature if isinstance(value.type, TensorType) else None
        if signature is None or signature in port.allowed:
            operands.append(value)
        elif port.type == "tensor(float)":
            operands.append(b.Cast(value, to=FLOAT.number))
        else:
            raise Unconvertible(f"{v10} does not admit {signature} for {port.name!r}")
    return b.QLinearMatMul(*operands)


def _call(dtype: type[Any], scale: Any = np.float32) -> list[Any]:
    less = 0 if dtype is np.uint8 else 128
    a = (np.array([[208, 236, 0, 238], [3, 214, 255, 29]]) - less).astype(dtype)
    b = (np.array([[152, 51], [60, 26], [0, 127], [244, 255]]) - less).astype(dtype)
    return [a, np.array(0.5, scale), 113 - less, b, 0.25, 114 - less, 64, dtype(118 - less)]


@qlinear_mat_mul.examples
def examples() -> Iterator[Example]:
    # the differences from the zero points, multiplied as integers
    rows, columns = (
        [[95, 123, -113, 125], [-110, 101, 142, -84]],
        [[38, -63], [-54, -88], [-114, 13], [130, 141]],
    )
    quotients = np.rint(np.array(rows) @ columns / 512).astype(int)
    for dtype in (np.uint8, np.int8):
        expected = (118 - (0 if dtype is np.uint8 else 128) + quotients).astype(dtype)
        yield Example(10, *_call(dtype), expect=[expected])
        for scale in (np.float32, np.float16, ml_dtypes.bfloat16):
            yield Example(21, *_call(dtype, scale), expect=[expected])


@qlinear_mat_mul.examples
def examples_of_rounding_and_shapes() -> Iterator[Example]:
    f, u, s = np.float32, np.uint8, np.int8
    # ties to even, then the zero point; and saturation at both ends
    column, up, down = np.array([[1], [3], [5], [255]], u), np.array([[1]], s), np.array([[-1]], s)
    yield Example(10, column, 0.5, 0, up, 1, 0, 1, s(1), expect=[[[1], [3], [3], [127]]])
    yield Example(10, column, 1, 0, down, 1, 0, 1, u(4), expect=[[[3], [1], [0], [0]]])
    # a scale and zero point for each row of a, and for each column of b
    a, b = np.array([[1, 2], [3, 4]], u), np.array([[1, 0], [0, 1]], s)
    yield Example(10, a, [1, 10], [0, 3], b, [1, 2], [0, 1], 1, s(0), expect=[[[1, -2], [0, 0]]])
    yield Example(21, a[0], f(1), 0, b, 1, 0, 0.5, u(0), expect=[[2, 4]])
    stack = np.stack([a, a + 4])
    yield Example(10, stack, 1, 0, b, 1, 0, 1, u(0), expect=[stack])
    yield Example(10, a[:0], 1, 0, b, 1, 0, 1, u(0), expect=[a[:0]])
    x, zero = [[1.5, -2], [448, 0]], np.zeros((), ml_dtypes.float8_e4m3fn)
    yield Example(21, x, f(1), zero, x, 0.5, zero, 1, zero, expect=[[[-448, -1.5], [336, -448]]])
