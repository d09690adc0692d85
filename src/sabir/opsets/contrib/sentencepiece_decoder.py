"""SentencepieceDecoder: the text of tokens by a model of sentencepiece."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import STRING
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import as_number, check_one, check_rank, check_shape
from sabir.opsets.families.text import sentence_pieces, strings
from sabir.opsets.families.text.libraries import is_installed
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

sentencepiece_decoder = Operator(
    "SentencepieceDecoder",
    domain="ai.onnx.contrib",
    summary="The text of tokens by a model of sentencepiece.",
)

v1 = strings.without_kernels(
    sentencepiece_decoder.first(
        1,
        inputs=[
            Input("ids", "tensor(int64)", "The tokens, [L] or [1, L]."),
            Input(
                "fairseq",
                "tensor(bool)",
                "Whether tokens have the numbers of fairseq, a tensor of one element.",
                optional=True,
            ),
        ],
        outputs=[Output("str", strings.TEXT, "The text, [1].")],
        attributes=[sentence_pieces.MODEL],
    )
)

_BATCHED = 2  # the rank of [1, L]


@v1.infer
def infer(ids: TensorType, fairseq: TensorType | None = None, /) -> TensorType:
    _check(ids)
    check_one("fairseq", fairseq)
    return TensorType(STRING, (1,))


def _check(ids: TensorType | Array) -> None:
    check_rank("ids", ids, 1, _BATCHED)
    if ids.shape is not None and len(ids.shape) == _BATCHED:
        check_shape("ids", ids, 1, None)


@v1.evaluate
def evaluate(ids: Array, fairseq: Array | None = None, /, *, model: str | bytes) -> Array:
    _check(ids)
    pieces = sentence_pieces.processor("SentencepieceDecoder", model)
    numbers: list[int] = ids.ravel().tolist()
    if fairseq is not None and as_number("fairseq", fairseq):
        numbers = [sentence_pieces.from_fairseq(pieces, n) for n in numbers]
        numbers = [n for n in numbers if n >= 0]
    count = pieces.get_piece_size()
    outside = [n for n in numbers if not 0 <= n < count]
    if outside:
        raise ValueError(f"the token {outside[0]} is outside [0, {count - 1}]")
    return np.array([pieces.decode(numbers)], object)


@sentencepiece_decoder.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    if not is_installed("sentencepiece"):  # an extra; tests/rooms/test_contrib.py says so
        return
    model = sentence_pieces.MODEL_EXAMPLE
    yield Example(1, [8, 3, 6, 7], model=model, expect=[["lower newest"]])
    yield Example(1, [[8, 3, 6, 7]], np.array([False]), model=model, expect=[["lower newest"]])
    yield Example(1, [5, 0, 2, 7, 1], np.array([True]), model=model, expect=[["wide new"]])
    yield Example(1, [1, 5, 2], model=model, expect=[["low"]])
    yield Example(1, np.zeros(0, np.int64), model=model, expect=[[""]])
