"""QLinearSoftmax: normalised exponentials of quantized numbers, quantized again.

The exponentials are integers, as in onnxruntime: `e = round(unit * exp(x_scale * (x - max)))`. The result is
`e * floor(1 / y_scale) / sum(e)`, rounded. onnxruntime divides floats, so that its ties may fall either way;
here ties go up.
"""

import math
from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, FLOAT, INT32, element
from sabir.ir import Builder, TensorType, Value, product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.normalization import flattening
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.quantization import quantization, quantization_kernels, scaled
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.extents import shape_of, sizes
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

qlinear_softmax = Operator(
    "QLinearSoftmax",
    domain="com.microsoft",
    summary="`exp(x) / sum(exp(x))` along `axis` of `x`, which is `dequantize(X)`, quantized.",
    body_opset=18,
)

_BY_AXIS = 13  # the first opset in which Softmax normalises one axis
_MOST = float((1 << 23) - 1)  # the unit of exponentials
_MOST_SUM = float((1 << 32) - 1)

T = Constraint("T", tensors("int8", "uint8"))

v1 = qlinear_softmax.first(
    1,
    inputs=[
        Input("X", T, "A tensor of rank 1 or more."),
        *scaled.parameters("X_scale", "x_zero_point", T, "X"),
        *scaled.parameters("y_scale", "y_zero_point", T, "Y", optional=False),
    ],
    outputs=[Output("Y", T, "The input's shape.")],
    attributes=[
        Attribute(
            "axis", "int", "The axis to normalise; before opset 13 that and all later ones.", default=-1
        ),
        Attribute("opset", "int", "The opset whose Softmax is meant.", required=True),
    ],
)


@v1.infer
def infer(
    x: TensorType, x_scale: TensorType, x_zero: TensorType | None, y_scale: TensorType, y_zero: TensorType, /,
    *, axis: int, opset: int,
) -> TensorType:  # fmt: skip
    scaled.check(X=(x_scale, x_zero), Y=(y_scale, y_zero))
    return flattening.infer_axis(x, axis=axis)


def _normalised(axis: int, rank: int, opset: int) -> list[int]:
    """Return the axes over which the exponentials are added."""
    start = axis_in(axis, rank)
    return [start] if opset >= _BY_AXIS else [*range(start, rank)]


@v1.evaluate
def evaluate(
    x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array, /, *, axis: int, opset: int
) -> Array:
    hold(infer, x, x_scale, x_zero, y_scale, y_zero, axis=axis, opset=opset)
    if not x.size:
        return x
    axes = tuple(_normalised(axis, x.ndim, opset))
    unit = min(_MOST_SUM / math.prod(x.shape[a] for a in axes), _MOST)
    table = np.rint(unit * np.exp(np.arange(-255, 1) * np.float64(x_scale.reshape(()))))
    e = table[x.astype(np.int16) - x.max(axis=axes, keepdims=True) + np.int16(255)]
    total = e.sum(axis=axes, keepdims=True)
    steps = np.floor(np.float32(1) / y_scale.reshape(()))
    q = np.floor((e * np.float64(steps) + np.floor(total / 2)) / total)
    return quantization.saturated(np.asarray(q), y_zero.reshape(()), element(x.dtype))


@v1.lower
def lower(
    x: Expression, x_scale: Expression, x_zero: Expression | None, y_scale: Expression, y_zero: Expression, /,
    *, axis: int, opset: int,
) -> Expression:  # fmt: skip
    """The exponentials are read from a table, since few different ones exist."""
    only = quantization_kernels.only
    axes = _normalised(axis, x.rank, opset)
    count = product(x.shape[a] for a in axes)
    if count is None:
        raise NotLowered("the axes have too many elements")
    unit = loops.apply("min", loops.apply("div", _MOST_SUM, loops.sized("double", count)), _MOST)
    steps = loops.apply("sub", loops.cast(loops.count((256,), 0), "double"), 255.0)
    powers = loops.apply("exp", loops.apply("mul", steps, loops.cast(only(x_scale), "double")))
    table = loops.cast(loops.apply("round", loops.apply("mul", powers, unit)), "int32")
    wide = loops.cast(x, "int32")
    place = loops.apply("add", loops.apply("sub", wide, loops.reduce("max", wide, axes)), 255)
    e = loops.cast(loops.take(table, place, 0), "double")
    total = loops.reduce("sum", e, axes)
    levels = loops.cast(loops.apply("floor", loops.apply("reciprocal", only(y_scale))), "double")
    half = loops.apply("floor", loops.apply("mul", total, 0.5))
    q = loops.apply("floor", loops.apply("div", loops.apply("fma", e, levels, half), total))
    return quantization_kernels.saturated(loops.cast(q, "float"), only(y_zero), x.element)


@v1.body
def body(
    b: Builder, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value, /, *,
    axis: int, opset: int,
) -> Value:  # fmt: skip
    axes = _normalised(axis, len(shape_of("X", x)), opset)
    numbers = Numbers(b, DOUBLE)
    wide = b.Cast(x, to=INT32.number)
    below = b.Cast(b.Sub(wide, reductions.call(b, "ReduceMax", wide, axes)), to=DOUBLE.number)
    powers = b.Exp(b.Mul(below, b.Cast(graphs.single(b, x_scale), to=DOUBLE.number)))
    e = b.Round(b.Mul(powers, _unit(b, x, axes)))
    total = reductions.call(b, "ReduceSum", e, axes)
    levels = b.Cast(b.Floor(b.Reciprocal(graphs.single(b, y_scale))), to=DOUBLE.number)
    q = b.Floor(b.Div(b.Add(b.Mul(e, levels), b.Floor(numbers.op("Div", total, 2))), total))
    return graphs.saturated(b, b.Cast(q, to=FLOAT.number), graphs.single(b, y_zero), element_of(x))


def _unit(b: Builder, x: Value, axes: list[int]) -> Value:
    """Return the exponential of 0 as an integer, in a double: so large that 32 bits represent the sums."""
    count = b.Cast(b.ReduceProd(sizes(b, x, axes), keepdims=0), to=DOUBLE.number)
    numbers = Numbers(b, DOUBLE)
    return b.Min(b.Div(numbers(_MOST_SUM), count), numbers(_MOST))


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@qlinear_softmax.examples
def examples() -> Iterator[Example]:
    f, rng = np.float32, np.random.default_rng(0)
    for dtype in (np.uint8, np.int8):
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max + 1, (3, 4, 5)).astype(dtype)
        to = f(1 / 256), dtype(limits.min)
        for opset in (12, 13):
            for axis in (0, 1, -1):
                yield Example(1, x, f(0.05), dtype(9), *to, axis=axis, opset=opset)
        long = np.rint(rng.standard_normal((4, 1000)) * 20).clip(limits.min, limits.max).astype(dtype)
        yield Example(1, long, f(0.1), dtype(9), f(0.0007), dtype(3), opset=13)
        yield Example(1, x, f(0.02), dtype(9), f(1 / 255), dtype(3), opset=17)
        # by hand: exp(0) and exp(-1.0986) are 3 to 1
        pair = np.array([[4, 2]], dtype), f(0.549306144), dtype(0), *to
        yield Example(1, *pair, opset=13, expect=[(np.array([[192, 64]]) + limits.min).astype(dtype)])
    yield Example(1, x[:0], f(1), dtype(0), *to, opset=13, expect=[x[:0]])
