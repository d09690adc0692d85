"""ReduceSumSquare: the sum of squares over some axes."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families import halves, reductions
from sabir.opsets.families.arithmetic import widened
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
    tensors,
)

reduce_sum_square = Operator("ReduceSumSquare", summary="The sum of squares over `axes`: `sum(x * x)`.")

T = Constraint("T", FLOATS, tensors("int32", "int64", "uint32", "uint64"))

v1 = reduce_sum_square.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("reduced", T, "The sums; those of integers wrap.", differentiable=True)],
    attributes=[
        Attribute("keepdims", "int", "1: the axes stay, with size 1; 0: they go.", default=1),
        Attribute("axes", "ints", "The axes to reduce; all of them where it is left out."),
    ],
)
v11 = v1.restate(11, "A negative axis counts from the back.")
v13 = v11.widen(13, T=BFLOAT16)
v18 = v13.evolve(
    18,
    "`axes` moves from attribute to input; `noop_with_empty_axes` lets no axes mean none.",
    inputs=[
        *v13.inputs,
        Input(
            "axes",
            "tensor(int64)",
            "The axes to reduce, each in [-rank, rank-1].",
            optional=True,
            differentiable=False,
        ),
    ],
    drop=["axes"],
    add=[Attribute("noop_with_empty_axes", "int", "What no axes mean, 0: all of them, 1: none.", default=0)],
)


def sum_of_squares(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    return reductions.total(np.square(widened(x)), axes, keepdims).astype(x.dtype, copy=False)


v1.infer(reductions.infer_attribute())
v1.evaluate(reductions.over_attribute(sum_of_squares))
v18.infer(reductions.infer_input())
v18.evaluate(reductions.over_input(sum_of_squares))
v18.upgrade(reductions.to_input("ReduceSumSquare"))
v18.downgrade(reductions.to_attribute("ReduceSumSquare"))


@v18.body
def body(
    b: Builder, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
) -> Value:
    wide = halves.widened(b, data)
    options: dict[str, Any] = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
    return halves.rounded(b, b.ReduceSum(b.Mul(wide, wide), axes, **options), data)


@reduce_sum_square.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]], np.float32)
    last = np.array([[14, 122], [2, 12]], np.float32)  # by hand, like the other two
    whole = np.float32(150)
    ends = np.array([[[16], [134]]], np.float32)
    for opset in (1, 11, 13):
        yield Example(opset, x, axes=[2], keepdims=0, expect=[last])
        yield Example(opset, x, axes=[0, 2], expect=[ends])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
    yield Example(11, x, axes=[-1], expect=[last[..., None]])
    for opset in (18,):
        yield Example(opset, x, np.array([-1]), keepdims=0, expect=[last])
        yield Example(opset, x, np.array([0, 2]), expect=[ends])
        yield Example(opset, x, np.array([], np.int64), keepdims=0, expect=[whole])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
        yield Example(opset, x, None, noop_with_empty_axes=1, keepdims=0, expect=[x * x])
        yield Example(
            opset, np.zeros((2, 0), np.float32), np.array([1]), expect=[np.full((2, 1), 0, np.float32)]
        )
        yield Example(
            opset, np.zeros((0, 2), np.float16), np.array([1]), expect=[np.zeros((0, 1), np.float16)]
        )
        yield Example(opset, np.float64(3), expect=[np.float64(9)])
    yield Example(18, np.array([2**16, 3], np.int32), keepdims=0, expect=[np.int32(9)])
    yield Example(
        18,
        np.array([[-np.inf, 1], [np.nan, 1]]),
        np.array([1]),
        keepdims=0,
        expect=[np.array([np.inf, np.nan])],
    )
    for kind in (np.float16, ml_dtypes.bfloat16):
        yield Example(18, np.full(100, 25, kind), expect=[np.array([62500], kind)])
