"""BertTokenizerDecoder: the text of BERT's tokens."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.elements import STRING
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.opsets.families.text import strings, word_pieces
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

bert_tokenizer_decoder = Operator(
    "BertTokenizerDecoder", domain="ai.onnx.contrib", summary="The text of tokens, or of ranges of them."
)

v1 = strings.without_kernels(
    bert_tokenizer_decoder.first(
        1,
        inputs=[
            Input("ids", "tensor(int64)", "The tokens, [L]."),
            Input(
                "position",
                "tensor(int64)",
                "The first token of each range and that after its last, [M, 2]; read if `use_indices` is 1.",
            ),
        ],
        outputs=[Output("str", strings.TEXT, "The texts of the ranges, [M]; without ranges the text, [1].")],
        attributes=[
            word_pieces.VOCABULARY,
            *word_pieces.SPECIALS,
            Attribute("use_indices", "int", "1: texts of ranges.", default=0),
            Attribute("skip_special_tokens", "int", "1: without the tokens around texts.", default=0),
            Attribute(
                "clean_up_tokenization_spaces", "int", "1: without spaces before punctuation.", default=1
            ),
        ],
    )
)

_BEFORE_PUNCTUATION = re.compile(r" (?=[.?!,]|n't\b|'(?:m|s|ve|re)\b)")
_QUOTED = " ' "


@v1.infer
def infer(ids: TensorType, position: TensorType, /, *, use_indices: int) -> TensorType:
    check_rank("ids", ids, 1)
    if not use_indices:
        return TensorType(STRING, (1,))
    check_shape("position", position, None, 2)
    return TensorType(STRING, position.shape[:1] if position.shape else (None,))


@v1.evaluate
def evaluate(
    ids: Array,
    position: Array,
    /,
    *,
    use_indices: int,
    skip_special_tokens: int,
    clean_up_tokenization_spaces: int,
    vocab_file: str,
    suffix_indicator: str,
    **specials: str,
) -> Array:
    check_rank("ids", ids, 1)
    tokens = word_pieces.lines_of(vocab_file)
    outside = (ids < 0) | (ids >= len(tokens))
    if outside.any():
        raise ValueError(f"the token {ids[outside][0]} is outside [0, {len(tokens) - 1}]")
    ranges = [(0, len(ids))]
    if use_indices:
        check_shape("position", position, None, 2)
        ranges = position.tolist()
    skipped = {*specials.values()} if skip_special_tokens else set[str]()
    y: Array = np.empty(len(ranges), object)
    for n, (start, end) in enumerate(ranges):
        if not 0 <= start <= end <= len(ids):
            raise ValueError(f"the range from {start} to {end} is not one of {len(ids)} tokens")
        chosen: list[int] = ids[start:end].tolist()
        words = [token for token in (tokens[number] for number in chosen) if token not in skipped]
        text = _joined(words, suffix_indicator)
        y[n] = _clean(text) if clean_up_tokenization_spaces else text
    return y


def _joined(tokens: Sequence[str], suffix: str) -> str:
    return "".join(
        token.removeprefix(suffix) if token.startswith(suffix) else f" {token}" for token in tokens
    ).removeprefix(" ")


def _clean(text: str) -> str:
    return _BEFORE_PUNCTUATION.sub("", text).replace(_QUOTED, "'")


@bert_tokenizer_decoder.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    words: dict[str, Any] = {"vocab_file": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n,\n!"}
    ids, none = [2, 5, 6, 7, 8, 9, 3], np.zeros((0, 2), np.int64)
    yield Example(1, ids, none, **words, expect=[["[CLS] hello worlds,! [SEP]"]])
    skips: dict[str, Any] = {**words, "skip_special_tokens": 1}
    yield Example(1, ids, none, **skips, expect=[["hello worlds,!"]])
    yield Example(1, ids, none, **skips, clean_up_tokenization_spaces=0, expect=[["hello worlds , !"]])
    yield Example(1, ids, [[1, 4], [1, 2]], **words, use_indices=1, expect=[["hello worlds", "hello"]])
    yield Example(1, none[:, 0], none, **words, use_indices=1, expect=[np.zeros(0, object)])
