"""BpeDecoder: the text of tokens of byte pair encoding."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.elements import STRING
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_least_rank
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

bpe_decoder = Operator(
    "BpeDecoder",
    domain="ai.onnx.contrib",
    summary="The text of the tokens along the last axis.",
    lacks=("`en_normalization` and `whitespace_token`, which change the spaces of the text.",),
)

X = TypeVar("X")

v1 = strings.without_kernels(
    bpe_decoder.first(
        1,
        inputs=[Input("ids", "tensor(int64)", "Tokens, [..., L].")],
        outputs=[Output("str", strings.TEXT, "The texts, [...]; [1] for tokens of rank 1.")],
        attributes=[
            Attribute(
                "id_vocab", "string", "Lines with the tokens, in the order of their numbers.", required=True
            ),
            Attribute(
                "byte_decoder",
                "string",
                "Lines of the number of a character, a tabulator and the byte that it stands for.",
                required=True,
            ),
            Attribute("added_tokens", "string", "Lines of a number, a tabulator and a token.", default=""),
            Attribute("all_special_ids", "string", "Lines with the numbers of special tokens.", default=""),
            Attribute("skip_special_tokens", "int", "1: without special tokens.", default=0),
            Attribute("en_normalization", "int", "1: without spaces before punctuation.", default=0),
            Attribute("whitespace_token", "int", "1: spaces around special tokens.", default=0),
            Attribute(
                "bos_token", "string", "The first token of a text.", default="<|endoftext|>", legacy=True
            ),
            Attribute(
                "eos_token", "string", "The last token of a text.", default="<|endoftext|>", legacy=True
            ),
            Attribute("unk_token", "string", "The text of tokens without a number.", default="<|endoftext|>"),
        ],
    )
)


@v1.infer
def infer(ids: TensorType, /, *, en_normalization: int, whitespace_token: int) -> TensorType:
    if en_normalization or whitespace_token:
        raise UnsupportedError("BpeDecoder does not change spaces (en_normalization, whitespace_token)")
    check_least_rank("ids", ids, 1)
    return TensorType(STRING, None if ids.shape is None else ids.shape[:-1] or (1,))


@v1.evaluate
def evaluate(
    ids: Array,
    /,
    *,
    id_vocab: str,
    byte_decoder: str,
    added_tokens: str,
    all_special_ids: str,
    skip_special_tokens: int,
    en_normalization: int,
    whitespace_token: int,
    unk_token: str,
) -> Array:
    if en_normalization or whitespace_token:
        raise UnsupportedError("BpeDecoder does not change spaces (en_normalization, whitespace_token)")
    check_least_rank("ids", ids, 1)
    letters = {chr(character): byte for character, byte in _numbered(byte_decoder, int).items()}
    texts = {n: _bytes(token, letters) for n, token in enumerate(id_vocab.split("\n"))}
    texts |= {n: token.encode() for n, token in _numbered(added_tokens, str).items()}
    skipped = (
        {int(line) for line in all_special_ids.split("\n") if line} if skip_special_tokens else set[int]()
    )
    y: Array = np.empty(ids.shape[:-1] or (1,), object)
    y.reshape(-1)[:] = [
        _text([texts.get(n, unk_token.encode()) for n in row if n not in skipped])
        for row in ids.reshape(y.size, ids.shape[-1]).tolist()
    ]
    return y


def _numbered(text: str, kind: Callable[[str], X]) -> dict[int, X]:
    """Return the values of lines of a number, a tabulator and a value."""
    try:
        return {int(number): kind(value) for number, value in strings.table_of(text).items()}
    except ValueError as error:
        raise InferenceError(f"a line needs a number, a tabulator and its value: {error}") from error


def _bytes(token: str, letters: Mapping[str, int]) -> bytes:
    """Return the bytes of a token; a character that stands for no byte is itself."""
    return b"".join(
        bytes([letters[character]]) if character in letters else character.encode() for character in token
    )


def _text(parts: Sequence[bytes]) -> str:
    return b"".join(parts).decode(errors="replace")


@bpe_decoder.examples
def examples() -> Iterator[Example]:
    """By hand; onnxruntime-extensions leaves a space out of the second row."""
    words: dict[str, Any] = {
        "id_vocab": "l\no\ner\nĠlow\nÃ\n©\n<|endoftext|>",
        "byte_decoder": "\n".join(f"{ord(c)}\t{ord(c)}" for c in "lowerÃ©") + f"\n{ord('Ġ')}\t32",
        "added_tokens": "6\t<|endoftext|>",
        "all_special_ids": "6",
    }
    yield Example(1, [3, 2, 6, 0, 4, 5], **words, expect=[[" lower<|endoftext|>lé"]])
    yield Example(1, [[3, 2], [3, 6]], **words, skip_special_tokens=1, expect=[[" lower", " low"]])
    yield Example(1, [[[3, 99]]], **words, expect=[[[" low<|endoftext|>"]]])
    yield Example(1, np.zeros((2, 0), np.int64), **words, expect=[["", ""]])
