"""LpPool: the p-norm of each window."""

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.pooling import folded, pooled_type, powers, roots, whole_order
from sabir.opsets.families.windows import AUTO_PADS, Window
from sabir.opsets.typing import Array
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
        Attribute(
            "pads",
            "ints",
            "Padding of the axes: all the beginnings, then all the ends; none by default.",
            values=at_least(0),
        ),
        Attribute(
            "auto_pad",
            "string",
            "SAME_UPPER, SAME_LOWER: padded so that O = ceil(D / stride), the odd one at the end or the "
            "beginning; VALID: not padded; NOTSET: `pads`.",
            default="NOTSET",
            values=AUTO_PADS,
        ),
        Attribute(
            "strides", "ints", "The step between windows along each axis; 1 by default.", values=at_least(1)
        ),
        Attribute("kernel_shape", "ints", "The window's size along each axis.", values=at_least(1)),
    ],
)
v2 = v1.evolve(
    2,
    "`p` is an integer, and `kernel_shape` required.",
    add=[
        Attribute("p", "int", "The order of the norm, above 0.", default=2, values=above(0)),
        Attribute(
            "kernel_shape", "ints", "The window's size along each axis.", required=True, values=at_least(1)
        ),
    ],
)
v11 = v2.restate(11, "States that strides are 1 by default.")
v18 = v11.extend(
    18,
    "Windows may have gaps (`dilations`), and a last one may pass the end (`ceil_mode`).",
    attributes=[
        Attribute("ceil_mode", "int", "1: a last window may pass the end, not start there.", default=0),
        Attribute(
            "dilations",
            "ints",
            "The step between a window's elements along each axis; 1 by default.",
            values=at_least(1),
        ),
    ],
)
v22 = v18.widen(22, T=BFLOAT16)


@v1.infer
def infer(
    x: TensorType, /, *, kernel_shape: Sequence[int] | None, strides: Sequence[int] | None,
    pads: Sequence[int] | None, auto_pad: str, dilations: Sequence[int] | None = None, ceil_mode: int = 0,
) -> TensorType:  # fmt: skip
    window = Window.of(
        _given(kernel_shape), strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations,
        ceil_mode=ceil_mode,
    )  # fmt: skip
    return pooled_type(x, window)


def _given(kernel_shape: Sequence[int] | None) -> Sequence[int]:
    """Return the window's size, without which LpPool-1 may be written but means nothing."""
    if not kernel_shape:
        raise InferenceError("kernel_shape is missing, and nothing else tells the window's size")
    return kernel_shape


@v1.evaluate
def evaluate(
    x: Array, /, *, p: float, kernel_shape: Sequence[int] | None, strides: Sequence[int] | None,
    pads: Sequence[int] | None, auto_pad: str, dilations: Sequence[int] | None = None, ceil_mode: int = 0,
) -> Array:  # fmt: skip
    window = Window.of(
        _given(kernel_shape), strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations,
        ceil_mode=ceil_mode,
    )  # fmt: skip
    sums = folded(powers(x, p), window.axes(x.shape[2:]), np.add, 0)
    return roots(sums, p).astype(x.dtype, copy=False)


@v2.upgrade
def whole_p(
    b: Builder, x: Value, /, *, p: float, kernel_shape: Sequence[int] | None, **attributes: Any
) -> Value:
    if not kernel_shape:
        raise Unconvertible("kernel_shape is missing, and LpPool-2 requires it")
    return b.LpPool(x, p=whole_order(p), kernel_shape=kernel_shape, **attributes)


@v2.downgrade
def fractional_p(b: Builder, x: Value, /, *, p: int, **attributes: Any) -> Value:
    return b.LpPool(x, p=float(p), **attributes)


@lp_pool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[[3, -4, 0], [0, 12, 5]]]], f)
    row = np.array([[[3, 4, -12, 5, 1]]], f)
    for opset, one, three in ((1, 1.0, 3.0), (2, 1, 3), (11, 1, 3), (18, 1, 3), (22, 1, 3)):
        yield Example(opset, x, kernel_shape=[1, 2], expect=[np.array([[[[5, 4], [12, 13]]]], f)])
        yield Example(opset, x, kernel_shape=[2, 2], p=one, expect=[np.array([[[[19, 21]]]], f)])
        cubes = np.array([[[(3**3 + 4**3) ** (1 / 3), (12**3 + 5**3) ** (1 / 3)]]], f)
        yield Example(opset, row, kernel_shape=[2], strides=[2], p=three, expect=[cubes])
        yield Example(opset, row, kernel_shape=[2], strides=[2], auto_pad="SAME_UPPER",
                      expect=[np.array([[[5, 13, 1]]], f)])  # fmt: skip
        yield Example(opset, row, kernel_shape=[2], strides=[2], auto_pad="SAME_LOWER", p=one,
                      expect=[np.array([[[3, 16, 6]]], f)])  # fmt: skip
        yield Example(
            opset,
            row,
            kernel_shape=[3],
            strides=[3],
            pads=[1, 1],
            expect=[np.array([[[5, np.sqrt(170)]]], f)],
        )
    yield Example(1, row, kernel_shape=[2], strides=[4], p=0.5, expect=[np.array([[[(3**0.5 + 2) ** 2]]], f)])
    for opset in (18, 22):
        yield Example(
            opset, row, kernel_shape=[2], strides=[2], ceil_mode=1, expect=[np.array([[[5, 13, 1]]], f)]
        )
        yield Example(opset, row, kernel_shape=[2], dilations=[3], p=1, expect=[np.array([[[8, 5]]], f)])
    yield Example(
        18, np.array([[[300, 400]]], np.float16), kernel_shape=[2], expect=[np.array([[[500]]], np.float16)]
    )
    brain = ml_dtypes.bfloat16
    yield Example(22, np.array([[[3, 4]]], brain), kernel_shape=[2], expect=[np.array([[[5]]], brain)])
    yield Example(
        2, np.array([[[np.inf, 1, np.nan]]]), kernel_shape=[2], expect=[np.array([[[np.inf, np.nan]]])]
    )
    yield Example(
        2, np.ones((1, 1, 2, 2, 2)), kernel_shape=[2, 2, 2], p=3, expect=[np.full((1, 1, 1, 1, 1), 2.0)]
    )
    yield Example(2, np.zeros((0, 2, 3), f), kernel_shape=[2], expect=[np.zeros((0, 2, 2), f)])
