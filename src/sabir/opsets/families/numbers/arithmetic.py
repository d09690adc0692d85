"""Arithmetic of the standard on integers and half-precision floats, and on known contents.

Integers wrap; a quotient of integers is truncated toward zero, and is 0 where the divisor is 0. Known
contents may be symbolic sizes, which are integers; a result that is no integer is unknown (None).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import Expr, add, dim_max, dim_min, exact_quotient, is_nonnegative, mul, sub, total, trunc_div
from sabir.opsets.families.numbers import binary, broadcasting
from sabir.opsets.families.numbers.results import computed
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.schema import BFLOAT16, FLOATS, NUMBERS, Attribute, Constraint, Example, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Dim, Item, TensorType
    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Operator, Version

LARGE_INTEGERS = tensors("int32", "int64", "uint32", "uint64")

_SINGLE_BYTES = 4
_EXACT_IN_FLOAT = 1 << 24  # integers up to here are exact in float32
_SIZE_BITS = 32  # the size of a dimension is assumed to fit


def declare(operator: Operator, first: str, second: str) -> tuple[Version, Version]:
    """Declare the versions of a binary operator whose inputs are described as `first` and `second`.

    The results are 7, the first version that broadcasts as numpy does, and 14, the last.
    """
    of = Constraint("T", FLOATS)
    v1 = operator.first(
        1,
        inputs=binary.inputs(of, first, second, differentiable=True),
        outputs=binary.outputs(of, differentiable=True),
        attributes=(*binary.one_way(), Attribute("consumed_inputs", "ints", legacy=True)),
    )
    v6 = v1.evolve(
        6,
        "Drops the legacy hint `consumed_inputs`; admits 32- and 64-bit integers.",
        drop=["consumed_inputs"],
        widen={"T": LARGE_INTEGERS},
    )
    v7 = v6.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])
    return v7, v7.widen(13, T=BFLOAT16).widen(14, T=NUMBERS)


def widened(x: Array) -> Array:
    """Return half-precision floats (float16, bfloat16, float8) as float32, other types unchanged."""
    return x.astype(np.float32) if x.dtype.kind in "fV" and x.dtype.itemsize < _SINGLE_BYTES else x


def through_float32(function: Callable[[Array], Array], *, slow: int = 0) -> BehaviourFunction:
    """Return the evaluation of a function of one array; halves are computed in float32 and rounded once.

    `slow` is how many times the work of writing the output the function takes, on its slowest values.
    """

    def evaluate(x: Array, /) -> Array:
        if slow:
            passed_over(x, slow)
        y = computed(function, widened(x))
        return y if y.dtype == x.dtype else y.astype(x.dtype)

    return evaluate


def divide(a: Array, b: Array, /) -> Array:
    """Return a / b; a quotient of integers is truncated toward zero, and 0 where b is 0."""
    if a.dtype.kind not in "iu":
        return computed(np.divide, a, b)
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "u":
        return quotient
    inexact = (quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0)
    return quotient + inexact


def examples_of(name: str, *, one_way: Sequence[int], both_ways: Sequence[int]) -> Iterator[Example]:
    """Yield calls of an arithmetic operator, as `binary.examples_of`."""
    a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    row, column = np.array([1, 2, 4], np.float32), np.array([[2], [4]], np.float32)
    yield from binary.examples_of(name, a, row, column, one_way=one_way, both_ways=both_ways)
    nothing = np.zeros((0, 3), np.float16)
    for opset in both_ways:
        yield Example(opset, nothing, 1, expect=[nothing])


# ---------------------------------------------------------------- known contents


def known_sum(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a + b."""
    return limited(add, a, b)


def known_difference(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a - b."""
    return limited(sub, a, b)


def known_product(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a * b."""
    return limited(mul, a, b)


def known_quotient(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a / b: truncated toward zero for integers, known only without a remainder for floats."""
    return limited(exact_quotient if _element(a, b).is_float else _truncated, a, b)


def known_maximum(*inputs: TensorType) -> TensorType:
    """Infer the greatest of several inputs."""
    return limited(dim_max, *inputs)


def known_minimum(*inputs: TensorType) -> TensorType:
    """Infer the least of several inputs."""
    return limited(dim_min, *inputs)


def known_total(*inputs: TensorType) -> TensorType:
    """Infer the sum of several inputs."""
    return limited(lambda *dims: total(dims), *inputs)


def limited(function: Callable[..., Dim], *inputs: TensorType) -> TensorType:
    """Infer an elementwise function of dimensions; results that the element type lacks are unknown."""
    element = _element(*inputs)

    def on_items(*items: Item) -> Item:
        dims = [as_dim(i) for i in items]
        return None if None in dims else as_item(function(*dims), element)

    return broadcasting.computed(on_items, *inputs)


def as_dim(item: Item) -> Dim:
    """Return a known element as a dimension, or None where it is no integer."""
    if isinstance(item, float):
        return int(item) if item.is_integer() else None
    return item if isinstance(item, (int, Expr)) and not isinstance(item, bool) else None


def as_item(value: Dim, element: ElementType) -> Item:
    """Return a dimension as a known element of this type, or None where it might wrap or be rounded.

    Symbols represent sizes of tensors, which are assumed to fit 32 bits and to be exact in float32.
    """
    if isinstance(value, Expr):
        return value if holds_sizes(element) and (element.is_signed or is_nonnegative(value)) else None
    if value is None or not element.number:
        return None
    if element.is_float:
        return float(value) if abs(value) <= _EXACT_IN_FLOAT and element.bits >= _SIZE_BITS else None
    if not element.is_integer:
        return None
    low = -(1 << element.bits - 1) if element.is_signed else 0
    return value if low <= value < low + (1 << element.bits) else None


def as_dims(items: Array) -> Array:
    """Return an array of known elements as one of dimensions."""
    return np.asarray(np.frompyfunc(as_dim, 1, 1)(items), dtype=object)


def as_items(dims: Array, element: ElementType) -> Array:
    """Return an array of dimensions as one of known elements of this type."""
    return np.asarray(np.frompyfunc(lambda dim: as_item(dim, element), 1, 1)(dims), dtype=object)


def holds_sizes(element: ElementType) -> bool:
    """Whether elements of this type can represent the size of any tensor that fits memory."""
    return (element.is_integer or element.is_float) and element.bits >= _SIZE_BITS


def _element(*inputs: TensorType) -> ElementType:
    return next((t.element for t in inputs if t.element.number), inputs[0].element)


def _truncated(a: Dim, b: Dim) -> Dim:
    return None if b == 0 else trunc_div(a, b)
