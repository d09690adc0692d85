"""ReduceMin: the least element over some axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import dim_min
from sabir.opsets.families import reductions
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    tensors,
)

reduce_min = Operator("ReduceMin", summary="The least element over `axes`; NaN where one of them is NaN.")

T = Constraint("T", FLOATS, tensors("int32", "int64", "uint32", "uint64"))

v1 = reduce_min.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[
        Output(
            "reduced",
            T,
            "The minima; of no elements, infinity or the greatest value of the type.",
            differentiable=True,
        )
    ],
    attributes=[
        Attribute("keepdims", "int", "1: the axes stay, with size 1; 0: they go.", default=1),
        Attribute("axes", "ints", "The axes to reduce; all of them where it is left out."),
    ],
)
v11 = v1.restate(11, "A negative axis counts from the back.")
v12 = v11.widen(12, T=tensors("int8", "uint8"))
v13 = v12.widen(13, T=BFLOAT16)
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
v20 = v18.widen(20, T=BOOL)


def extreme(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    return reductions.extreme(np.minimum, x, axes, keepdims)


v1.infer(reductions.infer_attribute(dim_min))
v1.evaluate(reductions.over_attribute(extreme))
v18.infer(reductions.infer_input(dim_min))
v18.evaluate(reductions.over_input(extreme))
v18.upgrade(reductions.to_input("ReduceMin"))
v18.downgrade(reductions.to_attribute("ReduceMin"))


@reduce_min.examples
def examples() -> Iterator[Example]:
    x = [[[1.0, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]]
    last = np.array([[1, 4], [-1, 2]], np.float32)  # by hand, like the other two
    whole = np.float32(-1)
    ends = [[[-1], [2]]]
    for opset in (1, 11, 12, 13):
        yield Example(opset, x, axes=[2], keepdims=0, expect=[last])
        yield Example(opset, x, axes=[0, 2], expect=[ends])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
    yield Example(11, x, axes=[-1], expect=[last[..., None]])
    for opset in (18, 20):
        yield Example(opset, x, [-1], keepdims=0, expect=[last])
        yield Example(opset, x, [0, 2], expect=[ends])
        yield Example(opset, x, [], keepdims=0, expect=[whole])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
        yield Example(opset, x, None, noop_with_empty_axes=1, keepdims=0, expect=[x])
        yield Example(opset, np.zeros((2, 0), np.float32), [1], expect=[np.full((2, 1), np.inf, np.float32)])
        yield Example(opset, np.zeros((0, 2), np.float16), [1], expect=[np.zeros((0, 1), np.float16)])
        yield Example(opset, np.float64(3), expect=[3])
    rows = np.array([[1, 2, np.nan], [np.nan, 1, 2], [-np.inf, -1, np.inf]], np.float32)
    found = np.array([np.nan, np.nan, -np.inf], np.float32)
    for kind in (
        np.float16,
        np.float32,
        np.float64,
        ml_dtypes.bfloat16,
    ):  # where the NaN stands does not matter
        yield Example(13, rows.astype(kind), axes=[1], keepdims=0, expect=[found.astype(kind)])
        yield Example(20, rows.astype(kind), [1], keepdims=0, expect=[found.astype(kind)])
    yield Example(12, np.array([-128, 127, 5], np.int8), expect=[[-128]])
    yield Example(18, np.array([2**64 - 1, 3], np.uint64), keepdims=0, expect=[3])
    for kind in (np.int8, np.uint8, np.int32, np.uint64):
        end = np.full(2, np.iinfo(kind).max, kind)
        yield Example(20, np.zeros((2, 0), kind), [1], keepdims=0, expect=[end])
    truth = [[True, False], [True, True], [False, False]]
    yield Example(20, truth, [1], keepdims=0, expect=[[False, True, False]])
    yield Example(20, np.zeros((1, 0), bool), [1], expect=[[[True]]])
