"""ReduceLogSumExp: the logarithm of the sum of exponentials over some axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import element
from sabir.ir import Builder, Value
from sabir.opsets.families import casting, reductions
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

reduce_log_sum_exp = Operator(
    "ReduceLogSumExp", summary="The logarithm of the sum of exponentials over `axes`: `log(sum(exp(x)))`."
)

T = Constraint("T", FLOATS, tensors("int32", "int64", "uint32", "uint64"))

v1 = reduce_log_sum_exp.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("reduced", T, "The logarithms; -infinity of no elements.", differentiable=True)],
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
FLOATING = Constraint("T", FLOATS, BFLOAT16)
v28 = v18.evolve(
    28,
    "Integers are no longer admitted.",
    inputs=[Input("data", FLOATING, "A tensor of any shape.", differentiable=True), v18.inputs[1]],
    outputs=[Output("reduced", FLOATING, "The logarithms; -infinity of no elements.", differentiable=True)],
)


def log_sum_exp(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    """Compute integers in float64, and convert their logarithms as Cast does."""
    wide = x.astype(np.float64) if x.dtype.kind in "iu" else widened(x)
    return casting.converted(np.asarray(reductions.log_sum_exp(wide, axes, keepdims)), element(x.dtype))


v1.infer(reductions.infer_attribute())
v1.evaluate(reductions.over_attribute(log_sum_exp))
v18.infer(reductions.infer_input())
v18.evaluate(reductions.over_input(log_sum_exp))
v18.upgrade(reductions.to_input("ReduceLogSumExp"))
v18.downgrade(reductions.to_attribute("ReduceLogSumExp"))
v28.upgrade(reductions.without_integers("ReduceLogSumExp"))
v28.downgrade(reductions.same("ReduceLogSumExp"))


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


@reduce_log_sum_exp.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]], np.float32)
    last = np.array(
        [[np.logaddexp.reduce(r) for r in m] for m in x], np.float32
    )  # by hand, like the other two
    whole = np.float32(np.logaddexp.reduce(x.ravel()))
    ends = np.array([[[np.logaddexp.reduce(x[:, r].ravel())] for r in (0, 1)]], np.float32)
    for opset in (1, 11, 13):
        yield Example(opset, x, axes=[2], keepdims=0, expect=[last])
        yield Example(opset, x, axes=[0, 2], expect=[ends])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
    yield Example(11, x, axes=[-1], expect=[last[..., None]])
    for opset in (18, 28):
        yield Example(opset, x, [-1], keepdims=0, expect=[last])
        yield Example(opset, x, [0, 2], expect=[ends])
        yield Example(opset, x, [], keepdims=0, expect=[whole])
        yield Example(opset, x, expect=[whole.reshape(1, 1, 1)])
        yield Example(opset, x, None, noop_with_empty_axes=1, keepdims=0, expect=[x])
        yield Example(opset, np.zeros((2, 0), np.float32), [1], expect=[np.full((2, 1), -np.inf, np.float32)])
        yield Example(opset, np.zeros((0, 2), np.float16), [1], expect=[np.zeros((0, 1), np.float16)])
        yield Example(opset, np.float64(3), expect=[3])
    yield Example(18, np.array([[3, 3], [5, -9]], np.int32), [1], keepdims=0, expect=[[3, 5]])
    extremes = np.array([
        [1000, 1000],
        [-1000, -1000],
        [-np.inf, -np.inf],
        [np.inf, 1],
        [np.nan, 1],
        [np.inf, -np.inf],
    ])
    logs = np.array([1000 + np.log(2), np.log(2) - 1000, -np.inf, np.inf, np.nan, np.inf])  # by hand
    for opset in (18, 28):
        yield Example(opset, extremes, [1], keepdims=0, expect=[logs])
    for kind in (np.float16, ml_dtypes.bfloat16):
        yield Example(
            28, np.full(1024, 20, kind), expect=[np.array([20 + np.log(1024)], kind)], tolerance=1e-2
        )
