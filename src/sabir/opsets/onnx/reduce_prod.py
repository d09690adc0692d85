"""ReduceProd: the product over some axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import mul
from sabir.opsets.families import reductions
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

reduce_prod = Operator("ReduceProd", summary="The product over `axes`; no elements have the product 1.")

T = Constraint("T", FLOATS, tensors("int32", "int64", "uint32", "uint64"))

v1 = reduce_prod.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("reduced", T, "The products; those of integers wrap.", differentiable=True)],
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


def product(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    kind = x.dtype if x.dtype.kind in "iu" else reductions.accumulator(x.dtype)
    return np.multiply.reduce(x, axis=axes, dtype=kind, keepdims=keepdims).astype(x.dtype, copy=False)


v1.infer(reductions.infer_attribute(mul))
v1.evaluate(reductions.over_attribute(product))
v18.infer(reductions.infer_input(mul))
v18.evaluate(reductions.over_input(product))
v18.upgrade(reductions.to_input("ReduceProd"))
v18.downgrade(reductions.to_attribute("ReduceProd"))


@reduce_prod.examples
def examples() -> Iterator[Example]:
    x = [[[1.0, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]]
    last = np.array([[6, 180], [0, 8]], np.float32)  # by hand, like the other two
    whole = np.float32(0)
    ends = [[[0], [1440]]]
    for opset in (1, 11, 13):
        yield Example(opset, x, axes=[2], keepdims=0, expect=[last])
        yield Example(opset, x, axes=[0, 2], expect=[ends])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
    yield Example(11, x, axes=[-1], expect=[last[..., None]])
    for opset in (18,):
        yield Example(opset, x, [-1], keepdims=0, expect=[last])
        yield Example(opset, x, [0, 2], expect=[ends])
        yield Example(opset, x, [], keepdims=0, expect=[whole])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
        yield Example(opset, x, None, noop_with_empty_axes=1, keepdims=0, expect=[x])
        yield Example(opset, np.zeros((2, 0), np.float32), [1], expect=[np.full((2, 1), 1, np.float32)])
        yield Example(opset, np.zeros((0, 2), np.float16), [1], expect=[np.zeros((0, 1), np.float16)])
        yield Example(opset, np.float64(3), expect=[3])
    yield Example(18, np.array([2**16, 2**16, 5], np.int32), keepdims=0, expect=[0])
    yield Example(18, np.array([2**63 + 1, 3], np.uint64), keepdims=0, expect=[2**63 + 3])
    yield Example(18, np.array([[np.inf, -1], [np.inf, 0]]), [1], keepdims=0, expect=[[-np.inf, np.nan]])
    yield Example(18, np.zeros((0, 3), np.int64), keepdims=0, expect=[1])
    for kind in (np.float16, ml_dtypes.bfloat16):  # on its way the product is beyond float16
        yield Example(18, np.array([1024, 1024, 1 / 1024], kind), expect=[[1024]])
