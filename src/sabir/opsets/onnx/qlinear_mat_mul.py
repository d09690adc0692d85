"""QLinearMatMul: the matrix product of quantized numbers, quantized again."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import FLOAT, element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families import quantization
from sabir.opsets.families.products import matmul, matmul_shape
from sabir.opsets.families.ranks import as_number, check_one
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
        Input("a_scale", scale, "One step of `a`: a scalar, (M), or (..., M, 1).", differentiable=False),
        Input("a_zero_point", T1, "What stands for 0 in `a`, shaped as its scale.", differentiable=False),
        Input("b", T2, "Shape (..., K, N), or (K).", differentiable=False),
        Input("b_scale", scale, "One step of `b`: a scalar, (N), or (..., 1, N).", differentiable=False),
        Input("b_zero_point", T2, "What stands for 0 in `b`, shaped as its scale.", differentiable=False),
        Input("y_scale", scale, "One step of `y`, a scalar.", differentiable=False),
        Input("y_zero_point", T3, "What stands for 0 in `y`, a scalar.", differentiable=False),
    ]


v10 = qlinear_mat_mul.first(
    10, inputs=_inputs("tensor(float)"), outputs=[Output("y", T3, differentiable=False)]
)
TS = Constraint("TS", BFLOAT16, tensors("float", "float16"))
v21 = v10.evolve(
    21,
    "Admits 8-bit floats, and scales that are halves.",
    inputs=_inputs(TS),
    outputs=[
        Output(
            "y", T3, "Shape (..., M, N), without the M or N that a 1-D operand lacks.", differentiable=False
        )
    ],
    widen={"T1": FLOAT8, "T2": FLOAT8, "T3": FLOAT8},
)


@v10.infer
def infer(
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
def evaluate(
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


@v21.upgrade
def same_call(b: Builder, /, *inputs: Value) -> Value:
    return b.QLinearMatMul(*inputs)


@v21.downgrade
def only_float_scales(b: Builder, /, *inputs: Value) -> Value:
    """A half is a float: the product of scales is computed in float anyway."""
    fitting: list[Value] = []
    for port, value in zip(v10.inputs, inputs, strict=True):
        signature = value.type.signature if isinstance(value.type, TensorType) else None
        if signature is None or signature in port.allowed:
            fitting.append(value)
        elif port.type == "tensor(float)":
            fitting.append(b.Cast(value, to=FLOAT.number))
        else:
            raise Unconvertible(f"{v10} does not admit {signature} for {port.name!r}")
    return b.QLinearMatMul(*fitting)


def _call(kind: type[Any], scale: Any = np.float32) -> list[Any]:
    a, b = (
        np.array([[208, 236, 0, 238], [3, 214, 255, 29]]),
        np.array([[152, 51], [60, 26], [0, 127], [244, 255]]),
    )
    less = 0 if kind is np.uint8 else 128
    return [
        (a - less).astype(kind),
        np.array(0.5, scale),
        kind(113 - less),
        (b - less).astype(kind),
        0.25,
        kind(114 - less),
        64,
        kind(118 - less),
    ]


@qlinear_mat_mul.examples
def examples() -> Iterator[Example]:
    # what lies between the numbers and their zero points, multiplied in exact integers
    sums = np.array([[95, 123, -113, 125], [-110, 101, 142, -84]]) @ [
        [38, -63],
        [-54, -88],
        [-114, 13],
        [130, 141],
    ]
    quotients = np.rint(sums / 512).astype(int)
    for kind in (np.uint8, np.int8):
        expected = (118 - (0 if kind is np.uint8 else 128) + quotients).astype(kind)
        yield Example(10, *_call(kind), expect=[expected])
        for scale in (np.float32, np.float16, ml_dtypes.bfloat16):
            yield Example(21, *_call(kind, scale), expect=[expected])


@qlinear_mat_mul.examples
def examples_of_rounding_and_shapes() -> Iterator[Example]:
    f, u, s = np.float32, np.uint8, np.int8
    # ties to even, then the zero point; and saturation at both ends
    one, none = f(1), u(0)
    row = np.array([[1, 3, 5, 255]], u)
    yield Example(
        10, row.T, 0.5, none, np.array([[1]], s), one, 0, one, s(1), expect=[[[1], [3], [3], [127]]]
    )
    yield Example(10, row.T, one, none, np.array([[-1]], s), one, 0, one, u(4), expect=[[[3], [1], [0], [0]]])
    # a scale and zero point for each row of a, and for each column of b
    a, b = np.array([[1, 2], [3, 4]], u), np.array([[1, 0], [0, 1]], s)
    steps = [1, 10], [1, 2]
    yield Example(10, a, steps[0], [0, 3], b, steps[1], [0, 1], one, s(0), expect=[[[1, -2], [0, 0]]])
    yield Example(21, a[0], one, none, b, one, 0, 0.5, none, expect=[[2, 4]])
    stack = np.stack([a, a + 4])
    yield Example(10, stack, one, none, b, one, 0, one, none, expect=[stack])
    yield Example(10, np.zeros((0, 2), u), one, none, b, one, 0, one, none, expect=[np.zeros((0, 2), u)])
    eight = ml_dtypes.float8_e4m3fn
    x, zero = [[1.5, -2], [448, 0]], np.zeros((), eight)
    yield Example(21, x, one, zero, x, 0.5, zero, one, zero, expect=[[[-448, -1.5], [336, -448]]])
