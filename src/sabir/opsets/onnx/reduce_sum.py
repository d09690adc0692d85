"""ReduceSum: the sum over some axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import add
from sabir.opsets.families import reductions
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

reduce_sum = Operator("ReduceSum", summary="The sum over `axes`; no elements have the sum 0.")

T = Constraint("T", FLOATS, tensors("int32", "int64", "uint32", "uint64"))

v1 = reduce_sum.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("reduced", T, "The sums; those of integers wrap.", differentiable=True)],
    attributes=[
        Attribute("keepdims", "int", "1: the axes stay, with size 1; 0: they go.", default=1),
        Attribute("axes", "ints", "The axes to reduce; all of them where it is left out."),
    ],
)
v11 = v1.restate(11, "A negative axis counts from the back.")
v13 = v11.evolve(
    13,
    "`axes` moves from attribute to input; `noop_with_empty_axes` lets no axes mean none.",
    inputs=[
        *v11.inputs,
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
    widen={"T": BFLOAT16},
)


v1.infer(reductions.infer_attribute(add))
v1.evaluate(reductions.over_attribute(reductions.total))
v13.infer(reductions.infer_input(add))
v13.evaluate(reductions.over_input(reductions.total))
v13.upgrade(reductions.to_input("ReduceSum"))
v13.downgrade(reductions.to_attribute("ReduceSum"))


@reduce_sum.examples
def examples() -> Iterator[Example]:
    x = [[[1.0, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]]
    last = np.array([[6, 18], [0, 6]], np.float32)  # by hand, like the other two
    whole = np.float32(30)
    ends = [[[6], [24]]]
    for opset in (1, 11):
        yield Example(opset, x, axes=[2], keepdims=0, expect=[last])
        yield Example(opset, x, axes=[0, 2], expect=[ends])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
    yield Example(11, x, axes=[-1], expect=[last[..., None]])
    for opset in (13,):
        yield Example(opset, x, [-1], keepdims=0, expect=[last])
        yield Example(opset, x, [0, 2], expect=[ends])
        yield Example(opset, x, [], keepdims=0, expect=[whole])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
        yield Example(opset, x, None, noop_with_empty_axes=1, keepdims=0, expect=[x])
        yield Example(opset, np.zeros((2, 0), np.float32), [1], expect=[np.full((2, 1), 0, np.float32)])
        yield Example(opset, np.zeros((0, 2), np.float16), [1], expect=[np.zeros((0, 1), np.float16)])
        yield Example(opset, np.float64(3), expect=[3])
    yield Example(13, np.array([2**31 - 1, 1], np.int32), keepdims=0, expect=[-(2**31)])
    yield Example(13, np.array([2**64 - 1, 3], np.uint64), expect=[[2]])
    yield Example(
        13,
        np.array([[1, np.inf], [np.nan, 1], [np.inf, -np.inf]]),
        [1],
        keepdims=0,
        expect=[[np.inf, np.nan, np.nan]],
    )
    yield Example(13, np.zeros((0, 3), np.int64), expect=[np.zeros((1, 1), np.int64)])
    for kind in (np.float16, ml_dtypes.bfloat16):  # counted in the half itself, the sum would end below
        yield Example(13, np.ones(3000, kind), expect=[[3000]])
