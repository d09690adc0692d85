"""LRN: each element divided by a power of the sum of squares of neighbouring channels."""

import functools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import TensorType, Value
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_least_rank
from sabir.opsets.families.shapes.sizes import spend_operations
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, at_least

lrn = Operator(
    "LRN",
    summary="`x / (bias + alpha / size * s) ** beta`, where `s` is the sum of squares over `size` channels.",
)

T = Constraint("T", FLOATS)

v1 = lrn.first(
    1,
    inputs=[Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
    attributes=[
        Attribute("bias", "float", "Added before the power.", default=1.0),
        Attribute("beta", "float", "The exponent.", default=0.75),
        Attribute("alpha", "float", "The weight of the mean of squares.", default=0.0001),
        Attribute(
            "size",
            "int",
            "The number of channels to sum, centred; if even, one more after the centre than before it.",
            required=True,
            values=at_least(1),
        ),
    ],
)
v13 = v1.widen(13, T=BFLOAT16)

_OPERATIONS = 8  # array operations for an image, besides those for each neighbour
_MOST_NEIGHBOURS = 32  # channels that a kernel sums
_QUARTERS = 0.75  # the exponent of every known model; two square roots are much faster than a power


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    check_least_rank("X", x, 2)
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, /, *, size: int, alpha: float, beta: float, bias: float) -> Array:
    check_least_rank("X", x, 2)
    wide = widened(x)
    y = np.empty_like(wide)
    if not y.size:
        return y.astype(x.dtype, copy=False)
    shifts = min(size, x.shape[1])
    spend_operations((shifts + _OPERATIONS) * len(x), shifts * y.nbytes)
    for image, result in zip(wide, y, strict=True):
        base = _neighbourhood(image * image, size)
        base *= alpha / size
        base += bias
        np.divide(image, _power(base, beta), out=result)
    return y.astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /, *, size: int, alpha: float, beta: float, bias: float) -> Expression:
    base = _neighbourhood_expression(loops.apply("mul", x, x), size)
    base = loops.apply("add", loops.apply("mul", base, alpha / size), bias)
    return loops.apply("div", x, _power_expression(base, beta))


def _neighbourhood_expression(squares: Expression, size: int) -> Expression:
    """Sum over a window of channels of (N, C, ...), with zeros around them."""
    if size > _MOST_NEIGHBOURS:
        raise NotLowered(f"no kernel sums over a window of {size} channels")
    ends = ((size - 1) // 2, size // 2)
    before, after = ([0, end, *(0,) * (squares.rank - 2)] for end in ends)
    padded = loops.pad(squares, before, after, 0)
    parts = [loops.narrow(padded, 1, start, squares.shape[1]) for start in range(size)]
    return functools.reduce(functools.partial(loops.apply, "add"), parts)


def _power_expression(base: Expression, beta: float) -> Expression:
    if beta != _QUARTERS:
        return loops.apply("pow", base, beta)
    root = loops.apply("sqrt", base)
    return loops.apply("mul", loops.apply("sqrt", root), root)


def _neighbourhood(squares: Array, size: int) -> Array:
    """Sum (C, ...) over a window of channels, cut at both ends."""
    total, channels = squares.copy(), len(squares)
    before, after = (size - 1) // 2, size // 2
    for shift in range(1, min(after, channels - 1) + 1):
        total[:-shift] += squares[shift:]
    for shift in range(1, min(before, channels - 1) + 1):
        total[shift:] += squares[:-shift]
    return total


def _power(base: Array, beta: float) -> Array:
    if beta != _QUARTERS:
        return base**beta
    root = np.sqrt(base)
    return np.sqrt(root) * root


@v13.gradient
def gradient(g: Gradient, x: Value, /, *, size: int, alpha: float, beta: float, bias: float) -> Value:
    """Sums over windows of channels are products with a matrix of the windows."""
    rank = g.rank(x)
    last, second = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    wide, dy, y = (g.Transpose(halves.widened(g, v), perm=last) for v in (x, g.dy, g.y()))
    indices = g.Range(0, g.Squeeze(g.Shape(x, start=1, end=2), [0]), 1)
    apart = g.Sub(g.Unsqueeze(indices, [1]), indices)  # of a neighbour, its row, and a centre, its column
    inside = g.And(g.GreaterOrEqual(apart, -((size - 1) // 2)), g.LessOrEqual(apart, size // 2))
    windows = g.CastLike(inside, wide)
    base = g.Add(g.Mul(g.MatMul(g.Mul(wide, wide), windows), alpha / size), bias)
    shares = g.MatMul(g.Div(g.Mul(dy, y), base), g.Transpose(windows, perm=[1, 0]))
    d = g.Sub(g.Mul(dy, g.Pow(base, -beta)), g.Mul(g.Mul(wide, 2 * alpha * beta / size), shares))
    return halves.rounded(g, g.Transpose(d, perm=second), x)


@lrn.examples
def examples() -> Iterator[Example]:
    x = np.array([1, 2, 3, 4], np.float32).reshape(1, 4, 1, 1)
    # x / (1 + the sum of squares): of one channel before and one after, and of one before and two after
    odd = [[[[1 / 6]], [[2 / 15]], [[3 / 30]], [[4 / 26]]]]
    even = [[[[1 / 15]], [[2 / 31]], [[3 / 30]], [[4 / 26]]]]
    alone = x / (1 + 1e-4 * x.astype(float) ** 2).astype(np.float32) ** 0.75
    for opset in (1, 13):
        yield Example(opset, x, size=3, alpha=3.0, beta=1.0, expect=[odd])
        yield Example(opset, x, size=4, alpha=4.0, beta=1.0, expect=[even])
        yield Example(opset, x, size=9, alpha=9.0, bias=-14.0, expect=[x / 8])  # 16 ** 0.75
        yield Example(opset, x, size=1, expect=[alone])
    large, ones = x.astype(np.float16) * 100, np.ones((1, 4, 1, 1), np.float16)
    root: dict[str, Any] = {"size": 1, "beta": 0.5}
    yield Example(1, large, **root, alpha=1.0, bias=0.0, tolerance=1e-3, expect=[ones])
    brain = x.astype(ml_dtypes.bfloat16)
    yield Example(13, brain, **root, alpha=0.0, bias=4.0, expect=[(x / 2).astype(ml_dtypes.bfloat16)])
    yield Example(13, np.zeros((1, 0, 2), float), size=3, expect=[np.zeros((1, 0, 2))])
    yield Example(13, np.array([[np.inf, np.nan]]), size=1, expect=[[[np.nan, np.nan]]])
