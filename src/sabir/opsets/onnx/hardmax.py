"""Hardmax: a one where the maximum along an axis is."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.opsets.families import flattening
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.shapes import axis_in
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

hardmax = Operator(
    "Hardmax", summary="1 at the first greatest element along `axis`, 0 elsewhere; a NaN counts as greatest."
)

T = Constraint("T", FLOATS)

v1 = hardmax.first(
    1,
    inputs=[Input("input", T, "A tensor of any rank.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape, of zeros and ones.", differentiable=True)],
    attributes=[Attribute("axis", "int", "Where the coercion to a matrix splits the shape.", default=1)],
)
v11 = v1.restate(11, "A negative `axis` counts from the back.")
v13 = v11.evolve(
    13,
    "`axis` names the one dimension to search; the coercion to a matrix is gone.",
    add=[Attribute("axis", "int", "The dimension along which there is a single one.", default=-1)],
    widen={"T": BFLOAT16},
)

v1.infer(flattening.infer_split)
v13.infer(flattening.infer_axis)


@v1.evaluate
def over_flattened_tail(x: Array, /, *, axis: int) -> Array:
    """Coerce `x` to a matrix at `axis`, then search each row."""
    return flattening.over_rows(over_axis, x, axis)


@v13.evaluate
def over_axis(x: Array, /, *, axis: int) -> Array:
    axis = axis_in(axis, x.ndim)
    y = np.zeros(x.shape, x.dtype)
    if x.size:
        np.put_along_axis(y, np.argmax(widened(x), axis=axis, keepdims=True), x.dtype.type(1), axis)
    return y


v13.upgrade(flattening.split_to_axis("Hardmax"))
v13.downgrade(flattening.axis_to_split("Hardmax"))


@hardmax.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 5], [5, 2]], [[3, 3], [7, -1]]], np.float32)
    last = np.array([[[0, 1], [1, 0]], [[1, 0], [1, 0]]], np.float32)
    both = [[[0, 1], [0, 0]], [[0, 0], [1, 0]]]  # the matrix has four columns
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
