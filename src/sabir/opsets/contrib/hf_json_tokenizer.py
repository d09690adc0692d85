"""HfJsonTokenizer: the tokens of texts by the files of a tokenizer of `transformers`."""

import functools
import json
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.text import byte_pairs
from sabir.opsets.families.text.byte_pair_examples import LETTERS
from sabir.opsets.families.text.libraries import is_installed, library
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator

hf_json_tokenizer = Operator(
    "HfJsonTokenizer",
    domain="ai.onnx.contrib",
    summary="The tokens of texts by a file `tokenizer.json`, which defines them, whatever its kind.",
)

v1 = byte_pairs.declare(
    hf_json_tokenizer,
    padding="0",
    attributes=(
        Attribute("tokenizer_vocab", "string", "The contents of `tokenizer.json`.", required=True),
        Attribute(
            "tokenizer_config",
            "string",
            "The contents of `tokenizer_config.json`: `add_bos_token` and `add_eos_token` put `bos_token` "
            "before each text and `eos_token` after it, where the tokenizer does not.",
            default="",
        ),
    ),
)

_CACHED = 4  # tokenizers
_NONE_ADDED = {"add_bos_token": "bos_token", "add_eos_token": "eos_token"}


@v1.infer
def infer(text: TensorType, /) -> tuple[TensorType, TensorType, TensorType]:
    return byte_pairs.infer(text, padding_length=-1)


@v1.evaluate
def evaluate(text: Array, /, *, tokenizer_vocab: str, tokenizer_config: str) -> tuple[Array, Array, Array]:
    tokenizer, first, last = _tokenizer(tokenizer_vocab, tokenizer_config)
    return byte_pairs.evaluate(tokenizer, 0, text, -1, first, last)


@functools.lru_cache(_CACHED)
def _tokenizer(vocab: str, config: str) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """Return a tokenizer without padding and limit, and the tokens to put before and after each text."""
    tokenizers = library("tokenizers", "HfJsonTokenizer")
    try:
        tokenizer = tokenizers.Tokenizer.from_str(vocab)
    except Exception as error:
        raise InferenceError(f"`tokenizer_vocab` is no tokenizer.json: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    own = tokenizer.encode("").ids
    options = _options(config)
    added = [
        _number(tokenizer, options, name) if options.get(wish) is True else None
        for wish, name in _NONE_ADDED.items()
    ]
    first = () if added[0] is None or own[:1] == [added[0]] else (added[0],)
    last = () if added[1] is None or own[-1:] == [added[1]] else (added[1],)
    return tokenizer, first, last


def _options(config: str) -> dict[str, Any]:
    try:
        found = json.loads(config or "{}")
    except ValueError as error:
        raise InferenceError(f"`tokenizer_config` is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InferenceError("`tokenizer_config` must be a JSON object")
    return cast("dict[str, Any]", found)


def _number(tokenizer: Any, options: dict[str, Any], name: str) -> int:
    """Return the number of a special token; raises InferenceError where the tokenizer lacks it."""
    token = options.get(name)
    if isinstance(token, dict):
        token = cast("dict[str, Any]", token).get("content")
    found = tokenizer.token_to_id(token) if isinstance(token, str) else None
    if found is None:
        raise InferenceError(f"`tokenizer_config` adds `{name}`, {token!r}, which is no token")
    return found


def _json_of(kind: str) -> str:
    """Return a small tokenizer of byte pairs, or of words."""
    if kind == "words":
        table = {"[UNK]": 0, "low": 1, "er": 2, "<s>": 3}
        model: dict[str, Any] = {"type": "WordLevel", "vocab": table, "unk_token": "[UNK]"}
        return json.dumps({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model})
    pairs = [line.split(" ") for line in LETTERS["merges"].split("\n") if line and line[0] != "#"]
    model = {"type": "BPE", "vocab": json.loads(LETTERS["vocab"]), "merges": pairs}
    steps = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return json.dumps({"version": "1.0", "pre_tokenizer": steps, "model": model})


@hf_json_tokenizer.examples
def examples() -> Iterator[Example]:
    """By onnxruntime-extensions for byte pairs; by hand for words."""
    if not is_installed("tokenizers"):  # an extra; tests/rooms/test_contrib.py says so
        return
    pairs: dict[str, Any] = {"tokenizer_vocab": _json_of("pairs")}
    found = [[14, 15, 0], [14, 10, 15]], [[1, 1, 0], [1, 1, 1]]
    yield Example(1, [" lower", " low er"], **pairs, outputs=2, expect=[*found])
    yield Example(1, "low", **pairs, expect=[[0, 1, 2]])
    yield Example(1, [["low"], ["er"]], **pairs, expect=[[[[0, 1, 2]], [[15, 0, 0]]]])
    words: dict[str, Any] = {"tokenizer_vocab": _json_of("words")}
    spans = [[[0, 3], [4, 6], [0, 0]], [[0, 1], [2, 5], [6, 8]]]
    yield Example(1, ["low er", "x low er"], **words, outputs=3, expect=[
        [[1, 2, 0], [0, 1, 2]], [[1, 1, 0], [1, 1, 1]], spans,
    ])  # fmt: skip
    begun = json.dumps({"add_bos_token": True, "bos_token": {"content": "<s>"}, "add_eos_token": False})
    yield Example(1, ["low", ""], **words, tokenizer_config=begun, expect=[[[3, 1], [3, 0]]])
    ended = json.dumps({"add_eos_token": True, "eos_token": "<s>"})
    yield Example(1, ["low"], **words, tokenizer_config=ended, outputs=3, expect=[
        [[1, 3]], [[1, 1]], [[[0, 3], [0, 0]]],
    ])  # fmt: skip
    yield Example(1, np.zeros(0, object), **words, expect=[np.zeros((0, 0), np.int64)])
