"""HyperConnectionPreMix: the weighted sum of the streams of a network."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes import branches
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Attribute, Constraint, Example, Input, Operator, Output, tensors

hyper_connection_pre_mix = Operator(
    "HyperConnectionPreMix",
    domain="com.microsoft",
    summary="The sum of the streams times their gates, times `reduction_scale`.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
M = Constraint("M", BFLOAT16, tensors("float", "float16"))

v1 = hyper_connection_pre_mix.first(
    1,
    inputs=[
        Input("streams", T, "(..., C, H), or (..., C * H) with `num_branches`.", differentiable=True),
        Input(
            "pre_mix",
            M,
            "Gates: (..., C), (..., C, 1) or (..., C, H); of flattened streams (..., C * H) too.",
            differentiable=True,
        ),
    ],
    outputs=[Output("output", T, "(..., H).", differentiable=True)],
    attributes=[
        branches.NUM_BRANCHES,
        Attribute("reduction_scale", "float", "A factor of the sum.", default=1.0),
    ],
)


@v1.infer
def infer(streams: TensorType, gates: TensorType, /, *, num_branches: int) -> TensorType:
    shape = branches.grouped_shape("streams", streams, num_branches)
    branches.check_gates("pre_mix", gates, shape, flattened=num_branches > 0)
    return TensorType(streams.element, None if shape is None else (*shape[:-2], shape[-1]))


@v1.evaluate
def evaluate(streams: Array, gates: Array, /, *, num_branches: int, reduction_scale: float) -> Array:
    hold(infer, streams, gates, num_branches=num_branches)
    x = widened(branches.grouped(streams, num_branches))
    y = (x * branches.gates_of(widened(gates), x.shape)).sum(axis=-2) * np.float32(reduction_scale)
    return y.astype(streams.dtype, copy=False)


@v1.body
def body(b: Builder, streams: Value, gates: Value, /, *, num_branches: int, reduction_scale: float) -> Value:
    factors = branches.emit_gates(b, halves.widened(b, gates), streams, num_branches)
    x = branches.emit_grouped(b, halves.widened(b, streams), num_branches)
    y = reductions.call(b, "ReduceSum", b.Mul(x, factors), [-2], keepdims=0)
    if reduction_scale != 1:
        y = Numbers.like(b, y).op("Mul", y, reduction_scale)
    return halves.rounded(b, y, streams)


@hyper_connection_pre_mix.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 2, 3], [4, 5, 6]], [[-1, 0, 2], [8, 1, 0]]], f)  # by hand
    gates = np.array([[2, -1], [0.5, 0.25]], f)
    y = np.array([[-2, -1, 0], [1.5, 0.25, 1]], f)
    each = np.repeat(gates[..., None], 3, axis=-1)
    flat = x.reshape(2, 6)
    for kind in (f, np.float16, ml_dtypes.bfloat16):
        for kind_of_gates in (f, np.float16, ml_dtypes.bfloat16):
            yield Example(1, x.astype(kind), gates.astype(kind_of_gates), expect=[y.astype(kind)])
    for form in (gates, gates[..., None], each):
        yield Example(1, x, form, num_branches=0, reduction_scale=0.5, expect=[y / 2])
        yield Example(1, flat, form, num_branches=2, reduction_scale=0.5, expect=[y / 2])
    yield Example(1, flat, each.reshape(2, 6), num_branches=2, expect=[y])
    yield Example(1, flat[0], gates[0], num_branches=2, expect=[y[0]])
    yield Example(1, x[:, :1, :1], gates[:, :1], expect=[[[2], [-0.5]]])
    yield Example(1, x[:0], gates[:0], expect=[y[:0]])
    yield Example(1, flat[:0], gates[:0], num_branches=2, expect=[y[:0]])
