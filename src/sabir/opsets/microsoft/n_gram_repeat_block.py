"""NGramRepeatBlock: scores of tokens, -inf for those that would repeat an n-gram."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.text.ngrams import repeated
from sabir.opsets.typing import Array
from sabir.schema import (
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    tensors,
)

n_gram_repeat_block = Operator(
    "NGramRepeatBlock",
    domain="com.microsoft",
    summary="`scores`, and -inf for each token that would complete an n-gram which `input_ids` has already.",
    body_opset=18,
)

Tid = Constraint("Tid", tensors("int64"))
T = Constraint("T", tensors("float"))

v1 = n_gram_repeat_block.first(
    1,
    inputs=[
        Input("input_ids", Tid, "The tokens up to now, [batch, sequence].", differentiable=False),
        Input("scores", T, "The scores of all tokens, [batch, vocabulary].", differentiable=True),
    ],
    outputs=[Output("scores_out", T, "The shape of `scores`.", differentiable=True)],
    attributes=[
        Attribute(
            "ngram_size", "int", "The number of tokens of an n-gram.", required=True, values=at_least(1)
        )
    ],
)

_END = np.iinfo(np.int64).max


_MOST_TOKENS = 64  # of an n-gram that is written as nodes


@v1.infer
def infer(ids: TensorType, scores: TensorType, /) -> TensorType:
    check_rank("input_ids", ids, 2)
    check_rank("scores", scores, 2)
    batch, vocabulary = scores.shape or (None, None)
    if ids.shape is not None:
        batch = same_dim([batch, ids.shape[0]], "the batches of `input_ids` and `scores`")
    return TensorType(scores.element, (batch, vocabulary))


@v1.evaluate
def evaluate(ids: Array, scores: Array, /, *, ngram_size: int) -> Array:
    hold(infer, ids, scores)
    y = scores.copy()
    rows, tokens = repeated(ids, ngram_size)
    outside = (tokens < 0) | (tokens >= scores.shape[1])
    if outside.any():
        raise ValueError(f"the token {tokens[outside][0]} is outside [0, {scores.shape[1] - 1}]")
    y[rows, tokens] = -np.inf
    return y


@v1.body
def body(b: Builder, ids: Value, scores: Value, /, *, ngram_size: int) -> Value:
    """The tokens after equal beginnings get the minimum of their score and -inf, all others of infinity."""
    if ngram_size > _MOST_TOKENS:
        raise Unconvertible(f"each token of an n-gram is three nodes, and an n-gram has {ngram_size}")
    number, before = Numbers(b, element("float")), ngram_size - 1
    following = _columns(b, ids, before, _END)
    bound = number(-np.inf)
    for j in range(before):
        last = _columns(b, ids, j - before, j - before + 1 or _END)
        equal = b.Equal(_columns(b, ids, j, j - before), last)
        bound = b.Where(equal, bound, number(np.inf))
        following = b.Where(equal, following, b.initializer("none", np.array(0, np.int64)))
    bound = b.Expand(bound, b.Shape(following))
    return b.ScatterElements(scores, following, bound, axis=1, reduction="min")


def _columns(b: Builder, x: Value, start: int, end: int) -> Value:
    return b.Slice(x, *(as_input(b, "columns", [n]) for n in (start, end, 1)))


@n_gram_repeat_block.examples
def examples() -> Iterator[Example]:
    ids = [[1, 2, 1, 2, 1], [3, 3, 3, 3, 3]]
    scores = np.arange(10, dtype=np.float32).reshape(2, 5)
    lost = -np.inf
    single = [[0, lost, lost, 3, 4], [5, 6, 7, lost, 9]]
    yield Example(1, ids, scores, ngram_size=1, expect=[single])
    for size in (2, 3, 4):
        yield Example(1, ids, scores, ngram_size=size, expect=[[[0, 1, lost, 3, 4], [5, 6, 7, lost, 9]]])
    yield Example(1, ids, scores, ngram_size=5, expect=[[[0, 1, 2, 3, 4], [5, 6, 7, lost, 9]]])
    for size in (6, 7, 9):
        yield Example(1, ids, scores, ngram_size=size, expect=[scores])
    yield Example(1, [[4], [0]], scores, ngram_size=2, expect=[scores])
    yield Example(1, [[4], [0]], scores, ngram_size=1, expect=[[[0, 1, 2, 3, lost], [lost, 6, 7, 8, 9]]])
    yield Example(1, np.zeros((2, 0), np.int64), scores, ngram_size=1, expect=[scores])
    yield Example(1, np.zeros((0, 3), np.int64), scores[:0], ngram_size=2, expect=[scores[:0]])
