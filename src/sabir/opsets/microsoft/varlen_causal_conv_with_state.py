"""VarlenCausalConvWithState: CausalConvWithState of sequences of several lengths, packed into one."""

from collections.abc import Iterator
from typing import NamedTuple

import ml_dtypes
import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.ir import Dim, TensorType, mul, sub
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.sequences import packed_places
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
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
    at_least,
    one_of,
    tensors,
)

varlen_causal_conv_with_state = Operator(
    "VarlenCausalConvWithState",
    domain="com.microsoft",
    summary="A convolution of each channel with a filter of its own, over present and past tokens of the "
    "same sequence only; sequences of several lengths are packed one after the other.",
    lacks=("Filters that change by token (`kernel_delta`): onnxruntime's CPU provider refuses them too.",),
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
M = Constraint("M", tensors("int32"))
_PLACES = "cumulative_sequence_length"

v1 = varlen_causal_conv_with_state.first(
    1,
    inputs=[
        Input("input", T, "The tokens of all sequences, [tokens, channels]."),
        Input("weight", T, "The filters, [channels, 1, k]."),
        Input(_PLACES, M, "[batch + 1]: the start of each sequence, and the last end."),
        Input("bias", T, "[channels].", optional=True),
        Input("initial_state", T, "The elements before, [batch, channels, (k - 1) * dilation]."),
        Input(
            "capture_count",
            M,
            "[batch]: how many tokens of each sequence to return; with `state_update_capacity` alone.",
            optional=True,
        ),
        Input("kernel_delta", T, "[tokens, taps, groups]: added to filters.", optional=True),
        Input("previous_mask", T, "[tokens, 1]: a factor of the element before.", optional=True),
    ],
    outputs=[
        Output("output", T, "[tokens, channels]."),
        Output("final_state", T, "The `initial_state` of the next call."),
        Output(
            "state_update",
            T,
            "[batch, state_update_capacity, channels]: the first tokens of each sequence, then zeros.",
            optional=True,
        ),
    ],
    attributes=[
        ACTIVATION,
        Attribute(
            "dilation", "int", "From one element of a filter to the next.", default=1, values=at_least(1)
        ),
        Attribute("delta_offset", "int", "The place in `kernel_delta`.", default=0),
        Attribute("group_size", "int", "The channels of a column of `kernel_delta`.", default=1),
        Attribute(
            "state_update_capacity",
            "int",
            "The most tokens to return of a sequence.",
            default=0,
            values=one_of(*range(9)),
        ),
    ],
)

v1.absent("gradient", "which tokens a filter reads is decided by a run")
v1.absent("lower", "which tokens a filter reads is decided by a run")


@v1.infer
def infer(
    x: TensorType,
    weight: TensorType,
    places: TensorType,
    bias: TensorType | None,
    state: TensorType,
    counts: TensorType | None = None,
    /,
    *dynamic: TensorType | None,
    dilation: int,
    state_update_capacity: int,
) -> tuple[TensorType, TensorType, TensorType]:
    if any(kind is not None for kind in dynamic):
        raise UnsupportedError("VarlenCausalConvWithState does not take `kernel_delta` and `previous_mask`")
    if (counts is None) != (not state_update_capacity):
        raise InferenceError("`capture_count` is needed exactly if `state_update_capacity` is above 0")
    check_rank("input", x, 2)
    check_shape("weight", weight, None, 1, None)
    tokens, channels = x.shape or (None, None)
    rows, _, k = weight.shape or (None,) * 3
    if k == 0:
        raise InferenceError("the filters of `weight` have no elements")
    check_shape("input", x, tokens, rows)
    channels = rows if channels is None else channels
    batch = packed_places.batch_of(_PLACES, places, tokens)
    reach: Dim = mul(sub(k, 1), dilation)
    check_shape("bias", bias, channels)
    check_shape("initial_state", state, batch, channels, reach)
    check_shape("capture_count", counts, batch)
    return (
        x.with_shape(tokens, channels),
        x.with_shape(batch, channels, reach),
        x.with_shape(batch, state_update_capacity, channels),
    )


@v1.evaluate
def evaluate(
    x: Array,
    weight: Array,
    places: Array,
    bias: Array | None,
    state: Array,
    counts: Array | None = None,
    /,
    *dynamic: Array | None,
    activation: str,
    dilation: int,
    state_update_capacity: int,
    **_: int,
) -> tuple[Array, Array, Array]:
    hold(
        infer, x, weight, places, bias, state, counts, *dynamic, dilation=dilation,
        state_update_capacity=state_update_capacity,
    )  # fmt: skip
    packed_places.check_places(_PLACES, places.tolist(), len(x))
    packed = _Packed(places.astype(np.int64), x, state)
    taps = widened(weight)[:, 0]
    y = np.zeros(x.shape, taps.dtype)
    k = taps.shape[1]
    spend_operations(2 * k, y.nbytes * k)
    own = np.arange(len(x)) - packed.starts[packed.owners]
    for j in range(k):
        y += widened(packed.rows(packed.owners, own - (k - 1 - j) * dilation)) * taps[:, j]
    if bias is not None:
        y += widened(bias)
    if activation != "none":
        with np.errstate(over="ignore"):
            y *= sigmoid(y)
    return (
        y.astype(x.dtype, copy=False),
        packed.last(),
        packed.first(np.zeros(len(state), np.int32) if counts is None else counts, state_update_capacity),
    )


class _Packed(NamedTuple):
    """Tokens of sequences, each after the elements of its state."""

    places: Array
    tokens: Array
    state: Array

    @property
    def starts(self) -> Array:
        """The place of the first token of each sequence."""
        return self.places[:-1]

    @property
    def owners(self) -> Array:
        """The sequence of each token."""
        return np.searchsorted(self.places, np.arange(len(self.tokens)), side="right") - 1

    def rows(self, sequences: Array, places: Array) -> Array:
        """Return the tokens at places of sequences; those below 0 are elements of the state."""
        reach = self.state.shape[2]
        if not reach:
            return self.tokens[self.starts[sequences] + places]
        before = self.state.transpose(0, 2, 1)[sequences, np.minimum(places, -1) + reach]
        if not len(self.tokens):
            return before
        own = self.tokens[self.starts[sequences] + np.maximum(places, 0)]
        return np.where((places < 0)[..., None], before, own)

    def last(self) -> Array:
        """Return the state after the last token of each sequence."""
        reach = self.state.shape[2]
        sequences, places = np.indices((len(self.state), reach))
        places += np.diff(self.places)[:, None] - reach
        return self.rows(sequences, places).transpose(0, 2, 1)

    def first(self, counts: Array, capacity: int) -> Array:
        """Return so many of the first tokens of each sequence, and zeros."""
        found = np.zeros((len(counts), capacity, self.tokens.shape[1]), self.tokens.dtype)
        for item, count in enumerate(np.clip(counts, 0, np.minimum(np.diff(self.places), capacity))):
            found[item, :count] = self.tokens[self.starts[item] :][:count]
        return found


@varlen_causal_conv_with_state.examples
def examples() -> Iterator[Example]:
    """By hand, as the examples of CausalConvWithState: two sequences of decimal places."""
    f = np.float32
    places = np.array([0, 1, 4], np.int32)
    x, w = np.array([[1], [2], [3], [4]], f), np.array([[[1, 10, 100]]], f)
    state = np.array([[[8, 9]], [[5, 6]]], f)
    y, after = np.array([[198], [265], [326], [432]], f), np.array([[[9, 1]], [[3, 4]]], f)
    yield Example(1, x, w, places, None, state, outputs=2, expect=[y, after])
    yield Example(1, x, w, places, [0.5], state, outputs=2, expect=[y + f(0.5), after])
    captured = np.array([[[1], [0]], [[2], [3]]], f)
    count = np.array([2, 5], np.int32)
    results = [y, after, captured]
    yield Example(1, x, w, places, None, state, count, state_update_capacity=2, outputs=3, expect=results)
    # two elements apart: y[t] = x[t - 4] + 10 x[t - 2] + 100 x[t], here of states of four elements
    far = np.array([[[5, 6, 7, 8]], [[1, 2, 3, 4]]], f)
    apart, then = np.array([[175], [231], [342], [423]], f), np.array([[[6, 7, 8, 1]], [[4, 2, 3, 4]]], f)
    yield Example(1, x, w, places, None, far, dilation=2, outputs=2, expect=[apart, then])
    yield Example(1, x / 64, w, places, None, state / 64, activation="silu", outputs=2)
    yield Example(
        1, x, w[:, :, 2:], places, None, state[:, :, :0], outputs=2, expect=[100 * x, state[:, :, :0]]
    )
    for kind in (np.float16, ml_dtypes.bfloat16):
        halved = [t.astype(kind) for t in (x, w)]
        yield Example(1, *halved, places, None, state.astype(kind), outputs=2, tolerance=8e-3)
