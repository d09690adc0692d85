"""CausalConvWithState: a depthwise convolution of a sequence that arrives part by part."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.ir import Builder, Dim, TensorType, Value, mul, product, sub
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.recurrence.recurrences import sigmoid
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_least_rank, check_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.size_vectors import padded_along
from sabir.opsets.families.shapes.sizes import spend_operations
from sabir.opsets.families.windows.gating import ACTIVATION
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    one_of,
    tensors,
)

causal_conv_with_state = Operator(
    "CausalConvWithState",
    domain="com.microsoft",
    summary="A convolution of each channel with a filter of its own, over present and past elements only; "
    "the last elements are the state of the next call.",
    body_opset=18,
    lacks=(
        "`ndim` above 1: onnxruntime's CPU provider refuses it too.",
        "`state_window` above 0: onnxruntime's CPU provider refuses it too.",
        "A slice of channels, another length or layout of the state, captured states: refused there too.",
    ),
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))

v1 = causal_conv_with_state.first(
    1,
    inputs=[
        Input(
            "input",
            T,
            "A part of the sequence, [batch, channels, length]; [batch, length, d1, ..., dn] with "
            "`channels_last`, where the product of d1 to dn is the number of channels.",
            differentiable=True,
        ),
        Input("weight", T, "The filters, [channels, 1, k].", differentiable=True),
        Input("bias", T, "[channels].", optional=True, differentiable=True),
        Input(
            "past_state",
            T,
            "The (k - 1) * dilation elements before, in the layout of `input`; zeros by default.",
            optional=True,
            differentiable=True,
        ),
    ],
    outputs=[
        Output("output", T, "The shape of `input`.", differentiable=True),
        Output(
            "present_state", T, "The last (k - 1) * dilation elements, in the layout.", differentiable=True
        ),
        Output("state_update", T, "The captured elements, with `state_update_capacity`.", optional=True),
    ],
    attributes=[
        ACTIVATION,
        Attribute("channels_last", "int", "1: the channels are the last axes.", default=0),
        Attribute(
            "dilation", "int", "From one element of a filter to the next.", default=1, values=at_least(1)
        ),
        Attribute("ndim", "int", "The number of axes of a sequence.", default=1, values=one_of(1, 2, 3)),
        Attribute(
            "state_window",
            "int",
            "The number of states, one for each of the last elements; 0 for a single one without an axis.",
            default=0,
            values=one_of(*range(9)),
        ),
        Attribute("input_channel_offset", "int", "The first channel that is convolved.", default=0),
        Attribute("input_channels", "int", "How many are; 0: all.", default=0),
        Attribute("state_channels_last", "int", "The layout of the state; -1: that of `input`.", default=-1),
        Attribute("state_length", "int", "The elements of the state; 0: those that are read.", default=0),
        Attribute("state_update_capacity", "int", "How many elements are captured.", default=0),
    ],
)

_PLAIN = {
    "input_channel_offset": 0,
    "input_channels": 0,
    "state_channels_last": -1,
    "state_length": 0,
    "state_update_capacity": 0,
    "ndim": 1,
    "state_window": 0,
}


def _check_plain(options: dict[str, int]) -> None:
    """Raise UnsupportedError for attributes whose values CUDA kernels alone take."""
    for name, value in _PLAIN.items():
        if options[name] != value:
            raise UnsupportedError(f"CausalConvWithState needs `{name}` {value}, and has {options[name]}")


_RANK = 3  # of a sequence with its channels on one axis
_END = np.iinfo(np.int64).max


@v1.infer
def infer(
    x: TensorType,
    weight: TensorType,
    bias: TensorType | None = None,
    past: TensorType | None = None,
    /,
    *,
    channels_last: int,
    dilation: int,
    **options: Any,
) -> tuple[TensorType, TensorType]:
    _check_plain(options)
    check_shape("weight", weight, None, 1, None)
    check_rank("bias", bias, 1)
    rows, _, k = weight.shape or (None,) * _RANK
    if k == 0:
        raise InferenceError("the filters of `weight` have no elements")
    for name, kind in (("input", x), ("past_state", past)):
        if channels_last:
            check_least_rank(name, kind, _RANK)
        else:
            check_rank(name, kind, _RANK)
    state = mul(sub(k, 1), dilation)
    if x.shape is None:
        return TensorType(x.element), TensorType(x.element)
    sequence, before = _sizes(x.shape, past, state, last=channels_last != 0)
    channels = product(x.shape[2:]) if channels_last else x.shape[1]
    same_dim([channels, rows, *(bias.shape if bias and bias.shape else ())], "the numbers of channels")
    return x.with_shape(*sequence), x.with_shape(*before)


def _sizes(
    shape: tuple[Dim, ...], past: TensorType | None, state: Dim, *, last: bool
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """Return the sizes of the sequence and of the state; raises InferenceError where these do not fit."""
    along = 1 if last else 2
    before = (*shape[:along], state, *shape[along + 1 :])
    if past is None or past.shape is None:
        return shape, before
    check_rank("past_state", past, len(shape))
    what = "the sizes of `input` and `past_state`"
    before = tuple(same_dim(pair, what) for pair in zip(before, past.shape, strict=True))
    return (*before[:along], shape[along], *before[along + 1 :]), before


@v1.evaluate
def evaluate(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    past: Array | None = None,
    /,
    *,
    activation: str,
    channels_last: int,
    dilation: int,
    **options: Any,
) -> tuple[Array, Array]:
    hold(infer, x, weight, bias, past, channels_last=channels_last, dilation=dilation, **options)
    channels, k = len(weight), weight.shape[2]
    along, trailing = (1, x.shape[2:]) if channels_last else (2, ())
    length = x.shape[along]
    if past is None:
        past = np.zeros((*x.shape[:along], (k - 1) * dilation, *trailing), x.dtype)
    parts = [p.reshape(*p.shape[:2], channels).swapaxes(1, 2) if channels_last else p for p in (past, x)]
    whole = np.concatenate(parts, axis=2)
    wide, taps = widened(whole), widened(weight)
    y = np.zeros((len(x), channels, length), wide.dtype)
    spend_operations(2 * k, y.nbytes * k)
    for j in range(k):
        y += wide[:, :, j * dilation : j * dilation + length] * taps[:, :, j]
    if bias is not None:
        y += widened(bias)[:, None]
    if activation != "none":
        y *= sigmoid(y)
    results = y.astype(x.dtype, copy=False), whole[:, :, length:]
    if not channels_last:
        return results
    output, state = (r.swapaxes(1, 2).reshape(len(x), r.shape[2], *trailing) for r in results)
    return output, state


@v1.body
def body(
    b: Builder,
    x: Value,
    filters: Value,
    bias: Value | None = None,
    past: Value | None = None,
    /,
    *,
    activation: str,
    channels_last: int,
    dilation: int,
    **options: Any,
) -> tuple[Value, Value]:
    _check_plain(options)
    rows = b.Shape(filters, start=0, end=1)
    first = _channels_first(b, x, rows) if channels_last else x
    if past is None:
        reach = b.Sub(b.Shape(filters, start=2), as_input(b, "one", [1]))
        whole = padded_along(b, first, [2], b.Mul(reach, as_input(b, "dilation", [dilation])), (0,))
    else:
        whole = b.Concat(_channels_first(b, past, rows) if channels_last else past, first, axis=2)
    y = b.Conv(
        halves.widened(b, whole),
        halves.widened(b, filters),
        None if bias is None else halves.widened(b, bias),
        group=_count(filters, bias, x, last=channels_last != 0),
        dilations=[dilation],
    )
    y = halves.rounded(b, y if activation == "none" else b.Mul(y, b.Sigmoid(y)), x)
    state = b.Slice(whole, b.Shape(first, start=2), as_input(b, "end", [_END]), as_input(b, "axis", [2]))
    if channels_last:
        return _channels_last(b, y, x), _channels_last(b, state, x)
    return y, state


def _count(weight: Value, bias: Value | None, x: Value, *, last: bool) -> int:
    """Return the number of channels; raises Unconvertible where it is unknown."""
    shapes = [
        v.type.shape if v is not None and isinstance(v.type, TensorType) else None for v in (weight, bias, x)
    ]
    of_input = shapes[2] and (product(shapes[2][2:]) if last else shapes[2][1])
    for size in (*(shape and shape[0] for shape in shapes[:2]), of_input):
        if isinstance(size, int):
            return size
    raise Unconvertible("the number of channels is unknown, and Conv needs it in the model")


def _channels_first(b: Builder, x: Value, channels: Value) -> Value:
    flat = b.Reshape(x, b.Concat(b.Shape(x, start=0, end=2), channels, axis=0), allowzero=1)
    return b.Transpose(flat, perm=[0, 2, 1])


def _channels_last(b: Builder, y: Value, like: Value) -> Value:
    turned = b.Transpose(y, perm=[0, 2, 1])
    sizes = b.Concat(b.Shape(turned, start=0, end=2), b.Shape(like, start=2), axis=0)
    return b.Reshape(turned, sizes, allowzero=1)


@causal_conv_with_state.examples
def examples() -> Iterator[Example]:
    """By hand, as the examples of the standard's operator: one channel of decimal places, one delayed."""
    f = np.float32
    w, bias = np.array([[[1, 10, 100]], [[0, -1, 0]]], f), np.array([0.5, 1], f)
    x = np.array([[[1, 2, 3, 4], [5, 6, 7, 8]]], f)
    past, y = np.array([[[8, 9], [2, 3]]], f), np.array([[[100, 210, 321, 432], [0, -5, -6, -7]]], f)
    later = y + np.array([[[98, 9, 0, 0], [-3, 0, 0, 0]]], f)
    state = x[:, :, 2:]
    yield Example(1, x, w, outputs=2, expect=[y, state])
    yield Example(1, x, w, bias, past, outputs=2, expect=[later + bias[:, None], state])
    turned = [np.ascontiguousarray(t.swapaxes(1, 2)) for t in (x, past, later, state)]
    yield Example(1, turned[0], w, None, turned[1], channels_last=1, outputs=2, expect=turned[2:])
    split = [t[..., None] for t in turned]
    yield Example(1, split[0], w, None, split[1], channels_last=1, outputs=2, expect=split[2:])
    # two elements apart: y[t] = x[t - 4] + 10 x[t - 2] + 100 x[t], and -x[t - 2]
    apart = np.array([[[100, 200, 310, 420], [0, 0, -5, -6]]], f)
    yield Example(1, x, w, dilation=2, outputs=2, expect=[apart, x])
    for activation in ("silu", "swish"):
        yield Example(1, x / 8, w, bias, past, activation=activation, outputs=2)
    for kind in (np.float16, ml_dtypes.bfloat16):
        halved = [t.astype(kind) for t in (x, w, y, state)]
        yield Example(1, *halved[:2], outputs=2, tolerance=8e-3, expect=halved[2:])
    yield Example(1, x[:, :, :0], w, None, past, outputs=2, expect=[x[:, :, :0], past])
    yield Example(1, x, w[:, :, 2:], outputs=2, expect=[x * w[:, :, 2], x[:, :, :0]])
