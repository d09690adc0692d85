"""Range: equally spaced numbers from a start to a limit."""

import math
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import DOUBLE, FLOAT, INT64, element
from sabir.ir import Builder, Dim, Expr, Item, TensorType, Value, add, ceil_div, dim_max, mul, sub
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import as_dim, as_item
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes import contents, extents
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.families.shapes.sizes import allotted
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
    element_types,
    tensors,
)

arange = Operator(
    "Range",
    summary="`start + i * delta` for i from 0 up to `ceil((limit - start) / delta)`, the last excluded.",
)

T = Constraint("T", tensors("double", "float", "int16", "int32", "int64"))

v11 = arange.first(
    11,
    inputs=[
        Input("start", T, "The first number, in a 0-D tensor."),
        Input("limit", T, "The limit, which is excluded."),
        Input("delta", T, "The step, below 0 to count down; never 0."),
    ],
    outputs=[Output("output", T, "The numbers, 1-D; empty where `delta` has the wrong sign.")],
)
v27 = v11.extend(
    27,
    "Admits float16 and bfloat16, computed in the type that `stash_type` names.",
    attributes=[
        Attribute(
            "stash_type",
            "int",
            "The type in which float16 and bfloat16 are computed, 1: float, 11: double.",
            default=1,
            values=element_types(tensors("float", "double")),
        )
    ],
    widen={"T": FLOATS | BFLOAT16},
)


@v11.infer
def infer(start: TensorType, limit: TensorType, delta: TensorType, /, *, stash_type: int = 1) -> TensorType:
    _check_scalars(start, limit, delta)
    element_type = next((t.element for t in (start, limit, delta) if t.element.number), start.element)
    arrays = [contents.array_of(t) for t in (start, limit, delta)]
    scalars = [a for a in arrays if a is not None and a.size == 1]
    if len(scalars) == len(arrays):
        return TensorType(element_type, (_count(*(_wide(a, stash_type) for a in scalars)),))
    first, step = _item(start), _item(delta)
    y = TensorType(element_type, (_symbolic_count(first, _item(limit), step),))
    if not isinstance(y.size, int) or y.size > contents.MOST:
        return y
    numbers = (add(as_dim(first), mul(i, as_dim(step))) for i in range(y.size))
    return y.with_known(as_item(number, element_type) for number in numbers)


def _check_scalars(start: TensorType | Array, limit: TensorType | Array, delta: TensorType | Array) -> None:
    check_one("start", start)
    check_one("limit", limit)
    check_one("delta", delta)


def _item(t: TensorType) -> Item:
    return t.known[0] if t.known is not None and len(t.known) == 1 else None


def _symbolic_count(start: Item, limit: Item, delta: Item) -> Dim:
    if not isinstance(start, (int, Expr)) or not isinstance(limit, (int, Expr)) or not isinstance(delta, int):
        return None
    return None if delta == 0 else dim_max(0, ceil_div(sub(limit, start), delta))


@v11.evaluate
def evaluate(start: Array, limit: Array, delta: Array, /, *, stash_type: int = 1) -> Array:
    _check_scalars(start, limit, delta)
    first, last, step = (_wide(x, stash_type) for x in (start, limit, delta))
    count = _count(first, last, step)
    allotted([count], np.dtype(np.float64))
    if start.dtype.kind == "i":
        return (first + np.arange(count) * step).astype(start.dtype)
    return (float(first) + np.arange(count) * float(step)).astype(start.dtype)  # each rounded once


@v11.lower
def lower(
    start: Expression, limit: Expression, delta: Expression, /, *, stash_type: int = 1, call: Lowering
) -> Expression:
    """Count in int64 or double, as `evaluate` does; the limit is in the inferred size."""
    for name, x in (("start", start), ("limit", limit), ("delta", delta)):
        kernels.check_sizing(x, f"`{name}`")
    wide = "double" if start.is_float else "int64"
    first, step = (loops.cast(loops.reshape(x, ()), wide) for x in (start, delta))
    places = loops.cast(loops.count(call.shape(), 0), wide)
    return loops.cast(loops.apply("add", loops.apply("mul", places, step), first), start.element)


def _wide(x: Array, stash_type: int) -> Array:
    """Return a scalar in the type that it is computed in."""
    x = x.reshape(())
    if x.dtype.kind == "i":
        return x.astype(np.int64)
    if x.dtype.itemsize >= np.dtype(np.float32).itemsize:
        return x
    return x.astype(element(stash_type).dtype)


