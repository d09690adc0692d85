"""A convolution, plus a summand of the output's shape, through an activation: FusedConv and its relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.fused_activations import OF_CONVOLUTIONS, Activation
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import check_shape, type_of
from sabir.opsets.families.windows.convolution import convolve, convolved_shape, kernel_of, with_bias
from sabir.opsets.families.windows.windows import Window
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array

ACTIVATION_ATTRIBUTES = (
    Attribute(
        "activation",
        "string",
        "The activation; without it there is none.",
        values=one_of(*OF_CONVOLUTIONS),
    ),
    Attribute(
        "activation_params",
        "floats",
        "The parameters of the activation: LeakyRelu has `alpha`, Clip `min` and `max`, HardSigmoid `alpha` "
        "and `beta`.",
    ),
)


def infer(
    x: TensorType,
    w: TensorType,
    bias: TensorType | None = None,
    addend: TensorType | None = None,
    /,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    **attributes: Any,
) -> TensorType:
    """Return the type of the result; raises InferenceError for shapes or parameters that do not match."""
    Activation.of_list(activation, activation_params)
    shape = convolved_shape(x, w, bias, **attributes)
    if shape is not None:
        check_shape("Z", addend, *shape)
    return TensorType(x.element, shape)


def evaluate(
    x: Array,
    w: Array,
    bias: Array | None = None,
    addend: Array | None = None,
    /,
    *,
    group: int,
    kernel_shape: Sequence[int] | None,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    **window: Any,
) -> Array:
    """Return the result for arrays; 16-bit floats are rounded once."""
    axes = Window.of(kernel_of(w.shape, kernel_shape), **window).axes(x.shape[2:])
    y = convolve(widened(x), widened(w), axes, group)
    y = with_bias(y, bias, len(w), y.dtype)
    if addend is not None:
        check_shape("Z", addend, *y.shape)
        y += widened(addend)
    return Activation.of_list(activation, activation_params).compute(y).astype(x.dtype, copy=False)


def emit(
    b: Builder,
    x: Value,
    w: Value,
    bias: Value | None = None,
    addend: Value | None = None,
    /,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    **attributes: Any,
) -> Value:
    """Return the result in a graph; raises Unconvertible where a constant's type is unknown."""
    y = b.Conv(x, w, bias, **attributes)
    if addend is not None:
        y = b.Add(y, addend)
    return Activation.of_list(activation, activation_params).emit(b, y)


# ---------------------------------------------------------------- channels last


def first_type(x: TensorType) -> TensorType:
    """Return the type of a tensor (N, D1, ..., Dn, C) with its channels first, (N, C, D1, ..., Dn)."""
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) < 3:  # ruff: ignore[magic-value-comparison]  a batch, one spatial axis, channels
        raise InferenceError(f"{x} has no spatial axes; the first is the batch, the last the channels")
    return TensorType(x.element, (x.shape[0], x.shape[-1], *x.shape[1:-1]))


def last_type(x: TensorType) -> TensorType:
    """Return the type of a tensor (N, C, D1, ..., Dn) with its channels last, (N, D1, ..., Dn, C)."""
    if x.shape is None:
        return TensorType(x.element)
    return TensorType(x.element, (x.shape[0], *x.shape[2:], x.shape[1]))


def first(x: Array) -> Array:
    """Return an array (N, D1, ..., Dn, C) as (N, C, D1, ..., Dn); raises InferenceError for a lower rank."""
    first_type(type_of(x))
    return np.moveaxis(x, -1, 1)


def last(x: Array) -> Array:
    """Return an array (N, C, D1, ..., Dn) as (N, D1, ..., Dn, C)."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def emit_first(b: Builder, x: Value) -> Value:
    """Emit the transposition of `first`; raises Unconvertible where the rank is unknown."""
    rank = len(shape_of("X", x))
    return b.Transpose(x, perm=[0, rank - 1, *range(1, rank - 1)])


def emit_last(b: Builder, y: Value, rank: int) -> Value:
    """Emit the transposition of `last` for a tensor of a rank."""
    return b.Transpose(y, perm=[0, *range(2, rank), 1])


def infer_last(x: TensorType, w: TensorType, *others: TensorType | None, **attributes: Any) -> TensorType:
    """Return the type of a fused convolution whose input, summand and output have their channels last."""
    bias, addend = (*others, None, None)[:2]
    addend = None if addend is None else first_type(addend)
    return last_type(infer(first_type(x), w, bias, addend, **attributes))


def evaluate_last(x: Array, w: Array, *others: Array | None, **attributes: Any) -> Array:
    """Return a fused convolution whose input, summand and output have their channels last."""
    bias, addend = (*others, None, None)[:2]
    addend = None if addend is None else first(addend)
    return last(evaluate(first(x), w, bias, addend, **attributes))


def emit_with_last(b: Builder, x: Value, w: Value, *others: Value | None, **attributes: Any) -> Value:
    """Emit a fused convolution whose input, summand and output have their channels last."""
    bias, addend = (*others, None, None)[:2]
    addend = None if addend is None else emit_first(b, addend)
    y = emit(b, emit_first(b, x), w, bias, addend, **attributes)
    return emit_last(b, y, len(shape_of("X", x)))
