"""Range: equally spaced numbers from a start to a limit."""

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, FLOAT, INT64
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.indexing import ranges
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes import contents, extents
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


v11.infer(ranges.infer)
v11.evaluate(ranges.evaluate)


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
    if len(known) == len(kinds) and ranges.count(*map(_wide_float, known)) <= extents.MOST:
        return b.initializer("numbers", ranges.evaluate(*known))
    return _spaced(b, start, limit, delta, FLOAT.number, lambda count: extents.counted(b, count))


def _wide_float(x: Array) -> Array:
    return ranges.widened(x, FLOAT.number)


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
