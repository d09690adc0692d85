"""MatMulInteger16: the matrix product of 16-bit integers, as 32-bit integers."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT32, UINT32, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.products.products import matmul, matmul_shape
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

matmul_integer16 = Operator(
    "MatMulInteger16",
    domain="com.microsoft",
    summary="`A @ B` with 32 bits, in which sums wrap around; unsigned if both operands are.",
    body_opset=18,
)

T1 = Constraint("T1", tensors("int16", "uint16"))
T2 = Constraint("T2", tensors("int16", "uint16"))
T3 = Constraint("T3", tensors("int32", "uint32"))

v1 = matmul_integer16.first(
    1,
    inputs=[Input("A", T1, "Shape (..., M, K), or (K)."), Input("B", T2, "Shape (..., K, N), or (K).")],
    outputs=[Output("Y", T3, "Shape (..., M, N), without M or N for a 1-D operand.")],
)


def _result(a: ElementType, b: ElementType) -> ElementType:
    return INT32 if a.is_signed or b.is_signed else UINT32


@v1.infer
def infer(a: TensorType, b: TensorType, /) -> TensorType:
    shape = matmul_shape(a.shape, b.shape)
    unknown = next((t.element for t in (a, b) if not t.element.number), None)
    return TensorType(unknown or _result(a.element, b.element), shape)


@v1.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    to = _result(element(a.dtype), element(b.dtype)).dtype
    return matmul(a.astype(to), b.astype(to))


@v1.body
def body(b: Builder, x: Value, y: Value, /) -> Value:
    to = _result(element_of(x), element_of(y))
    return b.MatMul(b.Cast(x, to=to.number), b.Cast(y, to=to.number))


v1.absent("gradient", "integers have no gradients")


@matmul_integer16.examples
def examples() -> Iterator[Example]:
    s, u = np.int16, np.uint16
    a, b = np.array([[300, -2], [0, 32767]], s), np.array([[-400, 1, 3], [5, 6, -32768]], s)
    y = np.array([[-120010, 288, 66436], [163835, 196602, -1073709056]], np.int32)  # by hand
    yield Example(1, a, b, expect=[y])
    yield Example(1, np.stack([a, a]), b, expect=[np.stack([y, y])])
    yield Example(1, a[0], b, expect=[y[0]])
    yield Example(1, a, b[:, 1], expect=[y[:, 1]])
    most, least = np.full((1, 2), 65535, u), np.full((2, 1), -32768, s)
    yield Example(1, most[:, :1], most[:, :1], expect=[np.array([[4294836225]], np.uint32)])
    yield Example(1, most[:, :1], least[:1], expect=[np.array([[-2147450880]], np.int32)])
    yield Example(1, least.T, least, expect=[np.array([[-(2**31)]], np.int32)])  # 2**31 wraps around
    yield Example(1, np.zeros((2, 0), s), np.zeros((0, 3), s), expect=[np.zeros((2, 3), np.int32)])
