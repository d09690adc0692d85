"""Products of 8-bit matrices that become floats: `((A - a_zero) @ (B - b_zero)) * scale + bias`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import FLOAT
from sabir.ir import TensorType
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.products.products import matmul_shape
from sabir.opsets.families.quantization import quantization, quantized_graphs
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.schema import Input

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array
    from sabir.schema import Constraint


def bias_of_columns(of: Constraint) -> Input:
    """Return the port of a bias for each column."""
    return Input("bias", of, "A number for each column of the product, (N).", optional=True)


def product_type(
    a: TensorType, b: TensorType, b_scale: TensorType, b_zero: TensorType | None, bias: TensorType | None
) -> TensorType:
    """Return the type of a product, of the type of the scale.

    Raises InferenceError for shapes that do not fit.
    """
    quantization.check_columns("b_scale", b_scale, b)
    quantization.check_columns("b_zero_point", b_zero, b)
    if b.shape is not None and b.shape:
        check_shape("bias", bias, b.shape[-1] if len(b.shape) > 1 else 1)
    return TensorType(b_scale.element, matmul_shape(a.shape, b.shape))


def integer_product(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
    """Return `(a - a_zero) @ (b - b_zero)` in int32, which wraps around; `a_zero` is one number."""
    left = quantization.centred(a, None if a_zero is None else a_zero.reshape(()))
    right = quantization.centred(
        b, None if b_zero is None else quantization.along_columns("b_zero_point", b_zero, b)
    )
    return quantization.wrapped(quantization.exact_matmul(left, right))


def as_floats(y: Array, a_scale: Array, b_scale: Array, b: Array, bias: Array | None) -> Array:
    """Return an integer product times both scales, plus the bias, in the type of the scales.

    A scale is one number, or one for each column. It is computed in float32.
    """
    own, other = (
        quantization.along_columns(name, scale, b).astype(np.float32)
        for name, scale in (("a_scale", a_scale), ("b_scale", b_scale))
    )
    found = y.astype(np.float32) * (own * other)
    if bias is not None:
        found += bias.astype(np.float32)
    return np.asarray(found, b_scale.dtype)


def write_floats(b: Builder, y: Value, a_scale: Value, b_scale: Value, bias: Value | None) -> Value:
    """Emit `as_floats` of an int32 product."""
    to = element_of(b_scale)
    own, other = (quantized_graphs.columns(b, _wide(b, scale)) for scale in (a_scale, b_scale))
    found = b.Mul(b.Cast(y, to=FLOAT.number), b.Mul(own, other))
    if bias is not None:
        found = b.Add(found, _wide(b, bias))
    return found if to is FLOAT else b.Cast(found, to=to.number)


def _wide(b: Builder, x: Value) -> Value:
    return x if element_of(x) is FLOAT else b.Cast(x, to=FLOAT.number)
