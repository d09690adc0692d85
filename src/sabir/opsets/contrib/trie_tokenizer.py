"""TrieTokenizer: the longest tokens of texts, as RWKV's tokenizer finds them."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.families.text import strings
from sabir.opsets.families.text.trie_examples import VOCABULARY
from sabir.opsets.families.text.tries import VOCABULARY as VOCAB
from sabir.opsets.families.text.tries import vocabulary_of
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

trie_tokenizer = Operator(
    "TrieTokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of texts: from the first byte on the longest one of the vocabulary.",
)

v1 = strings.without_kernels(
    trie_tokenizer.first(
        1,
        inputs=[Input("str", strings.TEXT, "Texts, [N].")],
        outputs=[Output("ids", "tensor(int64)", "Tokens, [N, L]; shorter texts are padded with 0.")],
        attributes=[VOCAB],
    )
)


@v1.infer
def infer(text: TensorType, /) -> TensorType:
    check_rank("str", text, 1)
    return TensorType(INT64, None if text.shape is None else (text.shape[0], None))


@v1.evaluate
def evaluate(text: Array, /, *, vocab: str) -> Array:
    check_rank("str", text, 1)
    vocabulary = vocabulary_of(vocab)
    rows = [vocabulary.encoded(strings.as_str(word).encode()) for word in text.tolist()]
    shape = allotted((len(rows), max(map(len, rows), default=0)), np.dtype(np.int64), text.size)
    ids = np.zeros(shape, np.int64)
    for row, found in zip(ids, rows, strict=True):
        row[: len(found)] = found
    return ids


@trie_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    texts = ["Hello world", "Hell日本"]
    yield Example(1, texts, vocab=VOCABULARY, expect=[[[3, 6], [2, 7]]])
    yield Example(1, ["He H é"], vocab=VOCABULARY, expect=[[[1, 9, 4, 9, 10, 11]]])
    yield Example(1, ["", "He"], vocab=VOCABULARY, expect=[[[0], [1]]])
    yield Example(1, np.zeros(0, object), vocab=VOCABULARY, expect=[np.zeros((0, 0), np.int64)])
