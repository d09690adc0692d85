"""LpPool: the p-norm of each window."""

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.reduction import reduction_kernels
from sabir.opsets.families.windows.pooling import pooled_type, powers, reduce_windows, roots, whole_order
from sabir.opsets.families.windows.pooling_gradients import of_norms
from sabir.opsets.families.windows.window_kernels import pooled
from sabir.opsets.families.windows.windows import (
    AUTO_PAD,
    CEIL_MODE,
    DILATIONS,
    KERNEL_SHAPE,
    PADS,
    STRIDES,
    Window,
)
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    above,
    at_least,
)

lp_pool = Operator(
    "LpPool",
    summary="The p-norm of each window that slides over the spatial axes: `sum(|x| ** p) ** (1 / p)`.",
)

T = Constraint("T", FLOATS)

v1 = lp_pool.first(
    1,
    inputs=[Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True)],
    outputs=[Output("Y", T, "The norms, (N, C, O1, ..., On); padding is 0.", differentiable=True)],
    attributes=[
        Attribute("p", "float", "The order of the norm.", default=2.0, values=above(0)),
        PADS,
        AUTO_PAD,
        STRIDES,
        Attribute("kernel_shape", "ints", KERNEL_SHAPE.doc, values=at_least(1)),
    ],
)
v2 = v1.evolve(
    2,
    "`p` is an integer, and `kernel_shape` required.",
    add=[Attribute("p", "int", "The order of the norm, above 0.", default=2, values=above(0)), KERNEL_SHAPE],
)
v11 = v2.restate(11, "States that strides are 1 by default.")
v18 = v11.extend(
    18,
    "Windows may have gaps (`dilations`), and the last one may end beyond the input (`ceil_mode`).",
    attributes=[CEIL_MODE, DILATIONS],
)
v22 = v18.widen(22, T=BFLOAT16)


@v1.infer
def infer(x: TensorType, /, *, p: float, **window: Any) -> TensorType:
    return pooled_type(x, _window(**window))


def _window(*, kernel_shape: Sequence[int] | None, **window: Any) -> Window:
    """Return the window; LpPool:1 declares its size as optional, and has no default."""
    if not kernel_shape:
        raise InferenceError("kernel_shape is missing, and LpPool has no default for it")
    return Window.of(kernel_shape, **window)


@v1.evaluate
def evaluate(x: Array, /, *, p: float, **window: Any) -> Array:
    sums = reduce_windows(powers(x, p), _window(**window).axes(x.shape[2:]), np.add, 0)
    return roots(sums, p).astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, /, *, p: float, **window: Any) -> Expression:
    return reduction_kernels.roots(pooled(reduction_kernels.powers(x, p), _window(**window), "sum"), p)


@v2.upgrade
def integer_order(
    b: Builder, x: Value, /, *, p: float, kernel_shape: Sequence[int] | None, **window: Any
) -> Value:
    if not kernel_shape:
        raise Unconvertible("kernel_shape is missing, and LpPool:2 requires it")
    return b.LpPool(x, p=whole_order(p), kernel_shape=kernel_shape, **window)


@v2.downgrade
def float_order(b: Builder, x: Value, /, *, p: int, **window: Any) -> Value:
    return b.LpPool(x, p=float(p), **window)


@v18.gradient
def gradient(g: Gradient, x: Value, /, *, p: int, **window: Any) -> Value:
    """Zero where all elements of a window are, as for a norm in PyTorch."""
    return of_norms(g, x, p, window)


@lp_pool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, row = np.array([[[[3, -4, 0], [0, 12, 5]]]], f), np.array([[[3, 4, -12, 5, 1]]], f)
    pairs: dict[str, Any] = {"kernel_shape": [2], "strides": [2]}
    cubes = [[[(3**3 + 4**3) ** (1 / 3), (12**3 + 5**3) ** (1 / 3)]]]
    ends = [[[5.0, 170**0.5]]]
    for opset, one, three in ((1, 1.0, 3.0), (2, 1, 3), (11, 1, 3), (18, 1, 3), (22, 1, 3)):
        yield Example(opset, x, kernel_shape=[1, 2], expect=[[[[[5, 4], [12, 13]]]]])
        yield Example(opset, x, kernel_shape=[2, 2], p=one, expect=[[[[[19, 21]]]]])
        yield Example(opset, row, **pairs, p=three, expect=[cubes])
        yield Example(opset, row, **pairs, auto_pad="SAME_UPPER", expect=[[[[5, 13, 1]]]])
        yield Example(opset, row, **pairs, auto_pad="SAME_LOWER", p=one, expect=[[[[3, 16, 6]]]])
        yield Example(opset, row, kernel_shape=[3], strides=[3], pads=[1, 1], expect=[ends])
    yield Example(1, row, kernel_shape=[2], strides=[4], p=0.5, expect=[[[[(3**0.5 + 2) ** 2]]]])
    for opset in (18, 22):
        yield Example(opset, row, **pairs, ceil_mode=1, expect=[[[[5, 13, 1]]]])
        yield Example(opset, row, kernel_shape=[2], dilations=[3], p=1, expect=[[[[8, 5]]]])
    yield Example(18, np.array([[[300, 400]]], np.float16), kernel_shape=[2], expect=[[[[500]]]])
    yield Example(22, np.array([[[3, 4]]], ml_dtypes.bfloat16), kernel_shape=[2], expect=[[[[5]]]])
    yield Example(2, np.array([[[np.inf, 1, np.nan]]]), kernel_shape=[2], expect=[[[[np.inf, np.nan]]]])
    yield Example(2, np.ones((1, 1, 2, 2, 2)), kernel_shape=[2, 2, 2], p=3, expect=[[[[[[2]]]]]])
    yield Example(2, np.zeros((0, 2, 3), f), kernel_shape=[2], expect=[np.zeros((0, 2, 2), f)])
