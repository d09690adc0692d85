"""BertTokenizer: the tokens of a text or of a pair of texts by BERT's word pieces."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import TensorType, product
from sabir.opsets.families.text import strings, word_pieces
from sabir.opsets.families.text.libraries import is_installed, library
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

bert_tokenizer = Operator(
    "BertTokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of one text or of two, with those that BERT reads before, between and after them.",
)

v1 = strings.without_kernels(
    bert_tokenizer.first(
        1,
        inputs=[Input("text", strings.TEXT, "One text or two, a tensor of one element or of two.")],
        outputs=[
            Output("input_ids", "tensor(int64)", "The tokens, [L]."),
            Output(
                "token_type_ids", "tensor(int64)", "0 for tokens of the first text, 1 of the second, [L]."
            ),
            Output("attention_mask", "tensor(int64)", "Ones, [L].", optional=True),
            Output(
                "offset_mapping",
                "tensor(int64)",
                "The first character of each token in its text and that after its last, [L, 2].",
                optional=True,
            ),
        ],
        attributes=[
            word_pieces.VOCABULARY,
            *word_pieces.SPECIALS,
            Attribute("do_lower_case", "int", "1: texts are read in lower case.", default=1),
            Attribute("do_basic_tokenize", "int", "0: words are divided at spaces only.", default=1),
            Attribute("tokenize_chinese_chars", "int", "1: each ideograph is a word.", default=1),
            Attribute("strip_accents", "int", "1: accents are removed.", default=0),
            Attribute(
                "truncation_strategy_name",
                "string",
                "Which text is cut: longest_first, only_first or only_second.",
                default="longest_first",
            ),
            Attribute("max_length", "int", "The largest L; no limit if it is -1.", default=-1),
        ],
    )
)

_MOST_TEXTS = 2
_LONGEST_WORD = 200  # characters; a longer word is unknown
_CACHED = 4  # tokenizers


@v1.infer
def infer(text: TensorType, /) -> tuple[TensorType, ...]:
    count = None if text.shape is None else product(text.shape)
    if isinstance(count, int) and not 1 <= count <= _MOST_TEXTS:
        raise InferenceError(f"`text` must be one text or two, and there are {count}")
    row = TensorType(INT64, (None,))
    return row, row, row, TensorType(INT64, (None, 2))


@v1.evaluate
def evaluate(
    text: Array, /, *, truncation_strategy_name: str, max_length: int, **attributes: Any
) -> tuple[Array, Array, Array, Array]:
    if not 1 <= text.size <= _MOST_TEXTS:
        raise ValueError(f"`text` must be one text or two, and there are {text.size}")
    tokenizer = _tokenizer(**attributes)
    tokenizer.no_truncation()
    if max_length >= 0:
        tokenizer.enable_truncation(max_length, strategy=truncation_strategy_name)
    found = tokenizer.encode(*(strings.as_str(word) for word in text.ravel().tolist()))
    rows = (found.ids, found.type_ids, found.attention_mask)
    ids, types, mask = (np.array(row, np.int64) for row in rows)
    return ids, types, mask, np.array(found.offsets, np.int64).reshape(len(ids), 2)


@functools.lru_cache(_CACHED)
def _tokenizer(
    *,
    vocab_file: str,
    unk_token: str,
    sep_token: str,
    cls_token: str,
    suffix_indicator: str,
    do_lower_case: int,
    do_basic_tokenize: int,
    tokenize_chinese_chars: int,
    strip_accents: int,
    **_: str,
) -> Any:
    tokenizers = library("tokenizers", "BertTokenizer")
    table = word_pieces.vocabulary_of(vocab_file, unk_token, sep_token, cls_token)
    model = tokenizers.models.WordPiece(
        table,
        unk_token=unk_token,
        continuing_subword_prefix=suffix_indicator,
        max_input_chars_per_word=_LONGEST_WORD,
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(tokenize_chinese_chars),
        strip_accents=bool(strip_accents),
        lowercase=bool(do_lower_case),
    )
    words = tokenizers.pre_tokenizers
    tokenizer.pre_tokenizer = words.BertPreTokenizer() if do_basic_tokenize else words.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(
        (sep_token, table[sep_token]), (cls_token, table[cls_token])
    )
    return tokenizer


VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] hello world ##s un ##aff ##able , ! é e 中 文 HELLO"


@bert_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions; it does not cut pairs."""
    if not is_installed("tokenizers"):  # an extra; tests/rooms/test_contrib.py says so
        return
    words: dict[str, Any] = {"vocab_file": "\n".join(VOCABULARY.split(" "))}
    ids = [2, 5, 11, 8, 9, 10, 12, 3]
    spans = [[0, 0], [0, 5], [5, 6], [7, 9], [9, 12], [12, 16], [16, 17], [0, 0]]
    yield Example(1, ["Hello, unaffable!"], **words, outputs=4, expect=[ids, [0] * 8, [1] * 8, spans])
    two = [[2, 5, 3, 6, 5, 3], [0, 0, 0, 1, 1, 1], [1] * 6]
    yield Example(1, ["hello", "world hello"], **words, outputs=3, expect=two)
    calls: list[tuple[str, list[int], dict[str, Any]]] = [
        ("HELLO", [17], {"do_lower_case": 0}), ("é zzz 中文", [14, 1, 15, 16], {"strip_accents": 1}),
        ("é", [13], {}), ("", [], {}), ("hello [MASK] world", [5, 1, 1, 1, 6], {}),
        ("hello world worlds", [5, 6], {"max_length": 4}),
        ("hello, world", [1, 6], {"do_basic_tokenize": 0}), ("un" + "s" * 199, [1], {}),
    ]  # fmt: skip
    for text, inner, changed in calls:
        yield Example(1, [text], **words, **changed, outputs=2, expect=[[2, *inner, 3]])
    cut: dict[str, Any] = {"max_length": 5, "truncation_strategy_name": "only_first"}
    yield Example(1, [["hello world", "world"]], **words, **cut, outputs=2, expect=[[2, 5, 3, 6, 3]])
