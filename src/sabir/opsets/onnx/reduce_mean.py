"""ReduceMean: the mean over some axes."""

from collections.abc import Iterator
from math import prod

import ml_dtypes
import numpy as np

from sabir.opsets.families import reductions
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

reduce_mean = Operator(
    "ReduceMean", summary="The sum over `axes`, divided by the number of elements: `sum(x) / n`."
)

T = Constraint("T", FLOATS, tensors("int32", "int64", "uint32", "uint64"))

v1 = reduce_mean.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[
        Output("reduced", T, "The means; those of integers are rounded toward zero.", differentiable=True)
    ],
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
        Input("data", T, "A tensor of any shape.", differentiable=True),
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


def mean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    count = prod(x.shape[axis] for axis in axes)
    wide = np.asarray(x.sum(axes, dtype=reductions.accumulator(x.dtype), keepdims=keepdims))
    if x.dtype.kind not in "iu":
        return (wide / count).astype(x.dtype, copy=False)
    if not count:
        return wide.astype(x.dtype)
    quotient, rest = np.divmod(wide, wide.dtype.type(count))
    return (quotient + ((rest != 0) & (wide < 0))).astype(x.dtype)


v1.infer(reductions.infer_attribute())
v1.evaluate(reductions.over_attribute(mean))
v18.infer(reductions.infer_input())
v18.evaluate(reductions.over_input(mean))
v18.upgrade(reductions.to_input("ReduceMean"))
v18.downgrade(reductions.to_attribute("ReduceMean"))


@reduce_mean.examples
def examples() -> Iterator[Example]:
    x = [[[1.0, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]]
    last, both = [[2, 6], [0, 2]], np.float32(2.5)  # by hand
    for opset in (1, 11, 13):
        yield Example(opset, x, axes=[2], keepdims=0, expect=[last])
        yield Example(opset, x, expect=[both.reshape(1, 1, 1)])
    yield Example(11, x, axes=[-1, 1], expect=[[[[4]], [[1]]]])
    yield Example(18, x, [-1], keepdims=0, expect=[last])
    yield Example(18, x, [0, 2], expect=[[[[1], [4]]]])
    yield Example(18, x, expect=[both.reshape(1, 1, 1)])
    yield Example(18, x, [], keepdims=0, expect=[both])
    yield Example(18, x, [], noop_with_empty_axes=1, expect=[x])
    yield Example(18, x, None, keepdims=0, noop_with_empty_axes=1, expect=[x])
    yield Example(18, np.float64(3), expect=[3])
    yield Example(18, np.zeros((2, 0), np.float32), [1], expect=[np.full((2, 1), np.nan, np.float32)])
    yield Example(18, np.zeros((0, 2), np.float16), [1], expect=[np.zeros((0, 1), np.float16)])
    for kind in (np.float16, ml_dtypes.bfloat16):  # the sums are beyond float16 and what bfloat16 counts to
        yield Example(13, np.full(400, 200, kind), expect=[[200]])
    yield Example(13, np.array([[1, -4], [-3, 3]], np.int32), axes=[1], keepdims=0, expect=[[-1, 0]])
    yield Example(1, np.array([2**31 - 1, 2**31 - 3], np.int32), expect=[[2**31 - 2]])
    yield Example(18, np.array([2**63, 2], np.uint64), expect=[[2**62 + 1]])
