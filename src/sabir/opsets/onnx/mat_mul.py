"""MatMul: the matrix product of numpy's `matmul`."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS
from sabir.opsets.families.products import products
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

mat_mul = Operator(
    "MatMul", summary="`A @ B`: stacks of matrices broadcast; a 1-D operand is a row or a column."
)

T = Constraint("T", FLOATS)

v1 = mat_mul.first(
    1,
    inputs=[
        Input("A", T, "Shape (..., M, K), or (K).", differentiable=True),
        Input("B", T, "Shape (..., K, N), or (K).", differentiable=True),
    ],
    outputs=[
        Output("Y", T, "Shape (..., M, N), without M or N where an operand is 1-D.", differentiable=True)
    ],
)
v9 = v1.widen(9, T=LARGE_INTEGERS)
v13 = v9.widen(13, T=BFLOAT16)


@v1.infer
def infer(a: TensorType, b: TensorType, /) -> TensorType:
    return TensorType(a.element if a.element.number else b.element, products.matmul_shape(a.shape, b.shape))


@v1.lower
def lower(a: Expression, b: Expression, /) -> Expression:
    """A vector becomes a row or a column, whose axis is removed afterwards."""
    left = loops.reshape(a, (1, *a.shape)) if a.rank == 1 else a
    right = loops.reshape(b, (*b.shape, 1)) if b.rank == 1 else b
    y = loops.contract(left, right)
    y = loops.squeeze(y, [-2]) if a.rank == 1 else y
    return loops.squeeze(y, [-1]) if b.rank == 1 else y


@v1.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return products.matmul(a, b)


@v13.gradient
def gradient(g: Gradient, a: Value, b: Value, /) -> tuple[Value, Value]:
    return products.matmul_gradient(g, a, b)


@mat_mul.examples
def examples() -> Iterator[Example]:
    a = np.array([[1, 2], [3, 4]], np.float32)
    b = np.array([[5, 6, 7], [-1, 0, 1]], np.float32)
    for opset in (1, 9, 13):
        yield Example(opset, a, b, expect=[[[3, 6, 9], [11, 18, 25]]])
    yield Example(13, a, b[:, 0], expect=[[3, 11]])
    yield Example(13, a[0], b, expect=[[3, 6, 9]])
    yield Example(13, a[0], b[:, 0], expect=[3])
    half = a.astype(ml_dtypes.bfloat16)
    yield Example(13, half, half, expect=[[[7, 10], [15, 22]]])
    # an accumulator in float16 would stop at 2048
    yield Example(9, np.ones((1, 4100), np.float16), np.ones((4100, 1), np.float16), expect=[[[4100]]])
    stack = np.arange(12.0).reshape(3, 1, 2, 2)
    yield Example(
        13, stack, stack.reshape(1, 3, 2, 2), expect=[np.einsum("iab,jbc->ijac", stack[:, 0], stack[:, 0])]
    )
    yield Example(13, stack, np.eye(2)[:, :1], expect=[stack[..., :1]])
    yield Example(
        1, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), expect=[np.zeros((2, 3), np.float32)]
    )
    yield Example(
        1,
        np.zeros((0, 2, 4), np.float32),
        np.zeros((4, 3), np.float32),
        expect=[np.zeros((0, 2, 3), np.float32)],
    )
    top = np.iinfo(np.int32).max
    yield Example(9, np.array([[top, 2]], np.int32), [[2], [3]], expect=[[[4]]])
    yield Example(9, np.array([2**63, 3], np.uint64), [2, 2], expect=[6])
    wide = np.arange(-2048, 2048).reshape(64, 64)
    yield Example(13, wide, wide[:, :3], expect=[np.array([[int(r @ c) for c in wide.T[:3]] for r in wide])])
