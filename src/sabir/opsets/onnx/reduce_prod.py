"""ReduceProd: the product over some axes."""

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Value, mul
from sabir.opsets.families.reduction import reducing, reduction_kernels, reductions
from sabir.opsets.families.reduction.reduction_gradients import kept
from sabir.opsets.typing import Array, Gradient
from sabir.schema import Example, Operator

reduce_prod = Operator("ReduceProd", summary="The product over `axes`; no elements have the product 1.")

v1, v18 = reducing.declare(reduce_prod, "The products; integers wrap.")


def product(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    kind = x.dtype if x.dtype.kind in "iu" else reductions.accumulator(x.dtype)
    return np.multiply.reduce(x, axis=axes, dtype=kind, keepdims=keepdims).astype(x.dtype, copy=False)


reductions.attach(v1, v18, product, mul)
reduction_kernels.attach(v1, v18, reduction_kernels.fold("prod"))


@v18.gradient
def gradient(
    g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
) -> tuple[Value, None]:
    """The product of the others, also where some are 0; fourth derivatives miss what passes four zeros."""

    def over(reduce: str, x: Value) -> Value:
        return g.op(reduce, x, axes, keepdims=1, noop_with_empty_axes=noop_with_empty_axes)

    def of_others(x: Value) -> Value:
        return g.Sub(over("ReduceSum", x), x)

    zero = g.Equal(data, 0)
    rest, nothing = g.Where(zero, 1, data), g.Where(zero, data, 0)
    others, one = (
        of_others(g.CastLike(zero, data)),
        of_others(nothing),
    )  # how many zeros; 0, but its slope is 1
    two = g.Mul(g.Sub(g.Mul(one, one), of_others(g.Mul(nothing, nothing))), 0.5)  # the product of two zeros
    slope = g.Where(g.Equal(others, 1), one, g.Where(g.Equal(others, 2), two, 0))
    slope = g.Where(g.Equal(others, 0), 1, slope)
    product = g.Div(over("ReduceProd", rest), rest)
    return g.Mul(kept(g, g.dy, axes, keepdims), g.Mul(product, slope)), None


@reduce_prod.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(math.prod, by_attribute=(1, 11, 13), by_input=(18,))
    yield Example(18, np.array([2**16, 2**16, 5], np.int32), keepdims=0, expect=[0])
    yield Example(18, np.array([2**63 + 1, 3], np.uint64), keepdims=0, expect=[2**63 + 3])
    yield Example(18, np.array([[np.inf, -1], [np.inf, 0]]), [1], keepdims=0, expect=[[-np.inf, np.nan]])
    yield Example(18, np.zeros((0, 3), np.int64), keepdims=0, expect=[1])
    for dtype in (np.float16, ml_dtypes.bfloat16):  # the product of the first two exceeds float16
        yield Example(18, np.array([1024, 1024, 1 / 1024], dtype), expect=[[1024]])
