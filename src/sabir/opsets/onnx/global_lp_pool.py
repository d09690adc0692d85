"""GlobalLpPool: the p-norm of each channel."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.reduction import reduction_kernels
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.opsets.families.windows.pooling import declare_global, powers, roots, whole_order
from sabir.opsets.families.windows.pooling_gradients import shares_of_norms, slopes_of_powers
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Attribute, Example, Operator, above

global_lp_pool = Operator(
    "GlobalLpPool", summary="The p-norm of each channel over all spatial axes: `sum(|X| ** p) ** (1 / p)`."
)

v1 = declare_global(
    global_lp_pool, "norm", Attribute("p", "float", "The order of the norm.", default=2.0, values=above(0))
)
v2 = v1.evolve(
    2,
    "`p` is an integer. (A later release removed bfloat16 without a new version.)",
    add=[Attribute("p", "int", "The order of the norm, above 0.", default=2, values=above(0))],
)
v22 = v2.widen(22, T=BFLOAT16)


@v1.evaluate
def evaluate(x: Array, /, *, p: float) -> Array:
    passed_over(x)
    sums = summed(powers(x, p), range(2, x.ndim), keepdims=True)
    return roots(sums, p).astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /, *, p: float) -> Expression:
    sums = loops.reduce("sum", reduction_kernels.powers(x, p), range(2, x.rank))
    return reduction_kernels.roots(sums, p)


@v2.upgrade
def integer_order(b: Builder, x: Value, /, *, p: float) -> Value:
    return b.GlobalLpPool(x, p=whole_order(p))


@v2.downgrade
def float_order(b: Builder, x: Value, /, *, p: int) -> Value:
    return b.GlobalLpPool(x, p=float(p))


@v2.gradient
def gradient(g: Gradient, x: Value, /, *, p: int) -> Value:
    """Zero where all elements of a channel are, as for a norm in PyTorch."""
    return g.Mul(shares_of_norms(g, g.y(), p), slopes_of_powers(g, x, p))


@global_lp_pool.examples
def examples() -> Iterator[Example]:
    x = np.array([[[[1, -2], [2, 0]], [[-3, 4], [0, 0]]]], np.float32)
    for opset, one, three in ((1, 1.0, 3.0), (2, 1, 3), (22, 1, 3)):
        yield Example(opset, x, expect=[[[[[3]], [[5]]]]])
        yield Example(opset, x, p=one, expect=[[[[[5]], [[7]]]]])
        yield Example(opset, x, p=three, expect=[[[[[17 ** (1 / 3)]], [[91 ** (1 / 3)]]]]])
        yield Example(opset, np.zeros((1, 2, 0), np.float32), expect=[np.zeros((1, 2, 1), np.float32)])
    yield Example(1, x, p=0.5, expect=[[[[[(1 + 2 * 2**0.5) ** 2]], [[(3**0.5 + 2) ** 2]]]]])
    far = np.array([[[300, 400, np.inf]], [[300, 400, np.nan]], [[300, 400, 0]]])  # squares exceed float16
    norms = [[[np.inf]], [[np.nan]], [[500]]]
    yield Example(2, far.astype(np.float16), expect=[norms])
    yield Example(2, far, expect=[norms])
    brain = ml_dtypes.bfloat16
    yield Example(22, np.array([[[3, 4]]], brain), expect=[[[[5]]]])
