"""SentencepieceTokenizer: the tokens of texts by a model of sentencepiece."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sabir.base import EvaluationError
from sabir.elements import INT32, INT64
from sabir.ir import TensorType, add, product
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.families.text import sentence_pieces, strings
from sabir.opsets.families.text.libraries import is_installed
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

sentencepiece_tokenizer = Operator(
    "SentencepieceTokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of texts by a model of sentencepiece, one text after another.",
    random=True,
)

v1 = strings.without_kernels(
    sentencepiece_tokenizer.first(
        1,
        inputs=[
            Input("inputs", strings.TEXT, "Texts, of any shape; N of them."),
            Input(
                "nbest_size",
                "tensor(int64)",
                "0 or 1: the best tokens; otherwise tokens are drawn from so many best ones, below 0 from "
                "all. A tensor of one element, as all that follow.",
            ),
            Input("alpha", "tensor(float)", "How the probabilities of drawn tokens are smoothed."),
            Input("add_bos", "tensor(bool)", "Whether a token precedes each text."),
            Input("add_eos", "tensor(bool)", "Whether a token follows each text."),
            Input("reverse", "tensor(bool)", "Whether the tokens of each text are reversed."),
            Input("fairseq", "tensor(bool)", "Whether tokens have the numbers of fairseq.", optional=True),
        ],
        outputs=[
            Output("tokens", "tensor(int32)", "The tokens of all texts, [L]."),
            Output(
                "instance_indices",
                "tensor(int64)",
                "The first token of each text, and L: [N + 1].",
                optional=True,
            ),
            Output(
                "token_indices",
                "tensor(int32)",
                "The first character of each token in its text, [L].",
                optional=True,
            ),
        ],
        attributes=[sentence_pieces.MODEL],
    )
)

_NAMES = ("nbest_size", "alpha", "add_bos", "add_eos", "reverse", "fairseq")


class _Options(NamedTuple):
    """The inputs of one element."""

    best: int
    alpha: float
    first: bool
    last: bool
    reverse: bool
    fairseq: bool = False


@v1.infer
def infer(text: TensorType, /, *options: TensorType | None) -> tuple[TensorType, ...]:
    for name, kind in zip(_NAMES, options, strict=False):
        check_one(name, kind)
    rows = None if text.shape is None else add(product(text.shape), 1)
    return TensorType(INT32, (None,)), TensorType(INT64, (rows,)), TensorType(INT32, (None,))


@v1.evaluate
def evaluate(text: Array, /, *options: Array | None, model: str | bytes) -> tuple[Array, Array, Array]:
    numbers = [as_number(name, x) for name, x in zip(_NAMES, options, strict=False) if x is not None]
    chosen = _Options(*numbers)
    pieces = sentence_pieces.processor("SentencepieceTokenizer", model)
    tokens: list[int] = []
    places: list[int] = []
    starts = [0]
    for word in text.ravel().tolist():
        found = _encoded(pieces, strings.as_str(word), chosen)
        tokens += [number for number, _ in found]
        places += [place for _, place in found]
        starts.append(len(tokens))
    return np.array(tokens, np.int32), np.array(starts, np.int64), np.array(places, np.int32)


def _encoded(pieces: Any, text: str, options: _Options) -> list[tuple[int, int]]:
    """Return the tokens of a text, each with the place of its first character."""
    drawn = options.best not in {0, 1}
    names = sentence_pieces.encoded(pieces, text, options.best if drawn else None, options.alpha)
    found = [(piece.id, piece.begin) for piece in names]
    if options.first:
        found.insert(0, (pieces.bos_id(), 0))
    if options.last:
        found.append((pieces.eos_id(), len(text)))
    if any(number < 0 for number, _ in found):
        raise EvaluationError("the model has no token before texts, or none after them")
    if options.fairseq:
        found = [(sentence_pieces.to_fairseq(pieces, number), place) for number, place in found]
    return found[::-1] if options.reverse else found


@sentencepiece_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions."""
    if not is_installed("sentencepiece"):  # an extra; tests/rooms/test_contrib.py says so
        return
    model = sentence_pieces.MODEL_EXAMPLE
    no, yes = np.array([False]), np.array([True])
    plain = [1], np.array([0], np.float32)
    ids, places = [8, 3, 6, 7, 4], [0, 4, 5, 9, 0]
    two = ["lower newest", "wide"]
    yield Example(1, two, *plain, no, no, no, model=model, outputs=3, expect=[ids, [0, 4, 5], places])
    ends = [[1, 8, 3, 6, 7, 2, 1, 2], [0, 6, 8], [0, 0, 4, 5, 9, 12, 0, 0]]
    yield Example(1, ["lower newest", ""], *plain, yes, yes, no, model=model, outputs=3, expect=ends)
    turned = [[7, 6, 3, 8, 1, 4, 1], [0, 5, 7], [9, 5, 4, 0, 0, 0, 0]]
    yield Example(1, two, *plain, yes, no, yes, no, model=model, outputs=3, expect=turned)
    fairseq = [[0, 9, 4, 18, 3, 20, 17, 2], [0, 8], [0, 0, 4, 5, 6, 7, 8, 9]]
    yield Example(1, ["lower zed"], *plain, yes, yes, no, yes, model=model, outputs=3, expect=fairseq)
    drawn = [-1], np.array([0.1], np.float32)
    yield Example(1, [["lower"]], *drawn, no, no, no, model=model, outputs=1)
    none = np.zeros(0, np.int32)
    yield Example(1, np.zeros(0, object), *plain, no, no, no, model=model, outputs=2, expect=[none, [0]])
