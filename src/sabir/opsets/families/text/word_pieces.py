"""The vocabulary of BERT's tokenizer, as onnxruntime-extensions writes it into attributes."""

from __future__ import annotations

from sabir.base import InferenceError
from sabir.schema import Attribute

SPECIALS = (
    Attribute("unk_token", "string", "The token of words that the vocabulary lacks.", default="[UNK]"),
    Attribute("sep_token", "string", "The token after each text.", default="[SEP]"),
    Attribute("pad_token", "string", "The token of padding.", default="[PAD]"),
    Attribute("cls_token", "string", "The token before the first text.", default="[CLS]"),
    Attribute("mask_token", "string", "The token of a word to guess.", default="[MASK]"),
    Attribute("suffix_indicator", "string", "What precedes a token that continues a word.", default="##"),
)
VOCABULARY = Attribute(
    "vocab_file", "string", "Lines with the tokens, in the order of their numbers.", required=True
)


def lines_of(text: str) -> list[str]:
    """Return the tokens in the order of their numbers; empty lines are none."""
    return [line for line in text.splitlines() if line]


def vocabulary_of(text: str, *needed: str) -> dict[str, int]:
    """Return the numbers of the tokens; raises InferenceError where a needed one is missing."""
    table = {token: number for number, token in enumerate(lines_of(text))}
    for token in needed:
        if token not in table:
            raise InferenceError(f"`vocab_file` lacks the token {token}")
    return table
