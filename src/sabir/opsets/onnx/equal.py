"""Equal: whether two elements are equal."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.ir import Expr, Item, TensorType, known_equal
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic, binary, broadcasting, comparison
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, BOOL, NUMBERS, STRING, Constraint, Example, Operator, tensors

equal = Operator("Equal", summary="Whether `A` equals `B`, elementwise; NaN equals nothing.")

v1 = comparison.declare_first(equal, Constraint("T", BOOL, tensors("int32", "int64")))
v7 = v1.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])
v11 = v7.widen(11, T=NUMBERS)
v13 = v11.widen(13, T=BFLOAT16)
v19 = v13.widen(19, T=STRING)


@v7.infer
def infer(a: TensorType, b: TensorType, /) -> TensorType:
    return broadcasting.computed(_equal, a, b, element=BOOLEAN)


def _equal(a: Item, b: Item) -> Item:
    if isinstance(a, Expr) or isinstance(b, Expr):
        return known_equal(arithmetic.as_dim(a), arithmetic.as_dim(b))
    return a == b


@v7.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    return np.equal(a, b).astype(np.bool_, copy=False)  # numpy compares text to objects


v7.lower(kernels.elementwise("eq"))


broadcasting.one_way_before(v7, element=BOOLEAN, commutes=True)


@equal.examples
def examples() -> Iterator[Example]:
    a, row, column = np.array([[1, 2], [3, 4]]), np.array([1, 4]), np.array([[2], [4]])
    yield from binary.examples_of("eq", a, row, column, one_way=(1,), both_ways=(7, 11, 13, 19))
    for opset in (7, 11, 13, 19):
        yield Example(opset, [True, False], np.False_, expect=[[False, True]])
    floats = [0.0, np.nan, np.inf]
    yield Example(11, floats, [-0.0, np.nan, np.inf], expect=[[True, False, True]])
    texts = ["one", "two", ""]
    yield Example(19, texts, "two", expect=[[False, True, False]])
    yield Example(19, np.zeros((0, 1), object), texts, expect=[np.zeros((0, 3), bool)])
