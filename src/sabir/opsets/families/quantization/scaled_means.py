"""Means of quantized tensors: `round((sum(x) - n * zero) * (x_scale / (y_scale * n))) + y_zero`, saturated.

The sums of integers are exact, so the results depend on no order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import FLOAT, INT32, element
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.quantization import quantization, quantized_graphs, scaled
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.extents import shape_of, sizes
from sabir.opsets.families.shapes.sizes import passed_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array


def evaluated(
    x: Array, axes: tuple[int, ...], x_scale: Array, x_zero: Array | None, y_scale: Array,
    y_zero: Array | None, *, keepdims: bool = True,
) -> Array:  # fmt: skip
    """Return the means over some axes as numbers of the type of `x`; of no elements, the least number."""
    passed_over(x)
    to, count = element(x.dtype), math.prod(x.shape[axis] for axis in axes)
    total = x.sum(axis=axes, keepdims=keepdims, dtype=np.int64)
    centre = 0 if x_zero is None else int(x_zero.reshape(()))
    centred = np.asarray(total - count * centre).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.asarray(x_scale.reshape(()) / (y_scale.reshape(()) * np.float32(count)))
        zero = np.zeros((), x.dtype) if y_zero is None else y_zero.reshape(())
        return quantization.requantized(centred, factor, zero, to)


def written(
    b: Builder, x: Value, axes: Sequence[int], x_scale: Value, x_zero: Value | None, y_scale: Value,
    y_zero: Value | None, *, keepdims: bool = True,
) -> Value:  # fmt: skip
    """Emit the means as `evaluated`; raises Unconvertible where the rank is unknown."""
    count = _count(b, x, axes)
    total = reductions.call(b, "ReduceSum", b.Cast(x, to=INT32.number), axes, keepdims=int(keepdims))
    if x_zero is not None:
        zero = b.Cast(quantized_graphs.single(b, x_zero), to=INT32.number)
        total = b.Sub(total, b.Mul(zero, b.Cast(count, to=INT32.number)))
    step = b.Mul(quantized_graphs.single(b, y_scale), count)
    factor = b.Div(quantized_graphs.single(b, x_scale), step)
    zero = scaled.zero_of(b, y_zero, x)
    return quantized_graphs.requantized(b, b.Cast(total, to=FLOAT.number), factor, zero)


def _count(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Return the number of elements of a mean as a float scalar."""
    dims = [shape_of("the input", x)[axis] for axis in axes]
    known = [d for d in dims if isinstance(d, int)]
    if len(known) == len(dims):
        return Numbers(b, FLOAT)(math.prod(known))
    return b.Cast(b.ReduceProd(sizes(b, x, axes), keepdims=0), to=FLOAT.number)
