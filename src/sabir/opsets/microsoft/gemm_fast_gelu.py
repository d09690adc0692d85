"""GemmFastGelu: a matrix product, plus a bias, through the fast approximation of the Gaussian error unit."""

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.products import products
from sabir.opsets.families.shapes.ranks import check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Constraint, Example, Input, Operator, Output, tensors

gemm_fast_gelu = Operator(
    "GemmFastGelu",
    domain="com.microsoft",
    summary="`0.5 * z * (1 + tanh(sqrt(2/pi) * (z + 0.044715 * z**3)))` of `z = X @ W + bias`.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"), BFLOAT16)

v1 = gemm_fast_gelu.first(
    1,
    inputs=[
        Input("X", T, "Shape (..., M, K).", differentiable=True),
        Input("W", T, "Shape (..., K, N).", differentiable=True),
        Input("bias", T, "Shape (N); 0 by default.", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "Shape (..., M, N).", differentiable=True)],
)

_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


@v1.infer
def infer(x: TensorType, w: TensorType, bias: TensorType | None = None, /) -> TensorType:
    shape = products.matmul_shape(x.shape, w.shape)
    columns = w.shape[-1] if w.shape and len(w.shape) >= products.MATRIX else None
    check_shape("bias", bias, columns)
    return TensorType(x.element if x.element.number else w.element, shape)


@v1.evaluate
def evaluate(x: Array, w: Array, bias: Array | None = None, /) -> Array:
    hold(infer, x, w, bias)
    z = np.asarray(products.matmul(widened(x), widened(w)))
    if bias is not None:
        z += widened(bias)
    y = 0.5 * z * (1 + np.tanh(_SCALE * (z + _CUBIC * (z * z * z))))
    return y.astype(x.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, w: Value, bias: Value | None = None, /) -> Value:
    numbers = Numbers.like(b, x)
    z = b.MatMul(x, w)
    z = z if bias is None else b.Add(z, bias)
    cubic = b.Add(z, numbers.op("Mul", b.Mul(z, b.Mul(z, z)), _CUBIC))
    step = b.Tanh(numbers.op("Mul", cubic, _SCALE))
    return b.Mul(numbers.op("Mul", z, 0.5), numbers.op("Add", step, 1.0))


@gemm_fast_gelu.examples
def examples() -> Iterator[Example]:
    x, w, bias = [[1, 0.5], [-2, 4]], [[1, -1, 0], [3, 0.5, -0.5]], [0.0, 1, -0.25]
    # by torch's gelu with the tanh approximation, in double
    y = [
        [2.484915733910001, 0.149675350701685, -0.15428599017485606],
        [10, 4.999999770820381, -0.0272013298972],
    ]
    plain = [
        [2.484915733910001, -0.170039444834379, -0.1003246492983],
        [10, 3.9999297540518, -0.0454023059122],
    ]
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 5e-3), (ml_dtypes.bfloat16, 4e-2)):
        call = np.array(x, kind), np.array(w, kind)
        yield Example(1, *call, np.array(bias, kind), expect=[np.array(y, kind)], tolerance=tolerance)
        yield Example(1, *call, expect=[np.array(plain, kind)], tolerance=tolerance)
    stack = np.array([x, x], np.float32)
    yield Example(1, stack, np.array(w, np.float32), expect=[np.array([plain, plain], np.float32)])
    yield Example(
        1, np.zeros((0, 2), np.float32), np.array(w, np.float32), expect=[np.zeros((0, 3), np.float32)]
    )
