"""WordConvEmbedding: vectors of words from the characters that they consist of."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import BOOL, FLOAT, INT64
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import set_aside, spend_operations
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

word_conv_embedding = Operator(
    "WordConvEmbedding",
    domain="com.microsoft",
    summary="The maximum over a word of `tanh` of a convolution of the vectors of its characters.",
    body_opset=18,
)

T = Constraint("T", tensors("int32"))
T1 = Constraint("T1", tensors("float"))

v1 = word_conv_embedding.first(
    1,
    inputs=[
        Input(
            "Sequence",
            T,
            "Words as numbers of characters, [words, characters]; 0 is padding, after the characters.",
            differentiable=False,
        ),
        Input("W", T1, "The filters, [filters, 1, window, char_size].", differentiable=True),
        Input("B", T1, "The bias, [filters].", differentiable=True),
        Input("C", T1, "The vector of each character, [alphabet, char_size].", differentiable=True),
    ],
    outputs=[
        Output(
            "Y",
            T1,
            "The vectors of the words, [words, filters]; 0 for words of padding alone. A word that is "
            "shorter than the window has one window.",
            differentiable=True,
        )
    ],
    attributes=[
        Attribute("char_embedding_size", "int", "The size of the vector of a character, if given."),
        Attribute("conv_window_size", "int", "The number of characters in a window, if given."),
        Attribute("embedding_size", "int", "The number of filters, if given."),
    ],
)

_FILTERS = 4  # the rank
_LEAST = -2.0  # less than any tanh


@v1.infer
def infer(
    words: TensorType,
    weights: TensorType,
    bias: TensorType,
    characters: TensorType,
    /,
    *,
    char_embedding_size: int | None,
    conv_window_size: int | None,
    embedding_size: int | None,
) -> TensorType:
    check_rank("Sequence", words, 2)
    check_rank("W", weights, _FILTERS)
    filters, _, window, width = weights.shape or (None,) * _FILTERS
    check_shape("W", weights, embedding_size, 1, conv_window_size, char_embedding_size)
    filters = same_dim([filters, embedding_size, *(bias.shape or ())[:1]], "the filters of `W` and `B`")
    check_shape("B", bias, filters)
    check_shape("C", characters, None, width)
    count, length = words.shape or (None, None)
    if isinstance(window, int) and (window < 1 or (isinstance(length, int) and length < window)):
        raise InferenceError(f"words of {length} characters have no windows of {window}")
    return TensorType(weights.element, (count, filters))


@v1.evaluate
def evaluate(
    words: Array,
    weights: Array,
    bias: Array,
    characters: Array,
    /,
    *,
    char_embedding_size: int | None,
    conv_window_size: int | None,
    embedding_size: int | None,
) -> Array:
    hold(
        infer, words, weights, bias, characters, char_embedding_size=char_embedding_size,
        conv_window_size=conv_window_size, embedding_size=embedding_size,
    )  # fmt: skip
    outside = (words < 0) | (words >= len(characters))
    if outside.any():
        raise ValueError(f"the character {words[outside][0]} is outside [0, {len(characters) - 1}]")
    window = weights.shape[2]
    count = words.shape[1] - window + 1
    set_aside(
        words.size * (characters.shape[1] + len(weights)), weights.itemsize, "the vectors of characters"
    )
    spend_operations(2 * window, 2 * len(words) * count * weights.nbytes)
    vectors = characters[words]
    y = np.tile(bias, (len(words), count, 1))
    for place in range(window):
        y += vectors[:, place : place + count] @ weights[:, 0, place].T
    used = (words != 0).sum(axis=1)
    least = np.maximum(used - window + 1, 1)
    past = np.greater_equal(np.arange(count, dtype=np.int64), least[:, None])
    most = np.where(past[..., None], np.float32(_LEAST), np.tanh(y)).max(axis=1)
    return np.where((words[:, 0] != 0)[:, None], most, np.float32(0))


@v1.body
def body(
    b: Builder,
    words: Value,
    weights: Value,
    bias: Value,
    characters: Value,
    /,
    *,
    char_embedding_size: int | None,
    conv_window_size: int | None,
    embedding_size: int | None,
) -> Value:
    zero, one = (b.initializer(f"number_{n}", np.array(n, np.int64)) for n in (0, 1))
    axis = {n: as_input(b, f"axis_{n}", [n]) for n in (0, 1, 2)}
    vectors = b.Unsqueeze(b.Gather(characters, words), axis[1])
    y = b.Tanh(b.Squeeze(b.Conv(vectors, weights, bias), as_input(b, "axis_3", [3])))
    is_used = b.Cast(b.Cast(words, to=BOOL.number), to=INT64.number)
    window, length = (
        b.Squeeze(b.Shape(x, start=a, end=a + 1), axis[0]) for x, a in ((weights, 2), (words, 1))
    )
    before = b.Sub(window, one)
    windows = b.Max(b.Sub(b.ReduceSum(is_used, axis[1], keepdims=1), before), one)
    inside = b.Less(b.Range(zero, b.Sub(length, before), one), windows)
    least, none = (b.initializer("bound", np.array(n, FLOAT.dtype)) for n in (_LEAST, 0))
    most = b.ReduceMax(b.Where(b.Unsqueeze(inside, axis[1]), y, least), axis[2], keepdims=0)
    first = b.Gather(words, as_input(b, "first", [0]), axis=1)
    return b.Where(b.Cast(first, to=BOOL.number), most, none)


@word_conv_embedding.examples
def examples() -> Iterator[Example]:
    words = [[1, 2, 3, 0, 0], [4, 1, 0, 0, 0], [4, 0, 0, 0, 0], [1, 2, 3, 4, 1], [1, 2, 0, 3, 4]]
    rng = np.random.default_rng(0)
    weights, bias, characters = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((3, 1, 2, 4), (3,), (6, 4))
    )
    yield Example(1, words, weights, bias, characters)
    sizes: dict[str, Any] = {"char_embedding_size": 4, "conv_window_size": 2, "embedding_size": 3}
    yield Example(1, words, weights, bias, characters, **sizes)
    yield Example(1, [[5]], weights[:, :, :1], bias, characters)
    f = np.float32
    single = np.ones((1, 1, 1, 1), f), np.zeros(1, f), np.array([[9], [0.5], [-1]], f)
    y = np.tanh([[0.5], [0], [-1]]).astype(f)  # the second word is padding, the third one character
    yield Example(1, [[1, 2, 0], [0, 0, 0], [2, 0, 0]], *single, expect=[y])
    yield Example(1, np.zeros((0, 3), np.int32), *single, expect=[y[:0]])
