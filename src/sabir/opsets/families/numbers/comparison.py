"""Comparisons: the versions of the operators, known contents, and integers in older versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import BOOL, DOUBLE, INT32
from sabir.ir import lower_bound, sub, upper_bound
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic, binary, broadcasting
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.extents import ints_of
from sabir.schema import BFLOAT16, FLOATS, NUMBERS, Constraint, Unconvertible
from sabir.schema import BOOL as TRUTHS

if TYPE_CHECKING:
    import numpy as np

    from sabir.ir import Builder, Item, TensorType, Value
    from sabir.opsets.typing import BehaviourFunction
    from sabir.schema import Operator, Version

_EXACT_IN_DOUBLE = 1 << 53


def declare(operator: Operator, function: np.ufunc, op: str, infer: BehaviourFunction) -> None:
    """Declare a comparison that is false for equal elements.

    It is computed by a numpy function and a scalar function; `infer` compares known contents.
    """
    v1 = declare_first(operator, Constraint("T", FLOATS))
    v7 = v1.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])
    v9 = v7.widen(9, T=NUMBERS)
    v9.widen(13, T=BFLOAT16)
    v7.infer(infer)
    v7.evaluate(binary.elementwise(function))
    v7.lower(kernels.elementwise(op))
    broadcasting.one_way_before(v7, element=BOOL)
    through_double(v9)


def declare_or_equal(
    operator: Operator, function: np.ufunc, op: str, infer: BehaviourFunction, *, strict: str
) -> None:
    """Declare a comparison as `declare`, which is true for equal elements; `strict` is false for them."""
    of = Constraint("T", NUMBERS)
    v12 = operator.first(
        12,
        inputs=binary.inputs(of, differentiable=False),
        outputs=binary.outputs(Constraint("T1", TRUTHS), differentiable=False),
    )
    v12.widen(16, T=BFLOAT16)
    v12.infer(infer)
    v12.evaluate(binary.elementwise(function))
    v12.lower(kernels.elementwise(op))
    v12.absent("gradient", "the results are truth values")

    @v12.body
    def body(b: Builder, left: Value, right: Value, /) -> Value:
        return b.Or(b.op(strict, left, right), b.Equal(left, right))


def declare_first(operator: Operator, of: Constraint) -> Version:
    """Declare the first version of a comparison, whose second input is broadcast by attributes."""
    v1 = operator.first(
        1,
        inputs=binary.inputs(of, differentiable=False),
        outputs=binary.outputs(Constraint("T1", TRUTHS), differentiable=False),
        attributes=binary.one_way(),
    )
    v1.absent("gradient", "the results are truth values")
    return v1


def less(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a < b."""
    return broadcasting.computed(_less, a, b, element=BOOL)


def greater(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a > b."""
    return less(b, a)


def not_less(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a >= b."""
    return broadcasting.computed(_not_less, a, b, element=BOOL)


def not_greater(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a <= b."""
    return not_less(b, a)


def through_double(newer: Version) -> None:
    """Attach the downgrade to a version that admits floats only: integers are compared as doubles.

    That is exact for 32 bits, and for a comparison with a constant that is exact as a double itself.
    """
    name = newer.operator.name

    @newer.downgrade
    def downgrade(b: Builder, x: Value, y: Value, /) -> Value:
        kind = element_of(x)
        if kind.is_float:
            return b.op(name, x, y)
        if kind.bits > INT32.bits and not any(_is_exact(b, v) for v in (x, y)):
            raise Unconvertible(f"{newer.previous} compares floats, and not every {kind} is one")
        return b.op(name, *(b.Cast(v, to=DOUBLE.number) for v in (x, y)))


def _is_exact(b: Builder, x: Value) -> bool:
    known = ints_of(b, x)
    return known is not None and all(abs(i) < _EXACT_IN_DOUBLE for i in known)


def _less(a: Item, b: Item) -> Item:
    opposite = _not_less(a, b)  # known contents that are compared with a symbol are sizes, never NaN
    return None if opposite is None else not opposite


def _not_less(a: Item, b: Item) -> Item:
    difference = sub(arithmetic.as_dim(a), arithmetic.as_dim(b))
    low, high = lower_bound(difference), upper_bound(difference)
    if low is not None and low >= 0:
        return True
    return False if high is not None and high < 0 else None