def _count(start: Array, limit: Array, delta: Array) -> int:
    """Return the number of steps: their distance in the type of the inputs, its quotient in double."""
    if delta == 0:
        raise InferenceError("`delta` cannot be 0")
    if start.dtype.kind == "i":
        return max(0, -((int(start) - int(limit)) // int(delta)))
    with np.errstate(over="ignore", invalid="ignore"):
        steps = float(limit - start) / float(delta)
    if not math.isfinite(steps):
        raise InferenceError(f"no number of steps of {delta} leads from {start} to {limit}")
    return max(0, math.ceil(steps))


@v11.body
def body(b: Builder, start: Value, limit: Value, delta: Value, /, *, stash_type: int = FLOAT.number) -> Value:
    """Count in double; the indices are a cumulative sum of ones."""

    def indices(count: Value) -> Value:
        ones = b.ConstantOfShape(count, value=np.ones(1, np.int64))
        return b.CumSum(ones, b.initializer("axis", np.array(0, np.int64)), exclusive=1)

    return _spaced(b, start, limit, delta, stash_type, indices)


def _spaced(
    b: Builder, start: Value, limit: Value, delta: Value, stash_type: int, indices: Callable[[Value], Value]
) -> Value:
    kind = element_of(start)
    wide = INT64 if kind.is_integer else DOUBLE
    near = DOUBLE.number if kind.is_integer else kind.number if kind.bits >= FLOAT.bits else stash_type
    distance = b.Sub(b.Cast(limit, to=near), b.Cast(start, to=near))
    steps = b.Ceil(b.Div(b.Cast(distance, to=DOUBLE.number), b.Cast(delta, to=DOUBLE.number)))
    row = b.initializer("row", np.ones(1, np.int64))
    count = b.Reshape(b.Cast(b.Relu(steps), to=INT64.number), row)
    offsets = b.Mul(b.Cast(indices(count), to=wide.number), b.Cast(delta, to=wide.number))
    return b.Cast(b.Add(b.Cast(start, to=wide.number), offsets), to=kind.number)


@v11.downgrade
def constant_or_counted(b: Builder, start: Value, limit: Value, delta: Value, /) -> Value:
    kinds = [v.type for v in (start, limit, delta)]
    known = [a for k in kinds if isinstance(k, TensorType) and (a := contents.array_of(k)) is not None]
    if len(known) == len(kinds) and _count(*map(_wide_float, known)) <= extents.MOST:
        return b.initializer("numbers", evaluate(*known))
    return _spaced(b, start, limit, delta, FLOAT.number, lambda count: extents.counted(b, count))


def _wide_float(x: Array) -> Array:
    return _wide(x, FLOAT.number)


@v11.gradient
def gradient(g: Gradient, start: Value, limit: Value, delta: Value, /) -> tuple[Value, Value, Value]:
    """Zero for the limit, which only tells how many numbers there are."""
    steps = g.Cast(g.Range(0, g.Size(g.dy), 1), to=element_of(start).number)
    return (
        g.ReduceSum(g.dy, keepdims=0),
        g.zeros(limit),
        g.ReduceSum(g.Mul(g.dy, steps), keepdims=0),
    )


@arange.examples
def examples() -> Iterator[Example]:
    for dtype in (np.int16, np.int32, np.int64, np.float32, np.float64):
        for start, limit, delta, numbers in ((3, 10, 3, [3, 6, 9]), (10, 4, -2, [10, 8, 6]), (5, 1, 2, [])):
            opset = 11 if limit > start else 27
            yield Example(opset, dtype(start), dtype(limit), dtype(delta), expect=[np.array(numbers, dtype)])
    tenth = np.float32(0.1)  # slightly above 0.1; three of them are still below 0.3 in float32
    yield Example(11, 0, 0.3, tenth, expect=[[0, 0.1, 0.2, 0.3]])
    yield Example(11, -(2**63), 2**63 - 1, 2**62, expect=[np.arange(-2, 2) * 2**62])
    # 2048 + 1 is 2048 in float16
    count = (np.float16(2046), 2056, 1)
    even = [2046, 2047, 2048, 2048, 2050, 2052, 2052, 2052, 2054, 2056]
    for stash in (1, 11):
        yield Example(27, *count, stash_type=stash, expect=[np.array(even, np.float16)])
    start, limit, delta = np.array([0, 1.5, 0.5], ml_dtypes.bfloat16)
    yield Example(27, start, limit, delta, expect=[[0, 0.5, 1]])
