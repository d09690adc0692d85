"""CausalConvWithState: a causal convolution of each channel, in consecutive parts of a sequence."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError, UnsupportedError
from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value, may_be_equal, sub
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.recurrence.recurrences import sigmoid
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.size_vectors import padded_along
from sabir.opsets.families.shapes.sizes import spend_operations
from sabir.opsets.families.windows.gating import ACTIVATION
from sabir.opsets.families.windows.window_kernels import channels_first, channels_last
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

causal_conv_with_state = Operator(
    "CausalConvWithState",
    summary="In each channel `y[t] = sum of w[j] x[t - k + 1 + j] + b`, with the elements before x as state.",
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))

v27 = causal_conv_with_state.first(
    27,
    inputs=[
        Input("input", T, "(batch, channels, length).", differentiable=True),
        Input("weight", T, "(channels, 1, k).", differentiable=True),
        Input("bias", T, "(channels); zeros by default.", optional=True, differentiable=True),
        Input(
            "past_state",
            T,
            "The k - 1 elements before, (batch, channels, k - 1); zeros by default.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[
        Output("output", T, "The shape of the input.", differentiable=True),
        Output(
            "present_state",
            T,
            "The last k - 1 elements of `past_state` and `input` together.",
            differentiable=False,
        ),
    ],
    attributes=[ACTIVATION],
)

RANK = 3  # of all inputs except the bias
END = np.iinfo(np.int64).max


@v27.infer
def infer(
    x: TensorType, weight: TensorType, bias: TensorType | None = None, past: TensorType | None = None, /
) -> tuple[TensorType, TensorType]:
    for kind in (x, weight, past):
        if kind is not None and kind.shape is not None and len(kind.shape) != RANK:
            raise InferenceError(f"input, weight and state must have rank {RANK}, and one is {kind}")
    check_rank("bias", bias, 1)
    batch, channels, length = x.shape or (None,) * RANK
    rows, one, k = weight.shape or (None,) * RANK
    if not may_be_equal(one, 1) or (isinstance(k, int) and k < 1):
        raise InferenceError(f"weights must have the shape (channels, 1, k), and are {weight}")
    channels = same_dim([channels, rows, *(bias.shape if bias and bias.shape else ())], "the channels")
    before = sub(k, 1)
    if past is not None and past.shape:
        batch = same_dim([batch, past.shape[0]], "the batch of input and state")
        channels = same_dim([channels, past.shape[1]], "the channels of input and state")
        before = same_dim([before, past.shape[2]], "k - 1 and the length of the state")
    return x.with_shape(batch, channels, length), x.with_shape(batch, channels, before)


@v27.evaluate
def evaluate(
    x: Array, weight: Array, bias: Array | None = None, past: Array | None = None, /, *, activation: str
) -> tuple[Array, Array]:
    hold(infer, x, weight, bias, past)
    gated, k, length = activation != "none", weight.shape[2], x.shape[2]
    before = (*x.shape[:2], k - 1)
    if past is None:
        past = np.zeros(before, x.dtype)
    whole = np.concatenate([past, x], axis=2)
    wide, taps = widened(whole), widened(weight)
    y = (
        np.zeros(x.shape, wide.dtype)
        if bias is None
        else np.tile(widened(bias)[:, None], (len(x), 1, length))
    )
    spend_operations(2 * k, y.nbytes * k)
    for j in range(k):
        y += wide[:, :, j : j + length] * taps[:, :, j]
    y = y.astype(x.dtype, copy=False)
    if gated:
        wide = widened(y)
        y = (wide * sigmoid(wide)).astype(x.dtype, copy=False)
    return y, whole[:, :, length:]


@v27.lower
def lower(
    x: Expression, weight: Expression, bias: Expression | None = None, past: Expression | None = None, /, *,
    activation: str,
) -> tuple[Expression, Expression]:  # fmt: skip
    batch, channels, length = x.shape
    taps = loops.fixed(weight.shape[2])
    if taps is None or not loops.equal(channels, weight.shape[0]):
        raise NotLowered("the length of the filters is unknown, or that there is one for each channel")
    shape = (batch, channels, taps - 1)
    before = kernels.filled(x.element, 0, shape) if past is None else past
    if not loops.same_shape(before.shape, shape):
        raise NotLowered("whether the state has what precedes the input is known at run time only")
    whole = loops.join([before, x], 2) if taps > 1 else x
    after = loops.narrow(whole, 2, length, taps - 1)
    found = loops.windows(channels_last(whole), [1], [taps], [length], [1], [1])
    y = channels_first(loops.slide("sum", found, 1, loops.squeeze(weight, [1])))
    y = y if bias is None else loops.apply("add", y, loops.reshape(bias, (channels, 1)))
    return y if activation == "none" else kernels.swish(y, 1), after


@v27.body
def body(
    b: Builder,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    past: Value | None = None,
    /,
    *,
    activation: str,
) -> tuple[Value, Value]:
    if past is None:
        before = b.Sub(b.Shape(weight, start=2), _ints(b, 1))
        whole = padded_along(b, x, [2], before, (0,))
    else:
        whole = b.Concat(past, x, axis=2)
    y = b.Conv(whole, weight, bias, group=_channels(x, weight))
    if activation != "none":
        wide = b.Cast(y, to=FLOAT.number)
        y = b.CastLike(b.Mul(wide, b.Sigmoid(wide)), y)
    return y, b.Slice(whole, b.Shape(x, start=2), _ints(b, END), _ints(b, 2))


def _channels(x: Value, weight: Value) -> int:
    for value, axis in ((x, 1), (weight, 0)):
        size = value.type.shape[axis] if isinstance(value.type, TensorType) and value.type.shape else None
        if isinstance(size, int):
            return size
    raise Unconvertible("the number of channels is unknown, and Conv needs it in the model")


def _ints(b: Builder, *values: int) -> Value:
    return b.initializer("ints", np.array(values, np.int64))


@v27.gradient
def gradient(
    g: Gradient, x: Value, weight: Value, bias: Value | None = None, past: Value | None = None, /,
    *, activation: str,
) -> tuple[Value | None, ...]:  # fmt: skip
    """The gradient of the elements is the same convolution, from the end of the sequence to its start."""
    k = (g.shape(weight) or (None,))[-1]
    if not isinstance(k, int):
        raise UnsupportedError("the gradient of CausalConvWithState needs the length of its weights")
    wide, taps, length = halves.widened(g, x), halves.widened(g, weight), g.Shape(x, start=2)
    missing = g.Expand(_zero(g, wide), g.Concat(g.Shape(x, start=0, end=2), [k - 1], axis=0))
    whole = g.Concat(missing if past is None else halves.widened(g, past), wide, axis=2)
    dy, d_state = (None if d is None else halves.widened(g, d) for d in (*g.dys, None)[:2])
    d_weight = d_bias = d_whole = None
    if dy is not None:
        dy = dy if activation == "none" else g.Mul(dy, _slope(g, x, weight, bias, past))
        late = g.Concat(_reversed(g, dy), missing, axis=2)
        d_whole = _reversed(g, g.op("CausalConvWithState", late, taps, outputs=2)[0])
        parts = [g.Mul(dy, g.Slice(whole, [j], g.Add(length, [j]), [2])) for j in range(k)]
        each = [g.Unsqueeze(g.ReduceSum(part, [0, 2], keepdims=0), [1, 2]) for part in parts]
        d_weight = halves.rounded(g, g.Concat(*each, axis=2), weight)
        d_bias = None if bias is None else halves.rounded(g, g.ReduceSum(dy, [0, 2], keepdims=0), bias)
    if d_state is not None:
        d_state = padded_along(g, d_state, [2], length, (0,))
        d_whole = d_state if d_whole is None else g.Add(d_whole, d_state)
    if d_whole is None:
        return (None,) * 4
    d_whole = halves.rounded(g, d_whole, x)
    d_past = None if past is None else g.Slice(d_whole, [0], [k - 1], [2])
    return g.Slice(d_whole, [k - 1], [END], [2]), d_weight, d_bias, d_past


def _slope(g: Gradient, *inputs: Value | None) -> Value:
    """Return the derivative of the gate `z sigmoid(z)` at the sums of a call."""
    z = halves.widened(g, g.op("CausalConvWithState", *inputs, outputs=2)[0])
    gate = g.Sigmoid(z)
    return g.Mul(gate, g.Add(g.Mul(z, g.Sub(1, gate)), 1))


def _zero(g: Gradient, x: Value) -> Value:
    """Return a scalar 0 of the type of a tensor."""
    return g.initializer("zero", np.zeros((), element_of(x).dtype))


def _reversed(g: Gradient, x: Value) -> Value:
    return g.Slice(x, [-1], [-END], [2], [-1])


@causal_conv_with_state.examples
def examples() -> Iterator[Example]:
    """By hand: `y[t] = x[t - 2] + 10 x[t - 1] + 100 x[t]` in one channel, `-x[t - 1]` in the other."""
    f = np.float32
    x = np.array([[[1, 2, 3, 4], [5, 6, 7, 8]]], f)
    w, bias = np.array([[[1, 10, 100]], [[0, -1, 0]]], f), np.array([0.5, 1], f)
    past = [[[8, 9], [2, 3]]]
    y = np.array([[[100, 210, 321, 432], [0, -5, -6, -7]]], f)
    yield Example(27, x, w, outputs=2, expect=[y, x[:, :, 2:]])
    yield Example(27, x, w, bias, outputs=2, expect=[y + bias[:, None], x[:, :, 2:]])
    later = y + np.array([[[98, 9, 0, 0], [-3, 0, 0, 0]]], f)
    yield Example(27, x, w, None, past, outputs=2, expect=[later, x[:, :, 2:]])
    # one element at a time: the state advances by one
    one = x[:, :, :1]
    yield Example(
        27, one, w, bias, past, outputs=2, expect=[later[:, :, :1] + bias[:, None], [[[9, 1], [3, 5]]]]
    )
    yield Example(27, one, w, outputs=2, expect=[y[:, :, :1], [[[0, 1], [0, 5]]]])
    yield Example(27, x, w[:, :, 2:], outputs=2, expect=[x * w[:, :, 2], x[:, :, :0]])
    small = x / 8
    for activation in ("silu", "swish"):
        gated = small / (1 + np.exp(-small))
        yield Example(27, small, np.ones((2, 1, 1), f), activation=activation, outputs=2, expect=[gated])
    for kind in (np.float16, ml_dtypes.bfloat16):
        inputs = [t.astype(kind) for t in (x, w)]
        yield Example(
            27, *inputs, outputs=2, tolerance=8e-3, expect=[y.astype(kind), x[:, :, 2:].astype(kind)]
        )
    yield Example(27, x[:, :, :0], w, None, past, outputs=2, expect=[x[:, :, :0], past])
