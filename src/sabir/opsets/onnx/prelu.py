"""PRelu: each element, multiplied by a slope where it is below 0."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, may_be_equal
from sabir.loops import Expression
from sabir.opsets.families.numbers import broadcasting
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS, widened
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.shapes import broadcast
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
)

prelu = Operator("PRelu", summary="`X` where it is 0 or above, `slope * X` below.")

T = Constraint("T", FLOATS)

v1 = prelu.first(
    1,
    inputs=[
        Input("X", T, "A tensor of any shape.", differentiable=True),
        Input("slope", T, "The slopes below 0, which are broadcast to X.", differentiable=True),
    ],
    outputs=[Output("Y", T, "The shape of X.", differentiable=True)],
    attributes=[Attribute("consumed_inputs", "ints", legacy=True)],
)
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v7 = v6.evolve(7, "Broadcasts `slope` to X as numpy does; before, it had one number, or one per channel.")
v9 = v7.widen(9, T=LARGE_INTEGERS)
v16 = v9.widen(16, T=BFLOAT16)

_CHANNELS = 1  # the axis


@v1.infer
def infer_by_channel(x: TensorType, slope: TensorType, /) -> TensorType:
    return broadcasting.one_way()(x, slope, broadcast=1, axis=_CHANNELS)


@v7.infer
def infer(x: TensorType, slope: TensorType, /) -> TensorType:
    common = broadcast(x.shape, slope.shape)
    if x.shape is not None and common is not None:
        grown = len(common) > len(x.shape)
        if grown or any(not may_be_equal(a, b) for a, b in zip(x.shape, common, strict=True)):
            raise InferenceError(f"{slope} cannot be broadcast to {x}")
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate_by_channel(x: Array, slope: Array, /) -> Array:
    return evaluate(x, broadcasting.fitted(x, slope, 1, _CHANNELS))


@v7.evaluate
def evaluate(x: Array, slope: Array, /) -> Array:
    if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise ValueError(f"a slope of shape {list(slope.shape)} does not broadcast to {list(x.shape)}")
    wide = widened(x)
    return np.where(wide < 0, wide * widened(slope), wide).astype(x.dtype, copy=False)


@v7.lower
def lower(x: Expression, slope: Expression, /) -> Expression:
    return loops.where(loops.apply("lt", x, 0), loops.apply("mul", x, slope), x)


@v1.lower
def lower_by_channel(x: Expression, slope: Expression, /) -> Expression:
    return lower(x, broadcasting.fitted_expression(x, slope, 1, _CHANNELS))


@v7.upgrade
def upgrade(b: Builder, x: Value, slope: Value, /) -> Value:
    return broadcasting.upgraded("PRelu")(b, x, slope, broadcast=1, axis=_CHANNELS)


@v7.downgrade
def downgrade(b: Builder, x: Value, slope: Value, /) -> Value:
    wide, narrow = (v.type.shape if isinstance(v.type, TensorType) else None for v in (x, slope))
    if narrow is not None and all(d == 1 for d in narrow):
        return b.PRelu(x, slope)
    if wide is None or narrow is None:
        raise Unconvertible("a rank is unknown, and PRelu:6 takes one slope, or one for each channel")
    channels = _CHANNELS - len(wide) + len(narrow)
    others = [i for i in range(len(narrow)) if i != channels]
    if any(narrow[i] != 1 for i in others):
        raise Unconvertible("PRelu:6 takes one slope, or one for each channel")
    return b.PRelu(x, b.Squeeze(slope, axes=others) if others else slope)


@v16.body
def body(b: Builder, x: Value, slope: Value, /) -> Value:
    return b.Where(Numbers.like(b, x).op("Less", x, 0), b.Mul(slope, x), x)


@v16.gradient
def gradient(g: Gradient, x: Value, slope: Value, /) -> tuple[Value, Value]:
    """At 0 it is the slope, as in PyTorch."""
    above = g.Greater(x, 0)
    return g.Where(above, g.dy, g.Mul(g.dy, slope)), g.fit(g.Where(above, 0, g.Mul(g.dy, x)), slope)


@prelu.examples
def examples() -> Iterator[Example]:
    x = np.array([[[-1, 2], [-3, 4]], [[5, -6], [np.nan, -8]]], np.float32)
    one, each = np.array([0.5], np.float32), np.array([0.5, 2], np.float32)
    by_one = np.array([[[-0.5, 2], [-1.5, 4]], [[5, -3], [np.nan, -4]]], np.float32)
    by_channel = np.array([[[-0.5, 2], [-6, 4]], [[5, -3], [np.nan, -16]]], np.float32)
    by_column = np.array([[[-0.5, 2], [-1.5, 4]], [[5, -12], [np.nan, -16]]], np.float32)
    for opset in (1, 6, 7, 9, 16):
        columns = by_channel if opset < v7.since else by_column
        for kind in (np.float32, np.float64, np.float16):
            yield Example(opset, x.astype(kind), one.astype(kind), expect=[by_one.astype(kind)])
            yield Example(opset, x.astype(kind), each.astype(kind), expect=[columns.astype(kind)])
        yield Example(opset, -4, one.reshape(()), expect=[-2])
        yield Example(opset, np.zeros((0, 3), np.float32), one, expect=[np.zeros((0, 3), np.float32)])
    for opset in (7, 9, 16):
        yield Example(opset, x, each.reshape(2, 1), expect=[by_channel])
        yield Example(opset, x, each.reshape(1, 2, 1), expect=[by_channel])
        yield Example(opset, x, np.full_like(x, 0.5), expect=[by_one])
    for opset in (9, 16):
        signed = np.array([-3, 4, -(2**31)], np.int32)
        yield Example(opset, signed, 3, expect=[[-9, 4, -(2**31)]])
        unsigned = np.array([3, 2**64 - 1], np.uint64)
        yield Example(opset, unsigned, 2, expect=[unsigned])
    brain = ml_dtypes.bfloat16
    yield Example(16, x.astype(brain), each.astype(brain), expect=[by_column.astype(brain)])
