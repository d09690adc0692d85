"""Hardmax: 1 at the maximum along an axis, 0 elsewhere."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import flattening
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

hardmax = Operator(
    "Hardmax", summary="1 at the first greatest element along `axis`, 0 elsewhere; NaN counts as greatest."
)

T = Constraint("T", FLOATS)

v1 = hardmax.first(
    1,
    inputs=[Input("input", T, "A tensor of any rank.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape, of zeros and ones.", differentiable=True)],
    attributes=[flattening.SPLIT],
)
v11 = v1.restate(11, "A negative `axis` counts from the end.")
v13 = v11.evolve(
    13,
    "`axis` is the dimension to search; the input is no longer flattened.",
    add=[Attribute("axis", "int", "The dimension along which one element is 1.", default=-1)],
    widen={"T": BFLOAT16},
)


@v13.evaluate
def evaluate(x: Array, /, *, axis: int) -> Array:
    axis = axis_in(axis, x.ndim)
    y = np.zeros(x.shape, x.dtype)
    if x.size:
        np.put_along_axis(y, np.argmax(widened(x), axis=axis, keepdims=True), x.dtype.type(1), axis)
    return y


@v13.lower
def lower(x: Expression, /, *, axis: int) -> Expression:
    axis = axis_in(axis, x.rank)
    greatest = loops.apply("eq", loops.count(x.shape, axis), loops.reduce("argmax", x, [axis]))
    return loops.cast(greatest, x.element)


flattening.split_before(v13)


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    """The results do not change near a point without ties."""
    return g.zeros(x)


@hardmax.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 5], [5, 2]], [[3, 3], [7, -1]]], np.float32)
    last = np.array([[[0, 1], [1, 0]], [[1, 0], [1, 0]]], np.float32)
    both = [[[0, 1], [0, 0]], [[0, 0], [1, 0]]]  # rows of a matrix with four columns
    for opset in (1, 11):
        yield Example(opset, x, expect=[both])
        yield Example(opset, x, axis=2, expect=[last])
        yield Example(opset, x, axis=3, expect=[np.ones((2, 2, 2), np.float32)])
        yield Example(opset, x[0].astype(np.float16), expect=[last[0].astype(np.float16)])
    yield Example(11, x, axis=-1, expect=[last])
    yield Example(13, x, expect=[last])
    yield Example(13, x, axis=1, expect=[[[[0, 1], [1, 0]], [[0, 1], [1, 0]]]])
    yield Example(13, x, axis=0, expect=[[[[0, 1], [0, 1]], [[1, 0], [1, 0]]]])
    for kind in (np.float16, np.float64, ml_dtypes.bfloat16):
        special = np.array([[np.inf, np.inf], [1, np.nan], [-np.inf, -np.inf]], kind)
        yield Example(13, special, expect=[[[1, 0], [0, 1], [1, 0]]])
    yield Example(13, np.zeros((2, 0), np.float32), axis=1, expect=[np.zeros((2, 0), np.float32)])
