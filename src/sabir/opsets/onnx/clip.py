"""Clip: each element limited to an interval."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Builder, Dim, TensorType, Value, dim_max, dim_min
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

clip = Operator("Clip", summary="Each element limited to [min, max]: `min(max(x, min), max)`; NaN stays NaN.")

T = Constraint("T", FLOATS)

v1 = clip.first(
    1,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The limited elements, in the shape of the input.", differentiable=True)],
    attributes=[
        Attribute("consumed_inputs", "ints", legacy=True),
        Attribute("max", "float", "The upper limit, which takes precedence."),
        Attribute("min", "float", "The lower limit."),
    ],
)
v6 = v1.evolve(
    6,
    "The limits default to those of float32; drops the legacy hint `consumed_inputs`.",
    drop=["consumed_inputs"],
    defaults={"max": 3.4028235e38, "min": -3.4028235e38},
)
v11 = v6.evolve(
    11,
    "The limits become inputs.",
    inputs=[
        Input("input", T, "A tensor of any shape.", differentiable=True),
        Input("min", T, "The lower limit, a scalar; none if absent.", optional=True, differentiable=False),
        Input("max", T, "The upper limit, a scalar; takes precedence.", optional=True, differentiable=False),
    ],
    drop=["max", "min"],
)
v12 = v11.widen(12, T=NUMBERS)
v13 = v12.widen(13, T=BFLOAT16)


@v1.infer
def infer_from_attributes(x: TensorType, /) -> TensorType:
    return TensorType(x.element, x.shape)


@v11.infer
def infer(x: TensorType, low: TensorType | None = None, high: TensorType | None = None, /) -> TensorType:
    # old exporters write limits of the shape [1], which onnxruntime accepts
    check_one("min", low)
    check_one("max", high)
    limits = [t for t in (low, high) if t is not None]
    if not limits:
        return TensorType(x.element, x.shape, x.known)
    if any(t.known is None or t.size != 1 for t in limits):
        return TensorType(x.element, x.shape)

    def limited(value: Dim, *ends: Dim) -> Dim:
        if low is not None:
            value = dim_max(value, ends[0])
        return value if high is None else dim_min(value, ends[-1])

    return arithmetic.limited(limited, x, *(TensorType(t.element, (), t.known) for t in limits))


@v1.evaluate
def evaluate_from_attributes(x: Array, /, *, min: float | None, max: float | None) -> Array:  # ruff: ignore[builtin-argument-shadowing]  the attributes' names
    limits = (None if limit is None else np.asarray(limit, x.dtype) for limit in (min, max))
    return evaluate(x, *limits)


@v11.evaluate
def evaluate(x: Array, low: Array | None = None, high: Array | None = None, /) -> Array:
    check_one("min", low)
    check_one("max", high)
    if low is not None:
        x = np.maximum(x, low.reshape(()))
    return x if high is None else np.minimum(x, high.reshape(()))


@v11.lower
def lower(x: Expression, low: Expression | None = None, high: Expression | None = None, /) -> Expression:
    return kernels.limited(x, *(None if limit is None else loops.reshape(limit, ()) for limit in (low, high)))


@v1.lower
def lower_from_attributes(x: Expression, /, *, min: float | None, max: float | None) -> Expression:  # ruff: ignore[builtin-argument-shadowing]  the attributes' names
    return kernels.limited(x, min, max)


@v13.body
def body(b: Builder, x: Value, low: Value | None = None, high: Value | None = None, /) -> Value:
    for op, limit in (("Max", low), ("Min", high)):
        if limit is not None:
            x = b.op(op, x, b.Reshape(limit, b.initializer("scalar", np.zeros(0, np.int64))))
    return b.Identity(x) if low is None and high is None else x


@v6.upgrade
@v6.downgrade
def with_explicit_limits(b: Builder, x: Value, /, *, min: float | None, max: float | None) -> Value:  # ruff: ignore[builtin-argument-shadowing]  the attributes' names
    return b.Clip(x, min=-np.inf if min is None else min, max=np.inf if max is None else max)


@v11.upgrade
def limits_to_inputs(b: Builder, x: Value, /, *, min: float, max: float) -> Value:  # ruff: ignore[builtin-argument-shadowing]  the attributes' names
    if not isinstance(x.type, TensorType) or not x.type.element.number:
        raise Unconvertible("the element type is unknown, and Clip:11 takes its limits in it")
    dtype = x.type.element.dtype
    with np.errstate(over="ignore"):
        low, high = np.asarray(min, dtype), np.asarray(max, dtype)
    return b.Clip(x, b.initializer("min", low), b.initializer("max", high))


@v11.downgrade
def limits_to_attributes(
    b: Builder, x: Value, low: Value | None = None, high: Value | None = None, /
) -> Value:
    return b.Clip(x, min=_limit(low, -np.inf), max=_limit(high, np.inf))


def _limit(value: Value | None, absent: float) -> float:
    if value is None:
        return absent
    known = value.type.known if isinstance(value.type, TensorType) else None
    if not known or not isinstance(known[0], float):
        raise Unconvertible("a limit is computed at run time, and Clip:6 needs it in the model")
    if np.float32(known[0]).item().hex() != known[0].hex():
        raise Unconvertible(f"the limit {known[0]} is no float32, as Clip:6 requires")
    return known[0]


@v13.gradient
def gradient(
    g: Gradient, x: Value, low: Value | None = None, high: Value | None = None, /
) -> tuple[Value | None, ...]:
    """At a limit that `x` equals, the gradient is that of `x`, as in PyTorch."""
    dx, d_low, d_high = g.dy, None, None
    if low is not None:
        floor = g.Reshape(low, [])
        below = g.Less(x, floor)
        dx = g.Where(below, 0, dx)
        x = g.Max(x, floor)
        d_low = g.Where(below, g.dy, 0)
    if high is not None:
        above = g.Greater(x, g.Reshape(high, []))
        dx = g.Where(above, 0, dx)
        d_low = None if d_low is None else g.Where(above, 0, d_low)
        d_high = g.Where(above, g.dy, 0)
    return dx, _summed(g, d_low, low), _summed(g, d_high, high)


def _summed(g: Gradient, d: Value | None, limit: Value | None) -> Value | None:
    """Return the sum of all elements, in the shape of a limit."""
    return None if d is None or limit is None else g.Reshape(g.ReduceSum(d, keepdims=0), g.sizes(limit))


@clip.examples
def examples() -> Iterator[Example]:
    x = np.array([[-2.0, -0.5, 0.5], [2.0, np.nan, 1.0]], np.float32)
    low, high = np.float32(-1), 1
    both = np.array([[-1.0, -0.5, 0.5], [1.0, np.nan, 1.0]], np.float32)
    positive = [[0.0, 0.0, 0.5], [2.0, np.nan, 1.0]]
    for opset in (1, 6):
        yield Example(opset, x, min=-1.0, max=1.0, expect=[both])
        yield Example(opset, x, min=0.0, expect=[positive])
        yield Example(opset, x.astype(np.float16), max=1.0, min=-1.0, expect=[both.astype(np.float16)])
        yield Example(opset, x, expect=[x])
    infinite, most = [np.inf, -np.inf], np.finfo(np.float32).max
    yield Example(1, infinite, expect=[infinite])
    yield Example(6, infinite, expect=[np.array([most, -most], np.float32)])
    for opset in (11, 12, 13):
        yield Example(opset, x, low, high, expect=[both])
        yield Example(opset, x, 0, expect=[positive])
        yield Example(opset, x, None, [0.5], expect=[np.minimum(x, 0.5)])
        yield Example(opset, infinite, expect=[infinite])
        yield Example(opset, np.zeros((0, 2)), 0.1, expect=[np.zeros((0, 2))])
        # limits in the wrong order: the upper one takes precedence
        yield Example(opset, 0, high, low, expect=[low])
    sizes = [0, 7, 100]
    yield Example(12, sizes, 1, 64, expect=[[1, 7, 64]])
    yield Example(12, np.array([0, 255], np.uint8), 3, expect=[[3, 255]])
    halves = np.array([1, -2], ml_dtypes.bfloat16)
    yield Example(13, halves, halves[:1].reshape(()), expect=[np.ones(2, ml_dtypes.bfloat16)])
