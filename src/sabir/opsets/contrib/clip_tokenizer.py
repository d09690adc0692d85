"""CLIPTokenizer: the tokens of texts by CLIP's byte pair encoding."""

from collections.abc import Iterator
from typing import Any

from sabir.opsets.families.text import byte_pairs
from sabir.opsets.families.text.byte_pair_examples import WORDS
from sabir.opsets.families.text.libraries import is_installed
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

clip_tokenizer = Operator(
    "CLIPTokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of texts in lower case by byte pair encoding, between `<|startoftext|>` and "
    "`<|endoftext|>`.",
)

v1 = byte_pairs.declare(clip_tokenizer, padding="`<|endoftext|>`")

_SPECIALS = ("<|startoftext|>", "<|endoftext|>")
_PARTS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


@v1.evaluate
def evaluate(
    text: Array, /, *, vocab: str, merges: str, added_token: str, padding_length: int
) -> tuple[Array, Array, Array]:
    table = byte_pairs.vocabulary_of(vocab)
    first, last = (byte_pairs.number_of(table, name) for name in _SPECIALS)
    tokenizer = byte_pairs.tokenizer_of(
        "CLIPTokenizer", _build, _SPECIALS, "</w>", vocab, merges, added_token
    )
    return byte_pairs.evaluate(tokenizer, last, text, padding_length, (first,), (last,))


def _build(tokenizers: Any, tokenizer: Any) -> None:
    steps, parts = tokenizers.normalizers, tokenizers.pre_tokenizers
    tokenizer.normalizer = steps.Sequence([
        steps.NFC(),
        steps.Replace(tokenizers.Regex(r"\s+"), " "),
        steps.Lowercase(),
    ])
    tokenizer.pre_tokenizer = parts.Sequence([
        parts.Split(tokenizers.Regex(_PARTS), behavior="removed", invert=True),
        parts.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


@clip_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions, except for the ends of words, whose suffix it counts as characters."""
    if not is_installed("tokenizers"):  # an extra; tests/rooms/test_contrib.py says so
        return
    ids, mask = [[21, 10, 2, 16, 22], [21, 15, 22, 22, 22]], [[1] * 5, [1, 1, 1, 0, 0]]
    spans = [[[0, 0], [0, 2], [2, 3], [3, 5], [0, 0]], [[0, 0], [1, 4], [0, 0], [0, 0], [0, 0]]]
    yield Example(1, ["lower", " LOW"], **WORDS, outputs=3, expect=[ids, mask, spans])
    yield Example(1, ["low er"], **WORDS, padding_length=7, expect=[[[21, 15, 16, 22, 22, 22, 22]]])
    yield Example(1, ["low er low er"], **WORDS, padding_length=4, expect=[[[21, 15, 16, 15]]])
    yield Example(1, ["l w"], **WORDS, expect=[[[21, 11, 12, 22]]])  # each part is a token too
