"""RobertaTokenizer: the tokens of texts by RoBERTa's byte pair encoding."""

from collections.abc import Iterator

import numpy as np

from sabir.opsets.families.text import byte_pairs
from sabir.opsets.families.text.byte_pair_examples import LETTERS
from sabir.opsets.families.text.libraries import is_installed
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

roberta_tokenizer = Operator(
    "RobertaTokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of texts by byte pair encoding, between `<s>` and `</s>`.",
)

v1 = byte_pairs.declare(roberta_tokenizer, padding="`<pad>`")

_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


@v1.evaluate
def evaluate(
    text: Array, /, *, vocab: str, merges: str, added_token: str, padding_length: int
) -> tuple[Array, Array, Array]:
    table = byte_pairs.vocabulary_of(vocab)
    first, last, pad = (byte_pairs.number_of(table, name) for name in ("<s>", "</s>", "<pad>"))
    steps = byte_pairs.bytes_as_letters
    tokenizer = byte_pairs.tokenizer_of("RobertaTokenizer", steps, _SPECIALS, "", vocab, merges, added_token)
    return byte_pairs.evaluate(tokenizer, pad, text, padding_length, (first,), (last,))


@roberta_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions, except for the offsets after a space, which are wrong there."""
    if not is_installed("tokenizers"):  # an extra; tests/rooms/test_contrib.py says so
        return
    ids = [[21, 14, 15, 22, 23], [21, 14, 10, 15, 22]]
    mask = [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    spans = [[[0, 0], [1, 4], [4, 6], [0, 0], [0, 0]], [[0, 0], [1, 4], [5, 5], [5, 7], [0, 0]]]
    yield Example(1, [" lower", " low er"], **LETTERS, outputs=3, expect=[ids, mask, spans])
    yield Example(1, ["lower newer"], **LETTERS, padding_length=4, expect=[[[21, 0, 1, 2]]])
    longer = [[21, 0, 1, 2, 15, 17, 22, 23, 23]]
    yield Example(1, ["lower newer"], **LETTERS, padding_length=9, expect=[longer])
    yield Example(1, np.zeros(0, object), **LETTERS, expect=[np.zeros((0, 0), np.int64)])
