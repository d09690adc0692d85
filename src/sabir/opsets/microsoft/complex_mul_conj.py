"""ComplexMulConj: the product of complex numbers and the conjugates of others, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.spectra import complex_products
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

complex_mul_conj = Operator(
    "ComplexMulConj",
    domain="com.microsoft",
    summary="The product of `A` and the complex conjugate of `B`, elementwise.",
    body_opset=18,
)

v1 = complex_products.declare(complex_mul_conj)


@v1.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return complex_products.product(a, b, -1)


@v1.body
def body(b: Builder, left: Value, right: Value, /) -> Value:
    return complex_products.product_graph(b, left, right, -1)


@complex_mul_conj.examples
def examples() -> Iterator[Example]:
    """By hand: (1 + 2i) (3 - 4i) = 11 + 2i, and i (3 - 4i) = 4 + 3i."""
    for kind in (np.float32, np.float64, np.float16):
        a, b = np.array([[1, 2], [0, 1]], kind), np.array([3, 4], kind)
        yield Example(1, a, b, expect=[np.array([[11, 2], [4, 3]], kind)])
    yield Example(1, b, a[:, None], expect=[np.array([[[11, -2]], [[4, -3]]], np.float16)])
    yield Example(1, a[:0], b, expect=[a[:0]])
