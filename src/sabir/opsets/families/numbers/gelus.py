"""The Gaussian error linear unit, exact or by a hyperbolic tangent: arrays, kernels, nodes, derivatives.

`approximate` is the attribute of Gelu: 'none' for `0.5 * x * (1 + erf(x / sqrt(2)))`, 'tanh' for
`0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.base import new_array
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.error_function import erf
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.ranks import check_least_rank, check_shape

if TYPE_CHECKING:
    from sabir.ir import Builder, TensorType, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array, Gradient

_BLOCK = 1 << 15  # elements; the temporaries of a formula of this size fit the second-level cache
_CUBIC = 0.044715
_SCALE = math.sqrt(2 / math.pi)


def gelu(x: Array, approximate: str) -> Array:
    """Return the unit of floats of 32 or 64 bits."""
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(_SCALE * (x + _CUBIC * (x * x * x))))
    y = erf(x / math.sqrt(2))
    y += 1
    y *= 0.5 * x
    return y


def gelu_with_bias(x: Array, bias: Array, approximate: str) -> Array:
    """Return the unit of `x + bias`, block by block; 16-bit floats are computed in float32."""
    if not x.size:
        return x
    rows = x.reshape(x.size // bias.size, bias.size)
    y, offset = new_array(rows.shape, x.dtype), widened(bias)
    step = max(1, _BLOCK // bias.size)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        y[block] = gelu(widened(rows[block]) + offset, approximate)
    return y.reshape(x.shape)


def lowered(x: Expression, approximate: str) -> Expression:
    """Return the unit as a tensor expression."""
    half = loops.apply("mul", x, 0.5)
    if approximate == "tanh":
        cube = loops.apply("mul", x, loops.apply("mul", x, x))
        argument = loops.apply("add", x, loops.apply("mul", cube, _CUBIC))
        step = loops.apply("tanh", loops.apply("mul", argument, _SCALE))
    else:
        step = loops.apply("erf", loops.apply("mul", x, math.sqrt(0.5)))
    return loops.apply("mul", half, loops.apply("add", step, 1))


def emitted(b: Builder, x: Value, approximate: str) -> Value:
    """Emit the unit as nodes; raises Unconvertible where the element type is unknown."""
    numbers = Numbers.like(b, x)
    if approximate == "tanh":
        cubic = numbers.op("Mul", b.Mul(x, b.Mul(x, x)), _CUBIC)
        sided = b.Tanh(numbers.op("Mul", b.Add(x, cubic), _SCALE))
    else:
        sided = b.Erf(numbers.op("Mul", x, math.sqrt(0.5)))
    return b.Mul(numbers.op("Mul", x, 0.5), numbers.op("Add", sided, 1.0))


def emitted_with_bias(b: Builder, x: Value, bias: Value | None, approximate: str) -> Value:
    """Emit the unit of `x + bias`; 16-bit floats are computed in float."""
    wide = halves.widened(b, x)
    if bias is not None:
        wide = b.Add(wide, halves.widened(b, bias))
    return halves.rounded(b, emitted(b, wide, approximate), x)


def slope(g: Gradient, x: Value, approximate: str) -> Value:
    """Emit the derivative of the unit."""
    square = g.Mul(x, x)
    if approximate == "tanh":
        step = g.Tanh(g.Mul(g.Mul(x, g.Add(g.Mul(square, _CUBIC), 1)), _SCALE))
        inner = g.Mul(g.Add(g.Mul(square, 3 * _CUBIC), 1), _SCALE)
        rise = g.Mul(g.Mul(g.Sub(1, g.Mul(step, step)), inner), g.Mul(x, 0.5))
    else:
        step = g.Erf(g.Mul(x, math.sqrt(0.5)))
        rise = g.Mul(g.Exp(g.Mul(square, -0.5)), g.Mul(x, math.sqrt(0.5 / math.pi)))
    return g.Add(g.Add(g.Mul(step, 0.5), 0.5), rise)


def check_bias(name: str, x: TensorType, bias: TensorType | None) -> None:
    """Raise InferenceError unless a bias has one element for each of the last dimension of `x`."""
    if bias is None:
        return
    check_least_rank("the input", x, 1)
    check_shape(name, bias, x.shape[-1] if x.shape else None)
