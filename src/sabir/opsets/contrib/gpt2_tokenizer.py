"""GPT2Tokenizer: the tokens of texts by GPT-2's byte pair encoding."""

from collections.abc import Iterator
from typing import Any

from sabir.opsets.families.text import byte_pairs
from sabir.opsets.families.text.byte_pair_examples import LETTERS
from sabir.opsets.families.text.libraries import is_installed
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

gpt2_tokenizer = Operator(
    "GPT2Tokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of texts by byte pair encoding; the text starts with no space.",
)

v1 = byte_pairs.declare(gpt2_tokenizer, padding="0")


@v1.evaluate
def evaluate(
    text: Array, /, *, vocab: str, merges: str, added_token: str, padding_length: int
) -> tuple[Array, Array, Array]:
    steps, specials = byte_pairs.bytes_as_letters, ("<|endoftext|>",)
    tokenizer = byte_pairs.tokenizer_of("GPT2Tokenizer", steps, specials, "", vocab, merges, added_token)
    return byte_pairs.evaluate(tokenizer, 0, text, padding_length)


@gpt2_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    if not is_installed("tokenizers"):  # an extra; tests/rooms/test_contrib.py says so
        return
    words = [" lower", " low er"]
    yield Example(
        1, words, **LETTERS, outputs=2, expect=[[[14, 15, 0], [14, 10, 15]], [[1, 1, 0], [1, 1, 1]]]
    )
    spans = [[[0, 1], [1, 2], [2, 3], [4, 7]]]
    yield Example(1, ["low low"], **LETTERS, outputs=3, expect=[[[0, 1, 2, 14]], [[1] * 4], spans])
    yield Example(1, [["low"], ["er"]], **LETTERS, expect=[[[[0, 1, 2]], [[15, 0, 0]]]])
    yield Example(1, ["low<|endoftext|>"], **LETTERS, padding_length=3, expect=[[[0, 1, 2]]])
    yield Example(1, "low", **LETTERS, padding_length=5, outputs=2, expect=[[0, 1, 2, 0, 0], [1, 1, 1, 0, 0]])
    more: dict[str, Any] = {**LETTERS, "added_token": "<x>=77"}
    yield Example(1, ["low<x>er"], **more, expect=[[[0, 1, 2, 77, 15]]])
    yield Example(1, [""], **LETTERS, model_name="GPT2", outputs=2)
