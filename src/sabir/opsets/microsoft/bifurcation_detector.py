"""BifurcationDetector: a step of aggressive decoding, which accepts predictions up to the first new token."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import as_list, as_number, check_one, check_rank, hold
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, at_least, tensors

bifurcation_detector = Operator(
    "BifurcationDetector",
    domain="com.microsoft",
    summary="`cur_tokens` and the predictions up to the first that `src_tokens` does not have, and the "
    "place in `src_tokens` after the last n-gram of the result.",
)

T = Constraint("T", tensors("int64"))

v1 = bifurcation_detector.first(
    1,
    inputs=[
        Input("src_tokens", T, "The tokens of the encoder, [S].", differentiable=False),
        Input("cur_tokens", T, "The tokens of the decoder, [C].", differentiable=False),
        Input(
            "prev_suffix_match_idx",
            T,
            "The place in `src_tokens` from which tokens were predicted: one number from 0 to S.",
            differentiable=False,
        ),
        Input(
            "pred_tokens",
            T,
            "Predictions of `src_tokens` from that place and of one token more: "
            "[S + 1 - prev_suffix_match_idx].",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[
        Output("tokens", T, "The tokens of the decoder with the accepted predictions."),
        Output(
            "suffix_match_idx",
            T,
            "The place after the only occurrence of the shortest last n-gram of `tokens` that `src_tokens` "
            "has once; -1 if there is none. The shape of `prev_suffix_match_idx`.",
        ),
    ],
    attributes=[
        Attribute("max_ngram_size", "int", "The longest n-gram.", default=3, values=at_least(1)),
        Attribute("min_ngram_size", "int", "The shortest n-gram.", default=1, values=at_least(1)),
    ],
)

v1.absent("lower", "the number of tokens depends on their values")
v1.absent("gradient", "the results are integers")


@v1.infer
def infer(
    source: TensorType,
    current: TensorType,
    place: TensorType,
    predicted: TensorType | None = None,
    /,
    *,
    max_ngram_size: int,
    min_ngram_size: int,
) -> tuple[TensorType, TensorType]:
    if max_ngram_size < min_ngram_size:
        raise InferenceError(f"`max_ngram_size` {max_ngram_size} is below `min_ngram_size` {min_ngram_size}")
    for name, kind in (("src_tokens", source), ("cur_tokens", current), ("pred_tokens", predicted)):
        check_rank(name, kind, 1)
    check_one("prev_suffix_match_idx", place)
    tokens = current.shape if predicted is None else (None,)
    return TensorType(source.element, tokens), TensorType(source.element, place.shape)


@v1.evaluate
def evaluate(
    source: Array,
    current: Array,
    place: Array,
    predicted: Array | None = None,
    /,
    *,
    max_ngram_size: int,
    min_ngram_size: int,
) -> tuple[Array, Array]:
    hold(
        infer, source, current, place, predicted, max_ngram_size=max_ngram_size, min_ngram_size=min_ngram_size
    )
    start = as_number("prev_suffix_match_idx", place)
    tokens = current
    if predicted is not None:
        tokens = np.concatenate([current, _accepted(source, start, predicted)])
    found = _place_after_suffix(source, tokens, min_ngram_size, max_ngram_size)
    return tokens, np.full(place.shape, found, np.int64)


def _accepted(source: Array, start: int, predicted: Array) -> Array:
    """Return the predictions up to the first that the source does not have."""
    if not 0 <= start <= len(source):
        raise ValueError(f"`prev_suffix_match_idx` must be in [0, {len(source)}], and is {start}")
    count = len(source) + 1 - start
    if len(predicted) != count:
        raise ValueError(f"{count} tokens must be predicted, and there are {len(predicted)}")
    differs = np.flatnonzero(source[start:] != predicted[:-1])
    return predicted[: differs[0] + 1] if differs.size else predicted


def _place_after_suffix(source: Array, tokens: Array, least: int, most: int) -> int:
    """Return the place after the shortest suffix of `tokens` that the source has once, or -1."""
    for size in range(least, min(most, len(tokens), len(source)) + 1):
        suffix = as_list("tokens", tokens[len(tokens) - size :])
        equal = np.ones(len(source) - size + 1, bool)
        for j, token in enumerate(suffix):
            equal &= source[j : j + len(equal)] == token
        places = np.flatnonzero(equal)
        if len(places) == 1:
            return int(places[0]) + size
    return -1


@bifurcation_detector.examples
def examples() -> Iterator[Example]:
    source = [1, 2, 3, 4, 5]
    calls: list[tuple[list[int], list[int], int, list[int]]] = [
        (source, [9, 1], 0, [1, 2, 3, 7, 8, 9]), (source, [9, 1], 0, [1, 2, 3, 4, 5, 6]),
        (source, [9, 1], 2, [3, 4, 7, 8]), (source, [9, 1], 2, [1, 4, 7, 8]), ([1, 2, 3], [1], 3, [4]),
        ([1, 2, 3, 2, 3], [1], 0, [2, 1, 1, 1, 1, 1]),
    ]  # fmt: skip
    for call in calls:
        yield Example(1, *(np.array(part, np.int64) for part in call), outputs=2)
    nothing = np.zeros(0, np.int64)
    yield Example(1, nothing, [1], 0, [1], outputs=2, expect=[[1, 1], -1])
    yield Example(1, source, nothing, 0, [1, 4, 7, 8, 9, 9], outputs=2, expect=[[1, 4], 4])
    for text, current in (
        (source, [9, 1]), ([1, 2, 3, 2, 3], [9, 2]), ([1, 2, 3, 2, 3], [1, 2]), ([1, 2, 3, 2, 3], [3, 2]),
        ([1, 2, 3], [3]), ([1, 2, 3], [8]), ([1, 2, 1, 2, 3], [1, 2]), ([1, 2, 4, 1, 2, 3], [4, 1, 2]),
    ):  # fmt: skip
        yield Example(1, text, current, 0, outputs=2)
        yield Example(1, text, current, [0], None, outputs=2, min_ngram_size=2, max_ngram_size=5)
    yield Example(1, [1, 2, 3, 2, 3], [2, 3, 2], 0, outputs=2, max_ngram_size=1)
    yield Example(1, [1, 2, 3], [1, 2, 3], 0, outputs=2, min_ngram_size=3, expect=[[1, 2, 3], 3])
