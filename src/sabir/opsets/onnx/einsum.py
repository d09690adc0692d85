"""Einsum: sums of products of elements, by an equation of labels."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.products import (
    contraction_gradients,
    contraction_graphs,
    contraction_kernels,
    contractions,
)
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, NUMBERS, Attribute, Constraint, Example, Input, Operator, Output

einsum = Operator(
    "Einsum",
    summary="Products of the inputs' elements, summed over every label that the output lacks: `ij,jk->ik` is "
    "the matrix product.",
)

T = Constraint("T", NUMBERS)

v12 = einsum.first(
    12,
    inputs=[Input("Inputs", T, "One operand per term.", variadic=True, differentiable=True)],
    outputs=[Output("Output", T, "One dimension per label after the arrow.", differentiable=True)],
    attributes=[
        Attribute(
            "equation",
            "string",
            "Terms of letters, one letter per dimension, `...` for the rest; then an arrow and the "
            "output, by default the labels that occur once, in alphabetical order.",
            required=True,
        )
    ],
)
v28 = v12.widen(28, T=BFLOAT16)


@v12.infer
def infer(*inputs: TensorType, equation: str) -> TensorType:
    element = next((t.element for t in inputs if t.element.number), inputs[0].element)
    parsed = contractions.Equation.parse(equation)
    return TensorType(element, contractions.infer(parsed, [t.shape for t in inputs]))


@v12.evaluate
def evaluate(*inputs: Array, equation: str) -> Array:
    parsed = contractions.Equation.parse(equation)
    y = contractions.evaluate(parsed, [widened(x) for x in inputs])
    return y.astype(inputs[0].dtype, copy=False)


@v12.lower
def lower(*inputs: Expression, equation: str) -> Expression:
    return contraction_kernels.lowered(contractions.Equation.parse(equation), inputs)


@v12.downgrade
def multiply_matrices(b: Builder, /, *inputs: Value, equation: str) -> Value:
    return contraction_graphs.graph(b, contractions.Equation.parse(equation), inputs)


@v12.gradient
def gradient(g: Gradient, /, *inputs: Value, equation: str) -> tuple[Value, ...]:
    return contraction_gradients.gradients(g, contractions.Equation.parse(equation), inputs)


@einsum.examples
def examples() -> Iterator[Example]:
    a, b = np.array([[1, 2], [3, 4]], np.float32), [[5, 6, 7], [-1, 0, 1]]
    product = [[3, 6, 9], [11, 18, 25]]
    for opset in (12, 28):
        yield Example(opset, a, b, equation="ij,jk->ik", expect=[product])
        yield Example(opset, a, b, equation=" i j , j k ", expect=[product])
        yield Example(opset, a, equation="ij->ji", expect=[a.T])
        yield Example(opset, a, equation="ba", expect=[a.T])
    yield Example(12, a, equation="ii", expect=[5])
    yield Example(12, a, equation="ii->i", expect=[[1, 4]])
    yield Example(12, a, equation="ij->", expect=[10])
    yield Example(12, a, equation="iA", expect=[a.T])
    yield Example(12, np.arange(8.0).reshape(2, 2, 2), equation="iii->i", expect=[[0.0, 7.0]])
    yield Example(12, np.float64(3), 4, equation=",", expect=[12])
    # a third operand, and a label that all three have
    yield Example(12, a, a, a[0], equation="ij,ij,i->j", expect=[[1 + 18, 4 + 32]])
    yield Example(
        12, a[0], a[0], a[1], equation="i,j,k->kij", expect=[np.multiply.outer(a[1], np.outer(a[0], a[0]))]
    )
    yield Example(12, a[0], a[1], equation="i,j->", expect=[21])


@einsum.examples
def ellipses() -> Iterator[Example]:
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    yield Example(12, x, equation="...ij->...ji", expect=[x.swapaxes(1, 2)])
    yield Example(12, x, equation="...i", expect=[x])
    yield Example(12, x, equation="i...->...", expect=[x[0] + x[1]])
    yield Example(12, x, equation="...i->i", expect=[x[0, 0] + x[0, 1] + x[1, 0] + x[1, 1]])
    yield Example(12, x, x, equation="...i,...i->...", expect=[[[5, 50], [149, 302]]])
    yield Example(12, x, x[:, :1], equation="...i,...i", expect=[[[5, 14], [149, 212]]])
    yield Example(12, x[0], equation="ij...->j...i", expect=[x[0].T])
    # a dimension of 1 is broadcast
    yield Example(12, x[0, :1], x[1], equation="ij,ij->ij", expect=[x[0, :1] * x[1]])
    yield Example(12, x[0, :, 1:2], x[1], equation="ij,kj->ik", expect=[[[21, 30], [84, 120]]])
    batch = [np.arange(s, dtype=np.int64).reshape(2, 2, -1) for s in (8, 12)]
    yield Example(12, *batch, equation="bij,bjk->bik", expect=[np.matmul(*batch)])


@einsum.examples
def numbers() -> Iterator[Example]:
    for kind in (np.float16, ml_dtypes.bfloat16):  # an accumulator of this type would stop at 2048 or 256
        ones = np.ones(3000, kind)
        yield Example(28, ones, ones, equation="i,i->", expect=[np.array(3000).astype(kind)])
    bytes_ = np.array([200, 100], np.uint8)
    yield Example(12, bytes_, equation="i->", expect=[44])
    yield Example(12, bytes_, bytes_, equation="i,i->", expect=[(200 * 200 + 100 * 100) % 256])
    large = [[2**62, 3], [1, 1]]
    yield Example(
        12, large, large, equation="ij,jk->ik", expect=[[[3, 3 * 2**62 + 3 - 2**64], [2**62 + 1, 4]]]
    )
    nothing = np.zeros((0, 2), np.float32)
    yield Example(12, nothing, nothing, equation="ij,ik->jk", expect=[np.zeros((2, 2), np.float32)])
    yield Example(
        12, nothing, np.ones((2, 3), np.float32), equation="ij,jk", expect=[np.zeros((0, 3), np.float32)]
    )
    yield Example(12, nothing, np.ones((1, 2), np.float32), equation="ij,ij", expect=[0])
    special = [np.inf, np.nan, -0.0]
    yield Example(12, special, np.ones(1, np.float32), equation="i,j->i", expect=[special])
