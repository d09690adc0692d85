"""Softmax: normalised exponentials along an axis."""

from collections.abc import Iterator

import numpy as np

from sabir.base import new_array
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.normalization import flattening
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.reduction import reductions
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

softmax = Operator(
    "Softmax", summary="Exponentials along `axis`, normalised to the sum 1: `exp(x) / sum(exp(x))`."
)

_BLOCK = 1 << 16  # elements at a time, which fit the cache

T = Constraint("T", FLOATS)

v1 = softmax.first(
    1,
    inputs=[Input("input", T, "A tensor of any rank.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; every value between 0 and 1.", differentiable=True)],
    attributes=[flattening.SPLIT],
)
v11 = v1.restate(11, "A negative `axis` counts from the end.")
v13 = v11.evolve(
    13,
    "`axis` is the dimension to normalise; the input is no longer flattened.",
    add=[Attribute("axis", "int", "The dimension along which the outputs sum to one.", default=-1)],
    widen={"T": BFLOAT16},
)


@v13.evaluate
def evaluate(x: Array, /, *, axis: int) -> Array:
    """Shift by the maximum first, so that no exponential overflows; sum halves in float32."""
    wide = x if x.dtype.itemsize >= 4 else x.astype(np.float32)  # ruff: ignore[magic-value-comparison] - bytes of a float32
    y = new_array(wide.shape, wide.dtype) if wide.flags.c_contiguous else np.empty_like(wide)
    if wide.ndim > 1 and wide.size and wide.flags.c_contiguous and axis in {-1, wide.ndim - 1}:
        rows, results = wide.reshape(-1, wide.shape[-1]), y.reshape(-1, wide.shape[-1])
        step = max(1, _BLOCK // wide.shape[-1])
        for start in range(0, len(rows), step):
            _normalise(rows[start : start + step], 1, results[start : start + step])
    else:
        _normalise(wide, axis, y)
    return y.astype(x.dtype, copy=False)


def _normalise(x: Array, axis: int, out: Array) -> None:
    np.subtract(x, x.max(axis=axis, keepdims=True, initial=-np.inf), out=out)
    np.exp(out, out=out)
    out /= summed(out, axis, keepdims=True)


@v13.lower
def lower(x: Expression, /, *, axis: int) -> Expression:
    return kernels.softmax(x, axis)


flattening.split_before(v13)


@v13.body
def body(b: Builder, x: Value, /, *, axis: int) -> Value:
    wide = reductions.as_floats(b, x)
    e = b.Exp(b.Sub(wide, reductions.call(b, "ReduceMax", wide, [axis])))
    return reductions.as_before(b, b.Div(e, reductions.call(b, "ReduceSum", e, [axis])), x)


@v13.gradient
def gradient(g: Gradient, x: Value, /, *, axis: int) -> Value:
    """Of the formula, as the body's shift by the maximum must not be differentiated."""
    y, dy = g.y(), g.dy
    return g.Mul(y, g.Sub(dy, g.ReduceSum(g.Mul(dy, y), [axis], keepdims=1)))


@softmax.examples
def examples() -> Iterator[Example]:
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
    for axis in (0, 1, 2):
        yield Example(1, x, axis=axis)
        yield Example(11, x, axis=axis)
        yield Example(13, x, axis=axis)
    yield Example(13, x.astype(np.float16), axis=-1, tolerance=1e-3)
    # by hand: exp(0), exp(ln 3) over their sum; the old version sums over both trailing dimensions
    rows = np.log(np.array([[[1, 3], [4, 4]]], np.float32))
    yield Example(13, rows, axis=2, expect=[[[[0.25, 0.75], [0.5, 0.5]]]])
    yield Example(1, rows, axis=1, expect=[np.array([[[1, 3], [4, 4]]], np.float32) / 12])
    yield Example(13, [[1000.0, 0.0]], expect=[[[1, 0]]])
    yield Example(13, np.zeros((2, 0), np.float32), axis=1)
