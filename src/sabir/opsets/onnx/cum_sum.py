"""CumSum: running sums along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import TensorType, add
from sabir.opsets.families import contents
from sabir.opsets.families.shapes import axis_in
from sabir.opsets.typing import Array, Rule
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

cum_sum = Operator(
    "CumSum", summary="Each element plus all before it along `axis`: `y[i] = x[0] + ... + x[i]`."
)

T = Constraint("T", tensors("double", "float", "int32", "int64", "uint32", "uint64"))
T2 = Constraint("T2", tensors("int32", "int64"))

v11 = cum_sum.first(
    11,
    inputs=[
        Input("x", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("axis", T2, "One number in [-rank, rank-1]: the axis to sum along.", differentiable=False),
    ],
    outputs=[Output("y", T, "The running sums, in the shape of `x`.", differentiable=True)],
    attributes=[
        Attribute("reverse", "int", "1: sum from the end of the axis.", default=0),
        Attribute("exclusive", "int", "1: leave out the element itself; the first sum is 0.", default=0),
    ],
)
v14 = v11.widen(14, T=FLOATS | BFLOAT16)


@v11.infer
def infer(x: TensorType, axis: TensorType, /, *, reverse: int, exclusive: int) -> TensorType:
    y = TensorType(x.element, x.shape)
    place = contents.ints(axis.known)
    if x.shape is None or not place:
        return y
    along = axis_in(place[0], len(x.shape))
    if not x.element.is_integer:
        return y
    sums = np.frompyfunc(add, 2, 1)
    return contents.moved(y, lambda held: _running(held, along, reverse, exclusive, sums.accumulate), x)


@v11.evaluate
def evaluate(x: Array, axis: Array, /, *, reverse: int, exclusive: int) -> Array:
    wide = x.astype(np.promote_types(x.dtype, np.float32), copy=False) if x.dtype.kind not in "iu" else x
    along = axis_in(int(axis.item()), x.ndim)
    return _running(wide, along, reverse, exclusive, np.add.accumulate).astype(x.dtype, copy=False)


def _running(x: Array, axis: int, reverse: int, exclusive: int, accumulate: Rule) -> Array:
    """Sum along an axis; an exclusive sum is shifted, since infinities cannot be subtracted again."""
    rows = np.moveaxis(x, axis, 0)
    rows = rows[::-1] if reverse else rows
    sums = accumulate(rows, axis=0)
    if exclusive:
        sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
    return np.moveaxis(sums[::-1] if reverse else sums, 0, axis)


@cum_sum.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    for opset in (11, 14):
        yield Example(opset, x, np.array(0), expect=[np.array([[1, 2, 3], [5, 7, 9]], np.float32)])
        yield Example(
            opset, x, np.array(-1, np.int32), expect=[np.array([[1, 3, 6], [4, 9, 15]], np.float32)]
        )
    yield Example(14, x, np.array(1), reverse=1, expect=[np.array([[6, 5, 3], [15, 11, 6]], np.float32)])
    yield Example(14, x, np.array(1), exclusive=1, expect=[np.array([[0, 1, 3], [0, 4, 9]], np.float32)])
    yield Example(
        14, x, np.array(1), reverse=1, exclusive=1, expect=[np.array([[5, 3, 0], [11, 6, 0]], np.float32)]
    )
    yield Example(
        14, np.array([np.inf, 1, np.nan]), np.array(0), exclusive=1, expect=[np.array([0, np.inf, np.inf])]
    )
    yield Example(
        14,
        np.array([2**31 - 1, 1], np.int32),
        np.array(0),
        expect=[np.array([2**31 - 1, -(2**31)], np.int32)],
    )
    yield Example(
        14, np.array([3, 2**64 - 1], np.uint64), np.array([0]), expect=[np.array([3, 2], np.uint64)]
    )
    yield Example(
        14, np.zeros((2, 0), np.float32), np.array(1), exclusive=1, expect=[np.zeros((2, 0), np.float32)]
    )
    for kind in (np.float16, ml_dtypes.bfloat16):  # in the half itself the sum would stay below its end
        ones = np.ones(3000, kind)
        yield Example(14, ones, np.array(0), expect=[np.arange(1, 3001, dtype=np.float32).astype(kind)])
