"""Arithmetic as the standard means it on integers and halves, and the same on known contents.

Integers wrap; a quotient is cut toward zero, and a quotient by 0 is 0. Known contents may hold symbolic
sizes, of which every rule here knows that they are integers; what would leave them gives None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import Expr, add, dim_max, exact_quotient, is_nonnegative, mul, sub, trunc_div
from sabir.opsets.families import broadcasting
from sabir.opsets.families.sizes import passed_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.elements import ElementType
    from sabir.ir import Dim, Item, TensorType
    from sabir.opsets.typing import Array, Rule

_SINGLE_BYTES = 4
_EXACT_IN_FLOAT = 1 << 24  # integers up to here are exact in float32
_SIZE_BITS = 32  # what the size of a dimension is taken to need


def widened(x: Array) -> Array:
    """Return halves (float16, bfloat16, float8) as float32, everything else as it is."""
    return x.astype(np.float32) if x.dtype.kind in "fV" and x.dtype.itemsize < _SINGLE_BYTES else x


def through_float32(rule: Callable[[Array], Array], *, slow: int = 0) -> Rule:
    """Return a rule of one array that computes halves in float32 and rounds once.

    `slow` is how much more work than its output the rule counts as, on the values that take it longest.
    """

    def evaluate(x: Array, /) -> Array:
        if slow:
            passed_over(x, slow)
        return rule(widened(x)).astype(x.dtype, copy=False)

    return evaluate


def divide(a: Array, b: Array, /) -> Array:
    """Return a / b; of integers the quotient cut toward zero, 0 where b is 0."""
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "u":
        return quotient
    inexact = (quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0)
    return quotient + inexact


# ---------------------------------------------------------------- known contents


def known_sum(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a + b."""
    return _inferred(a, b, add)


def known_difference(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a - b."""
    return _inferred(a, b, sub)


def known_product(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a * b."""
    return _inferred(a, b, mul)


def known_quotient(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a / b: cut toward zero on integers, only where it leaves no rest on floats."""
    return _inferred(a, b, exact_quotient if _element(a, b).is_float else _truncated)


def known_maximum(*inputs: TensorType) -> TensorType:
    """Infer the greatest of several inputs."""
    return limited(dim_max, *inputs)


def limited(rule: Callable[..., Dim], *inputs: TensorType) -> TensorType:
    """Infer an elementwise rule over dimensions, its contents kept where the element type holds them."""
    element = _element(*inputs)

    def how(*items: Item) -> Item:
        whole = [as_dim(i) for i in items]
        return None if None in whole else as_item(rule(*whole), element)

    return broadcasting.computed(how, *inputs)


def as_dim(item: Item) -> Dim:
    """Return a known element as a dimension, or None for what is no whole number."""
    if isinstance(item, float):
        return int(item) if item.is_integer() else None
    return item if isinstance(item, (int, Expr)) and not isinstance(item, bool) else None


def as_item(value: Dim, element: ElementType) -> Item:
    """Return a dimension as a known element of this type, or None where it might wrap or be rounded.

    Symbols stand for sizes of tensors; those are taken to fit 32 bits, and float32 to hold them exactly.
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


def as_dims(held: Array) -> Array:
    """Return an array of known elements as one of dimensions."""
    return np.asarray(np.frompyfunc(as_dim, 1, 1)(held), dtype=object)


def as_items(dims: Array, element: ElementType) -> Array:
    """Return an array of dimensions as one of known elements of this type."""
    return np.asarray(np.frompyfunc(lambda dim: as_item(dim, element), 1, 1)(dims), dtype=object)


def holds_sizes(element: ElementType) -> bool:
    """Whether elements of this type hold the size of any tensor that fits memory."""
    return (element.is_integer or element.is_float) and element.bits >= _SIZE_BITS


def _inferred(a: TensorType, b: TensorType, rule: Callable[[Dim, Dim], Dim]) -> TensorType:
    return limited(rule, a, b)


def _element(*inputs: TensorType) -> ElementType:
    return next((t.element for t in inputs if t.element.number), inputs[0].element)


def _truncated(a: Dim, b: Dim) -> Dim:
    return None if b == 0 else trunc_div(a, b)
