"""QEmbedLayerNormalization: EmbedLayerNormalization with quantized tables."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import embedded
from sabir.opsets.families.normalization.normalization_graphs import layer_normalized
from sabir.opsets.families.quantization import quantization, quantization_kernels
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_one, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

qembed_layer_normalization = Operator(
    "QEmbedLayerNormalization",
    domain="com.microsoft",
    summary="The rows of three quantized tables at words, positions and segments, dequantized, summed and"
    " normalised over the last dimension, and the number of words in the mask of each item.",
    body_opset=18,
)

T1 = embedded.IDS
T2 = Constraint("T2", tensors("int8", "uint8"))
T = Constraint("T", tensors("float"))
_PARTS = ("word_embedding", "position_embedding", "segment_embedding", "gamma", "beta")
Number = TypeVar("Number")
_SEGMENT, _GAMMA = 2, 3  # places among the parts


def _scalars(kind: Constraint, what: str) -> list[Input]:
    """Return an input with one number for each quantized tensor."""
    return [
        Input(f"{part}_{what}", kind, f"The {what.replace('_', ' ')} of `{part}`.", optional=i == _SEGMENT)
        for i, part in enumerate(_PARTS)
    ]


v1 = qembed_layer_normalization.first(
    1,
    inputs=[
        embedded.INPUT_IDS,
        embedded.SEGMENT_IDS,
        Input("word_embedding_quant", T2, "The table of words, (words, hidden)."),
        Input("position_embedding_quant", T2, "The table of positions, (positions, hidden)."),
        Input("segment_embedding", T2, "The table of segments, (segments, hidden).", optional=True),
        Input("gamma_quant", T2, "The scale, (hidden)."),
        Input("beta_quant", T2, "The shift, (hidden)."),
        Input("mask", T1, embedded.MASK_DOC, optional=True),
        *_scalars(T, "scale"),
        *_scalars(T2, "zero_point"),
    ],
    outputs=[
        Output("layernorm_out", T, "(batch, sequence, hidden)."),
        Output("mask_index_out", T1, embedded.MASK_INDEX_DOC),
    ],
    attributes=[Attribute("epsilon", "float", "Added to the variance, so that it is not 0.", default=1e-12)],
    status="experimental",
)

v1.absent("gradient", "the embeddings are quantized, and integers have no gradients")


@v1.infer
def infer(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    ids: TensorType, segment_ids: TensorType | None, words: TensorType, positions: TensorType,
    segments: TensorType | None, gamma: TensorType, beta: TensorType, mask: TensorType | None,
    /, *numbers: TensorType | None,
) -> tuple[TensorType, TensorType]:  # fmt: skip
    group = (segment_ids, segments, numbers[_SEGMENT], numbers[_SEGMENT + len(_PARTS)])
    if any(g is None for g in group) and any(g is not None for g in group):
        raise InferenceError("segments need indices, a table, a scale and a zero point, or none of them")
    for part, scale, zero in zip(_PARTS, numbers[: len(_PARTS)], numbers[len(_PARTS) :], strict=True):
        check_one(f"{part}_scale", scale)
        check_one(f"{part}_zero_point", zero)
    shape, index, hidden = embedded.infer(ids, segment_ids, None, mask, (words, positions, segments))
    check_shape("gamma_quant", gamma, hidden)
    check_shape("beta_quant", beta, hidden)
    return TensorType(FLOAT, shape), index


def _decoding(numbers: Sequence[Number | None], part: int) -> tuple[Number, Number]:
    """Return the scale and the zero point of a part that is there."""
    scale, zero = numbers[part], numbers[part + len(_PARTS)]
    if scale is None or zero is None:
        raise TypeError(f"{_PARTS[part]} has a scale and a zero point")
    return scale, zero


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    ids: Array, segment_ids: Array | None, words: Array, positions: Array, segments: Array | None,
    gamma: Array, beta: Array, mask: Array | None, /, *numbers: Array | None, epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    hold(infer, ids, segment_ids, words, positions, segments, gamma, beta, mask, *numbers)

    def dequantized(part: int, x: Array) -> Array:
        scale, zero = _decoding(numbers, part)
        return quantization.dequantized(x, scale.reshape(()), zero.reshape(()), FLOAT)

    rows = embedded.rows(ids, segment_ids, None, (words, positions, segments))
    total = embedded.summed([*map(dequantized, range(len(rows)), rows)])
    scale, shift = dequantized(_GAMMA, gamma), dequantized(_GAMMA + 1, beta)
    return embedded.normalized(total, scale, shift, epsilon), embedded.counted_words(ids, mask)


@v1.lower
def lower(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    ids: Expression, segment_ids: Expression | None, words: Expression, positions: Expression,
    segments: Expression | None, gamma: Expression, beta: Expression, mask: Expression | None, /,
    *numbers: Expression | None, epsilon: float,
) -> tuple[Expression, Expression]:  # fmt: skip
    def dequantized(part: int, x: Expression) -> Expression:
        scale, zero = _decoding(numbers, part)
        scale, zero = (loops.reshape(n, ()) for n in (scale, zero))
        return quantization_kernels.dequantized(x, scale, zero, "float")

    rows = embedded.lowered_rows(ids, segment_ids, None, (words, positions, segments))
    parts = [*map(dequantized, range(len(rows)), rows)]
    total = embedded.lowered_sum(parts, (*ids.shape, words.shape[1]))
    scale, shift = dequantized(_GAMMA, gamma), dequantized(_GAMMA + 1, beta)
    return embedded.lowered_normalized(total, scale, shift, epsilon), embedded.lowered_words(ids, mask)


@v1.body
def body(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    b: Builder, ids: Value, segment_ids: Value | None, words: Value, positions: Value,
    segments: Value | None, gamma: Value, beta: Value, mask: Value | None, /, *numbers: Value | None,
    epsilon: float,
) -> tuple[Value, Value]:  # fmt: skip
    def dequantized(part: int, x: Value) -> Value:
        scalar = as_input(b, "scalar", [])
        return b.DequantizeLinear(x, *(b.Reshape(n, scalar) for n in _decoding(numbers, part)))

    rows = embedded.emitted_rows(b, ids, segment_ids, None, (words, positions, segments))
    total = embedded.emitted_sum(b, [*map(dequantized, range(len(rows)), rows)])
    scale, shift = dequantized(_GAMMA, gamma), dequantized(_GAMMA + 1, beta)
    (y,) = layer_normalized(b, total, scale, shift, epsilon, 1)
    return y, embedded.emitted_words(b, ids, mask)


@qembed_layer_normalization.examples
def examples() -> Iterator[Example]:  # ruff: ignore[too-many-locals]  the inputs of the operator
    i, f = np.int32, np.float32
    ids, segment_ids = np.array([[0, 2], [1, 1]], i), np.array([[0, 1], [1, 0]], i)
    y = np.array([[[-2, 2]] * 2] * 2, f)  # by hand: each sum has its second element above its first
    scales = [f(s) for s in (0.5, 1, 0.25, 2, 1)]
    for kind in (np.uint8, np.int8):
        zeros = [kind(z) for z in (10, 3, 5, 100, 7)]
        words = np.array([[12, 16], [14, 18], [10, 10]], kind)
        positions, segments = np.array([[3, 5], [4, 10], [8, 8]], kind), np.array([[9, 9], [17, 17]], kind)
        vectors = np.array([101, 100], kind), np.array([7, 9], kind)
        expected = y * 0 + np.array([-2, 2], f)
        call = words, positions, segments, *vectors
        yield Example(1, ids, segment_ids, *call, None, *scales, *zeros, outputs=2, expect=[expected, [0, 0]])
        without = [None if place == _SEGMENT else n for place, n in enumerate(scales)]
        offsets = [None if place == _SEGMENT else n for place, n in enumerate(zeros)]
        call = words, positions, None, *vectors, np.array([[1, 1], [0, 1]], i)
        results = [expected, [2, 1]]
        yield Example(1, ids, None, *call, *without, *offsets, outputs=2, epsilon=1e-6, expect=results)
        shaped = [n.reshape(1) for n in scales]
        call = words, positions, segments, *vectors, np.zeros((0, 2), i)
        none = np.zeros((0, 2), i)
        results = [np.zeros((0, 2, 2), f), np.zeros(0, i)]
        yield Example(1, none, none, *call, *shaped, *zeros, outputs=2, expect=results)
