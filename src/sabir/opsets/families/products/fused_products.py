"""Matrix products whose operands are transposed first, times a number: FusedMatMul and its relatives."""
# ruff: file-ignore[invalid-argument-name]  transA and its like are the operators' names

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.products import products
from sabir.opsets.families.shapes.extents import shape_of
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Input, Output

if TYPE_CHECKING:
    from sabir.ir import Builder, Shape, Value
    from sabir.opsets.typing import Array
    from sabir.schema import Operator, Version

TRANSPOSED = (
    Attribute("transA", "int", "1: the last two axes of A are swapped first; a 1-D A stays.", default=0),
    Attribute("transB", "int", "1: the last two axes of B are swapped first; a 1-D B stays.", default=0),
    Attribute("alpha", "float", "The factor of the product.", default=1.0),
)
ACTIVATION_PARAMETERS = tuple(
    Attribute(f"activation_{name}", "float", f"The parameter {name} of the activation, where it has one.")
    for name in ("alpha", "beta", "gamma")
)
TRANSPOSED_BATCHES = tuple(
    Attribute(
        f"transBatch{operand}",
        "int",
        f"1: the first axis of {operand} is its axis of rows, and the next ones are batches. Then A and B "
        "must have the same rank, 3 or more.",
        default=0,
    )
    for operand in "AB"
)
_STACK = 3  # the least rank of a stack of matrices


def declare(operator: Operator, *attributes: Attribute) -> Version:
    """Declare the first version of a product of A and B with the attributes of `TRANSPOSED` and others."""
    of = Constraint("T", FLOATS, BFLOAT16)
    return operator.first(
        1,
        inputs=[
            Input("A", of, "Shape (..., M, K), or (K), after the transposition.", differentiable=True),
            Input("B", of, "Shape (..., K, N), or (K), after the transposition.", differentiable=True),
        ],
        outputs=[Output("Y", of, "Shape (..., M, N); stacks broadcast.", differentiable=True)],
        attributes=[*TRANSPOSED, *attributes],
    )


class Transposition(NamedTuple):
    """The transposition of an operand: of its matrices, and of its first axis to that of the rows."""

    matrices: int
    batches: int = 0

    def order(self, rank: int) -> list[int]:
        """Return the order of the axes of an operand."""
        axes = [*range(rank)]
        if self.batches:
            axes = [*axes[1:-1], 0, axes[-1]]
        if self.matrices and rank > 1:
            axes[-2:] = axes[:-3:-1]
        return axes

    def shape(self, shape: Shape | None) -> Shape | None:
        """Return the shape of the transposed operand."""
        return None if shape is None else tuple(shape[i] for i in self.order(len(shape)))

    def emit(self, b: Builder, name: str, x: Value) -> Value:
        """Return the transposed operand in a graph; raises Unconvertible where its rank is unknown."""
        if not (self.matrices or self.batches):
            return x
        order = self.order(len(shape_of(name, x)))
        return x if order == sorted(order) else b.Transpose(x, perm=order)


class FusedProduct(NamedTuple):
    """The attributes of a product `alpha * A' @ B'`, where A' and B' are the transposed operands."""

    left: Transposition
    right: Transposition
    alpha: float

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        """Return the type of the product; raises InferenceError for operands that do not match."""
        if self.left.batches or self.right.batches:
            _check_stacks(a.rank, b.rank)
        shape = products.matmul_shape(self.left.shape(a.shape), self.right.shape(b.shape))
        return TensorType(a.element if a.element.number else b.element, shape)

    def compute(self, a: Array, b: Array) -> Array:
        """Return the product of arrays; that of 16-bit floats is float32."""
        if self.left.batches or self.right.batches:
            _check_stacks(a.ndim, b.ndim)
        left = widened(a).transpose(self.left.order(a.ndim))
        y = np.asarray(products.matmul(left, widened(b).transpose(self.right.order(b.ndim))))
        return y if self.alpha == 1 else y * y.dtype.type(self.alpha)

    def emit(self, b: Builder, x: Value, w: Value) -> Value:
        """Return the product in a graph; raises Unconvertible where a needed rank or type is unknown."""
        y = b.MatMul(self.left.emit(b, "A", x), self.right.emit(b, "B", w))
        return y if self.alpha == 1 else Numbers.like(b, x).op("Mul", y, self.alpha)


def product_of(*, transA: int, transB: int, transBatchA: int, transBatchB: int, alpha: float) -> FusedProduct:
    """Return the product that the attributes of `TRANSPOSED` and `TRANSPOSED_BATCHES` describe."""
    return FusedProduct(Transposition(transA, transBatchA), Transposition(transB, transBatchB), alpha)


def _check_stacks(*ranks: int | None) -> None:
    known = {rank for rank in ranks if rank is not None}
    if len(known) > 1 or any(rank < _STACK for rank in known):
        found = " and ".join("?" if rank is None else str(rank) for rank in ranks)
        raise InferenceError(
            f"with transposed batches A and B must have the same rank, 3 or more, and have ranks {found}"
        )
