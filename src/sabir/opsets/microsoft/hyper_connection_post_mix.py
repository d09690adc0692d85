"""HyperConnectionPostMix: the streams of a network mixed, and the output of a block added to each."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes import branches
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Constraint, Example, Input, Operator, Output, Unconvertible, tensors

hyper_connection_post_mix = Operator(
    "HyperConnectionPostMix",
    domain="com.microsoft",
    summary="`transposed(stream_mix) @ streams + post_mix * block_output`, for each (C, H) of the streams.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
M = Constraint("M", BFLOAT16, tensors("float", "float16"))

v1 = hyper_connection_post_mix.first(
    1,
    inputs=[
        Input("streams", T, "(..., C, H), or (..., C * H) with `num_branches`.", differentiable=True),
        Input("block_output", T, "(..., H).", differentiable=True),
        Input("post_mix", M, "Gates: (..., C), (..., C, 1) or (..., C, H).", differentiable=True),
        Input(
            "stream_mix",
            M,
            "(..., C, C): element [i, j] is the weight of stream i in stream j; by default the identity.",
            optional=True,
            differentiable=True,
        ),
    ],
    outputs=[Output("output", T, "The shape of `streams`.", differentiable=True)],
    attributes=[branches.NUM_BRANCHES],
)


@v1.infer
def infer(
    streams: TensorType, block: TensorType, gates: TensorType, mix: TensorType | None = None, /, *,
    num_branches: int,
) -> TensorType:  # fmt: skip
    shape = branches.grouped_shape("streams", streams, num_branches)
    branches.check_gates("post_mix", gates, shape, flattened=False)
    if shape is not None:
        *outer, count, size = shape
        check_shape("block_output", block, *outer, size)
        check_shape("stream_mix", mix, *outer, count, count)
    return TensorType(streams.element, streams.shape)


@v1.evaluate
def evaluate(
    streams: Array, block: Array, gates: Array, mix: Array | None = None, /, *, num_branches: int
) -> Array:
    hold(infer, streams, block, gates, mix, num_branches=num_branches)
    x = widened(branches.grouped(streams, num_branches))
    mixed = x if mix is None else widened(mix).swapaxes(-1, -2) @ x
    y = mixed + branches.gates_of(widened(gates), x.shape) * widened(block)[..., None, :]
    return y.astype(streams.dtype, copy=False).reshape(streams.shape)


@v1.body
def body(
    b: Builder, streams: Value, block: Value, gates: Value, mix: Value | None = None, /, *, num_branches: int
) -> Value:
    rank = streams.type.rank if isinstance(streams.type, TensorType) else None
    if rank is None:
        raise Unconvertible("the rank of the streams is unknown")
    factors = branches.emit_gates(b, halves.widened(b, gates), streams, num_branches)
    x = branches.emit_grouped(b, halves.widened(b, streams), num_branches)
    if mix is not None:
        last = rank if num_branches else rank - 1
        order = (*range(last - 1), last, last - 1)
        x = b.MatMul(b.Transpose(halves.widened(b, mix), perm=order), x)
    added = b.Mul(factors, b.Unsqueeze(halves.widened(b, block), as_input(b, "axes", [-2])))
    y = b.Add(x, added)
    y = b.Reshape(y, b.Shape(streams), allowzero=1) if num_branches else y
    return halves.rounded(b, y, streams)


@hyper_connection_post_mix.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 2, 3], [4, 5, 6]], [[-1, 0, 2], [8, 1, 0]]], f)  # by hand
    block = np.array([[2, 4, 6], [1, 0, -1]], f)
    gates = np.array([[2, -1], [0.5, 0]], f)
    mix = np.array([[[1, 2], [0, 1]], [[0, 1], [1, 0]]], f)
    plain = np.array([[[5, 10, 15], [2, 1, 0]], [[-0.5, 0, 1.5], [8, 1, 0]]], f)
    y = np.array([[[5, 10, 15], [4, 5, 6]], [[8.5, 1, -0.5], [-1, 0, 2]]], f)
    each = np.repeat(gates[..., None], 3, axis=-1)
    flat = x.reshape(2, 6)
    for kind in (f, np.float16, ml_dtypes.bfloat16):
        for kind_of_gates in (f, np.float16, ml_dtypes.bfloat16):
            typed = [t.astype(kind) for t in (x, block)]
            typed += [t.astype(kind_of_gates) for t in (gates, mix)]
            yield Example(1, *typed, expect=[y.astype(kind)])
    for form in (gates, gates[..., None], each):
        yield Example(1, x, block, form, num_branches=0, expect=[plain])
        yield Example(1, flat, block, form, mix, num_branches=2, expect=[y.reshape(2, 6)])
    yield Example(1, x[0], block[0], gates[0], mix[0], expect=[y[0]])
    yield Example(1, flat[0], block[0], gates[0], num_branches=2, expect=[plain[0].reshape(6)])
    yield Example(1, x[:, :1, :1], block[:, :1], gates[:, :1], expect=[[[[5]], [[-0.5]]]])
    yield Example(1, x[:0], block[:0], gates[:0], mix[:0], expect=[x[:0]])
    yield Example(1, flat[:0], block[:0], gates[:0], mix[:0], num_branches=2, expect=[flat[:0]])
