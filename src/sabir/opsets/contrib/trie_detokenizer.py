"""TrieDetokenizer: the texts of the tokens of TrieTokenizer."""

from collections.abc import Iterator

import numpy as np

from sabir.base import EvaluationError
from sabir.elements import STRING
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.text import strings
from sabir.opsets.families.text.trie_examples import VOCABULARY
from sabir.opsets.families.text.tries import VOCABULARY as VOCAB
from sabir.opsets.families.text.tries import vocabulary_of
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

trie_detokenizer = Operator(
    "TrieDetokenizer", domain="ai.onnx.contrib", summary="The texts of tokens, by their bytes."
)

v1 = strings.without_kernels(
    trie_detokenizer.first(
        1,
        inputs=[Input("ids", "tensor(int64)", "Tokens, [N, L]; 0 is padding.")],
        outputs=[
            Output(
                "str", strings.TEXT, "The texts, [N]; bytes that are no UTF-8 become the character U+FFFD."
            )
        ],
        attributes=[VOCAB],
    )
)


@v1.infer
def infer(ids: TensorType, /) -> TensorType:
    check_rank("ids", ids, 2)
    return TensorType(STRING, None if ids.shape is None else ids.shape[:1])


@v1.evaluate
def evaluate(ids: Array, /, *, vocab: str) -> Array:
    check_rank("ids", ids, 2)
    tokens = {0: b"", **vocabulary_of(vocab).tokens}
    unknown = next((n for n in ids.ravel().tolist() if n not in tokens), None)
    if unknown is not None:
        raise EvaluationError(f"`vocab` has no token with the number {unknown}")
    y: Array = np.empty(len(ids), object)
    y[:] = [b"".join(tokens[n] for n in row).decode(errors="replace") for row in ids.tolist()]
    return y


@trie_detokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    yield Example(1, [[3, 6, 0], [2, 7, 9]], vocab=VOCABULARY, expect=[["Hello world", "Hell日本 "]])
    yield Example(1, [[10, 11]], vocab=VOCABULARY, expect=[["é"]])
    yield Example(1, np.zeros((1, 0), np.int64), vocab=VOCABULARY, expect=[[""]])
