"""ReduceLogSumExp: the logarithm of the sum of exponentials over some axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.reduction import reducing, reduction_kernels, reductions
from sabir.opsets.families.reduction.reduction_gradients import kept
from sabir.opsets.typing import Gradient
from sabir.schema import Example, Operator

reduce_log_sum_exp = Operator(
    "ReduceLogSumExp", summary="The logarithm of the sum of exponentials over `axes`: `log(sum(exp(x)))`."
)

v1, v18 = reducing.declare(reduce_log_sum_exp, "The logarithms; -infinity for no elements.")
v28 = reducing.floats_only(v18, 28)


reductions.attach(v1, v18, reductions.in_floats(reductions.log_sum_exp))
reduction_kernels.attach(v1, v18, reduction_kernels.in_floats(reduction_kernels.log_sum_exp))
reductions.attach_without_integers(v28)


@v18.body
def body(
    b: Builder, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
) -> Value:
    """Shift by the maximum, as evaluation does; by 0 where it is infinite, or there is none."""
    wide = reductions.as_floats(b, data)
    zero = b.CastLike(b.initializer("zero", np.float32(0)), wide)
    infinity = b.CastLike(b.initializer("infinity", np.float32(np.inf)), wide)

    def shift(kept: int) -> Value:
        most = b.ReduceMax(wide, axes, keepdims=kept, noop_with_empty_axes=noop_with_empty_axes)
        return b.Where(b.Less(b.Abs(most), infinity), most, zero)

    powers = b.Exp(b.Sub(wide, shift(1)))
    sums = b.ReduceSum(powers, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
    return reductions.as_before(b, b.Add(b.Log(sums), shift(keepdims)), data)


@v18.gradient
def gradient(g: Gradient, data: Value, axes: Value | None = None, /, *, keepdims: int) -> tuple[Value, None]:
    dy, y = (kept(g, v, axes, keepdims) for v in (g.dy, g.y()))
    return g.Mul(dy, g.Exp(g.Sub(data, y))), None


@reduce_log_sum_exp.examples
def examples() -> Iterator[Example]:
    yield from reducing.examples_of(np.logaddexp.reduce, by_attribute=(1, 11, 13), by_input=(18, 28))
    yield Example(18, np.array([[3, 3], [5, -9]], np.int32), [1], keepdims=0, expect=[[3, 5]])
    inf, nan = np.inf, np.nan
    extremes = [[1000, 1000], [-1000, -1000], [-inf, -inf], [inf, 1], [nan, 1], [inf, -inf]]
    logs = [1000 + np.log(2), np.log(2) - 1000, -inf, inf, nan, inf]  # by hand
    for opset in (18, 28):
        yield Example(opset, np.array(extremes), [1], keepdims=0, expect=[np.array(logs)])
    logs = [20 + np.log(1024).item()]
    for dtype in (np.float16, ml_dtypes.bfloat16):
        yield Example(28, np.full(1024, 20, dtype), expect=[logs], tolerance=1e-2)
