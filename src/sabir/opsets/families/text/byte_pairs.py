"""Tokenizers by byte pair encoding, as GPT-2's, RoBERTa's and CLIP's, in onnxruntime-extensions."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.families.text import strings
from sabir.opsets.families.text.libraries import library
from sabir.schema import Attribute, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array
    from sabir.schema import Operator, Version

_CACHED = 4  # tokenizers
_COMMENT = "#version"


_ATTRIBUTES = (
    Attribute("vocab", "string", "The tokens and their numbers, a JSON object.", required=True),
    Attribute("merges", "string", "Lines of two tokens that become one, in their order.", required=True),
    Attribute("added_token", "string", "Lines of further tokens, each with `=` and its number.", default=""),
    Attribute("padding_length", "int", "L; that of the longest text if it is -1.", default=-1),
    Attribute(
        "model_name", "string", "The name of the model, which changes nothing.", default="", legacy=True
    ),
)


def declare(operator: Operator, *, padding: str, attributes: tuple[Attribute, ...] = _ATTRIBUTES) -> Version:
    """Declare a tokenizer, with its type rule; `padding` says which token pads."""
    version = operator.first(
        1,
        inputs=[Input("input_text", strings.TEXT, "Texts, of any shape.")],
        outputs=[
            Output(
                "input_ids", "tensor(int64)", f"Tokens, the shape of the texts and L; padded with {padding}."
            ),
            Output(
                "attention_mask",
                "tensor(int64)",
                "1 for tokens and 0 for padding, the shape of `input_ids`.",
                optional=True,
            ),
            Output(
                "offset_mapping",
                "tensor(int64)",
                "The first character of each token and that after its last, [..., L, 2]; 0 for padding and "
                "for tokens that are not in the text.",
                optional=True,
            ),
        ],
        attributes=[*attributes],
    )
    if attributes is _ATTRIBUTES:
        version.infer(infer)
    return strings.without_kernels(version)


def infer(text: TensorType, /, *, padding_length: int) -> tuple[TensorType, TensorType, TensorType]:
    """Infer tokens, their mask and their offsets."""
    if text.shape is None:
        unknown = TensorType(INT64)
        return unknown, unknown, unknown
    length: Dim = padding_length if padding_length >= 0 else None
    rows = TensorType(INT64, (*text.shape, length))
    return rows, rows, TensorType(INT64, (*text.shape, length, 2))


def evaluate(
    tokenizer: Any,
    pad: int,
    text: Array,
    length: int,
    first: tuple[int, ...] = (),
    last: tuple[int, ...] = (),
) -> tuple[Array, Array, Array]:
    """Return tokens, their mask and their offsets; `first` and `last` are put around those of each text."""
    found = [tokenizer.encode(strings.as_str(word)) for word in text.ravel().tolist()]
    before, after = [(0, 0)] * len(first), [(0, 0)] * len(last)
    rows = [([*first, *encoding.ids, *last], [*before, *encoding.offsets, *after]) for encoding in found]
    width = length if length >= 0 else max((len(numbers) for numbers, _ in rows), default=0)
    shape = allotted((len(found), width, 2), np.dtype(np.int64), text.size)
    ids, mask = np.full(shape[:2], pad, np.int64), np.zeros(shape[:2], np.int64)
    offsets = np.zeros(shape, np.int64)
    for row, (numbers, spans) in enumerate(rows):
        count = min(width, len(numbers))
        if count:
            ids[row, :count], mask[row, :count], offsets[row, :count] = numbers[:count], 1, spans[:count]
    tokens = (*text.shape, width)
    return ids.reshape(tokens), mask.reshape(tokens), offsets.reshape(*tokens, 2)


@functools.lru_cache(_CACHED)
def tokenizer_of(
    operator: str,
    build: Callable[[Any, Any], None],
    specials: tuple[str, ...],
    suffix: str,
    vocab: str,
    merges: str,
    added: str,
) -> Any:
    """Return a tokenizer of the library, to which `build(library, tokenizer)` adds its other steps."""
    tokenizers = library("tokenizers", operator)
    table = vocabulary_of(vocab)
    more = added_tokens(added)
    ending = {"end_of_word_suffix": suffix} if suffix else {}
    model = tokenizers.models.BPE(
        vocab={**more, **table}, merges=pairs_of(merges), ignore_merges=not suffix, **ending
    )
    tokenizer = tokenizers.Tokenizer(model)
    build(tokenizers, tokenizer)
    tokenizer.add_special_tokens([name for name in specials if name in table] + [*more])
    return tokenizer


def vocabulary_of(text: str) -> dict[str, int]:
    """Return the numbers of tokens; raises InferenceError for a text that is no JSON object of integers."""
    try:
        table = json.loads(text)
    except ValueError as error:
        raise InferenceError(f"`vocab` is no JSON: {error}") from error
    if not isinstance(table, dict) or not all(
        isinstance(n, int) for n in cast("dict[str, Any]", table).values()
    ):
        raise InferenceError("`vocab` must be a JSON object of tokens and their numbers")
    return cast("dict[str, int]", table)


def number_of(table: dict[str, int], name: str) -> int:
    """Return the number of a token; raises InferenceError where the vocabulary lacks it."""
    if name not in table:
        raise InferenceError(f"`vocab` lacks the token {name}")
    return table[name]


def added_tokens(text: str) -> dict[str, int]:
    """Return further tokens and their numbers; raises InferenceError for a line in another format."""
    return dict(_added(line) for line in text.split("\n") if line)


def _added(line: str) -> tuple[str, int]:
    name, _, number = line.rpartition("=")
    if not name or not number.strip().isdecimal():
        raise InferenceError(f"`added_token` has the line {line!r}, and needs a token, `=` and a number")
    return name, int(number)


def pairs_of(text: str) -> Sequence[tuple[str, str]]:
    """Return the pairs of tokens that become one, in their order."""
    pairs = (line.split(" ") for line in text.split("\n") if line and not line.startswith(_COMMENT))
    return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]  # ruff: ignore[magic-value-comparison]  a pair


def bytes_as_letters(tokenizers: Any, tokenizer: Any) -> None:
    """Let a tokenizer divide texts as GPT-2 does, and write their bytes as letters."""
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = tokenizers.processors.ByteLevel(add_prefix_space=False, trim_offsets=True)
