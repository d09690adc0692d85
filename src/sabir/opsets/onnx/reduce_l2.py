"""ReduceL2: the L2 norm over some axes."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import element
from sabir.ir import Builder, Value
from sabir.opsets.families import casting, reductions
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

reduce_l2 = Operator("ReduceL2", summary="The root of the sum of squares over `axes`: `sqrt(sum(x * x))`.")

T = Constraint("T", FLOATS, tensors("int32", "int64", "uint32", "uint64"))

v1 = reduce_l2.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("reduced", T, "The norms; those of integers are cut toward zero.", differentiable=True)],
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


def norm(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    """Compute integers in float64, where their squares do not wrap."""
    wide = x.astype(np.float64) if x.dtype.kind in "iu" else widened(x)
    norms = np.sqrt(reductions.total(np.square(wide), axes, keepdims))
    return casting.converted(norms, element(x.dtype))


v1.infer(reductions.infer_attribute())
v1.evaluate(reductions.over_attribute(norm))
v18.infer(reductions.infer_input())
v18.evaluate(reductions.over_input(norm))
v18.upgrade(reductions.to_input("ReduceL2"))
v18.downgrade(reductions.to_attribute("ReduceL2"))


@v18.body
def body(
    b: Builder, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
) -> Value:
    wide = reductions.as_floats(b, data)
    options: dict[str, Any] = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
    return reductions.as_before(b, b.Sqrt(b.ReduceSum(b.Mul(wide, wide), axes, **options)), data)


@reduce_l2.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]], np.float32)
    last = np.array(np.sqrt([[14, 122], [2, 12]]), np.float32)  # by hand, like the other two
    whole = np.float32(np.sqrt(150))
    ends = np.array(np.sqrt([[[16], [134]]]), np.float32)
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
        yield Example(opset, x, None, noop_with_empty_axes=1, keepdims=0, expect=[np.abs(x)])
        yield Example(
            opset, np.zeros((2, 0), np.float32), np.array([1]), expect=[np.full((2, 1), 0, np.float32)]
        )
        yield Example(
            opset, np.zeros((0, 2), np.float16), np.array([1]), expect=[np.zeros((0, 1), np.float16)]
        )
        yield Example(opset, np.float64(3), expect=[np.float64(3)])
    yield Example(18, np.array([60000, -80000], np.int32), keepdims=0, expect=[np.int32(100000)])
    yield Example(
        18,
        np.array([[3, 4], [1, 2]], np.uint64),
        np.array([1]),
        keepdims=0,
        expect=[np.array([5, 2], np.uint64)],
    )
    yield Example(
        18,
        np.array([[-np.inf, 1], [np.nan, 1]]),
        np.array([1]),
        keepdims=0,
        expect=[np.array([np.inf, np.nan])],
    )
    for kind in (np.float16, ml_dtypes.bfloat16):  # the squares are beyond float16
        yield Example(18, np.array([3072, -4096], kind), expect=[np.array([5120], kind)])
