"""SpmTokenizer: the tokens of texts by byte pairs whose spaces are characters, as those of Llama."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.opsets.families.text import byte_pairs
from sabir.opsets.families.text.byte_pair_examples import PIECES
from sabir.opsets.families.text.libraries import is_installed, library
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

spm_tokenizer = Operator(
    "SpmTokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of texts by byte pair encoding, `<s>` before them. Each text, and what follows a "
    "special token, starts with a space; spaces are `▁`, and other characters may be tokens of bytes.",
)

v1 = byte_pairs.declare(spm_tokenizer, padding="4294967295, which is no token")

_BEGIN, _UNKNOWN, _SPACE = "<s>", "<unk>", "▁"
_PADDING = 2**32 - 1
_CACHED = 4  # tokenizers


@v1.evaluate
def evaluate(
    text: Array, /, *, vocab: str, merges: str, added_token: str, padding_length: int
) -> tuple[Array, Array, Array]:
    begin = byte_pairs.number_of(byte_pairs.vocabulary_of(vocab), _BEGIN)
    tokenizer = _tokenizer(vocab, merges, added_token)
    return byte_pairs.evaluate(tokenizer, _PADDING, text, padding_length, (begin,))


@functools.lru_cache(_CACHED)
def _tokenizer(vocab: str, merges: str, added: str) -> Any:
    tokenizers = library("tokenizers", "SpmTokenizer")
    table = byte_pairs.vocabulary_of(vocab)
    byte_pairs.number_of(table, _UNKNOWN)
    more = byte_pairs.added_tokens(added)
    try:
        model = tokenizers.models.BPE(
            vocab={**more, **table}, merges=byte_pairs.pairs_of(merges), byte_fallback=True,
            unk_token=_UNKNOWN,
        )  # fmt: skip
    except Exception as error:
        raise InferenceError(f"`vocab` and `merges` do not fit each other: {error}") from error
    tokenizer = tokenizers.Tokenizer(model)
    steps = tokenizers.normalizers
    tokenizer.normalizer = steps.Sequence([steps.Prepend(_SPACE), steps.Replace(" ", _SPACE)])
    tokenizer.add_special_tokens([tokenizers.AddedToken(name, normalized=False) for name in more])
    return tokenizer


@spm_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    if not is_installed("tokenizers"):  # an extra; tests/rooms/test_contrib.py says so
        return
    yield Example(
        1,
        ["low er", "lower low"],
        **PIECES,
        outputs=2,
        expect=[[[1, 12, 4, 13], [1, 12, 13, 12]], [[1] * 4] * 2],
    )
    yield Example(1, ["low  er "], **PIECES, model_name="Llama", expect=[[[1, 12, 4, 4, 13, 4]]])
    yield Example(1, ["a lo<s>er<pad>"], **PIECES, expect=[[[1, 4, 20, 11, 1, 4, 13, 3]]])
    padded = [[[1, 12, 13, 12], [1, 12, _PADDING, _PADDING]], [[1, 1, 1, 1], [1, 1, 0, 0]]]
    yield Example(1, ["lower low", "low"], **PIECES, outputs=2, expect=padded)
    yield Example(1, ["", "low"], **PIECES, padding_length=1, outputs=2, expect=[[[1], [1]], [[1], [1]]])
    yield Example(1, [["low"]], **PIECES, outputs=3)
    yield Example(1, np.zeros(0, object), **PIECES)
