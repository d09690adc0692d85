"""CumSum: cumulative sums along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Value, add
from sabir.opsets.families.reduction import cumulation
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Operator, Output, tensors

cum_sum = Operator(
    "CumSum", summary="Each element plus all before it along `axis`: `y[i] = x[0] + ... + x[i]`."
)

T = Constraint("T", tensors("double", "float", "int32", "int64", "uint32", "uint64"))

v11 = cum_sum.first(
    11,
    inputs=cumulation.inputs(T),
    outputs=[Output("y", T, "The cumulative sums, in the shape of `x`.", differentiable=True)],
    attributes=cumulation.attributes(0),
)
v14 = v11.widen(14, T=FLOATS | BFLOAT16)


v11.infer(cumulation.inferred(add, 0))
v11.evaluate(cumulation.evaluated(np.add, 0))
v11.lower(cumulation.expressed("sum"))
v11.downgrade(cumulation.scanned("Add", 0))


@v14.gradient
def gradient(g: Gradient, x: Value, axis: Value, /, *, reverse: int, exclusive: int) -> tuple[Value, None]:
    return g.CumSum(g.dy, axis, exclusive=exclusive, reverse=1 - reverse), None


@cum_sum.examples
def examples() -> Iterator[Example]:
    x = [[1.0, 2, 3], [4, 5, 6]]
    for opset in (11, 14):
        yield Example(opset, x, 0, expect=[[[1, 2, 3], [5, 7, 9]]])
        yield Example(opset, x, np.array(-1, np.int32), expect=[[[1, 3, 6], [4, 9, 15]]])
    yield Example(14, x, 1, reverse=1, expect=[[[6, 5, 3], [15, 11, 6]]])
    yield Example(14, x, 1, exclusive=1, expect=[[[0, 1, 3], [0, 4, 9]]])
    yield Example(14, x, 1, reverse=1, exclusive=1, expect=[[[5, 3, 0], [11, 6, 0]]])
    yield Example(14, np.array([np.inf, 1, np.nan]), 0, exclusive=1, expect=[[0, np.inf, np.inf]])
    yield Example(14, np.array([2**31 - 1, 1], np.int32), 0, expect=[[2**31 - 1, -(2**31)]])
    yield Example(14, np.array([3, 2**64 - 1], np.uint64), [0], expect=[[3, 2]])
    yield Example(14, np.zeros((2, 0), np.float32), 1, exclusive=1, expect=[np.zeros((2, 0), np.float32)])
    for dtype in (np.float16, ml_dtypes.bfloat16):  # an accumulator of this type would stop at 2048 or 256
        ones = np.ones(3000, dtype)
        yield Example(14, ones, 0, expect=[np.arange(1, 3001, dtype=np.float32).astype(dtype)])
