"""Products of complex numbers, whose real and imaginary parts are in the last dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType, may_be_equal
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.shapes import broadcast
from sabir.opsets.families.spectra.spectra import COMPLEX
from sabir.schema import FLOATS, Constraint, Input, Output

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array
    from sabir.schema import Operator, Version

_T = Constraint("T", FLOATS)


def declare(operator: Operator) -> Version:
    """Declare a product of two tensors of complex numbers, with its type rule."""
    version = operator.first(
        1,
        inputs=[
            Input("A", _T, "Complex numbers, [..., 2].", differentiable=True),
            Input("B", _T, "Complex numbers, [..., 2], broadcast with `A`.", differentiable=True),
        ],
        outputs=[Output("C", _T, "The products, [..., 2].", differentiable=True)],
    )
    version.infer(inferred)
    return version


def inferred(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer the product of complex numbers; raises InferenceError where the last dimension is not 2."""
    for name, x in (("A", a), ("B", b)):
        if x.shape is not None and (not x.shape or not may_be_equal(x.shape[-1], COMPLEX)):
            raise InferenceError(f"the last dimension of `{name}` must be 2, and {name} is {x}")
    shape = broadcast(a.shape, b.shape)
    return TensorType(a.element, None if shape is None else (*shape[:-1], COMPLEX))


def product(a: Array, b: Array, sign: int) -> Array:
    """Return a * b for sign 1, a * conj(b) for sign -1; both [..., 2]. 16-bit floats are rounded once."""
    (x, y), (u, v) = (np.moveaxis(widened(m), -1, 0) for m in (a, b))
    v = sign * v
    return np.stack([x * u - y * v, x * v + y * u], axis=-1).astype(a.dtype)


def product_graph(b: Builder, left: Value, right: Value, sign: int) -> Value:
    """Emit a * b for sign 1, a * conj(b) for sign -1."""
    x, y = _parts(b, left)
    u, v = _parts(b, right)
    v = b.Neg(v) if sign < 0 else v
    real = b.Sub(b.Mul(x, u), b.Mul(y, v))
    imaginary = b.Add(b.Mul(x, v), b.Mul(y, u))
    return b.Concat(real, imaginary, axis=-1)


def _parts(b: Builder, x: Value) -> tuple[Value, Value]:
    real, imaginary = (
        b.Slice(x, *(as_input(b, "part", [n]) for n in (place, place + 1, -1))) for place in range(COMPLEX)
    )
    return real, imaginary
