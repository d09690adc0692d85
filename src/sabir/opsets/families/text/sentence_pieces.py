"""Models of the library sentencepiece, as onnxruntime-extensions writes them into attributes."""

from __future__ import annotations

import base64
import functools
from typing import Any

from sabir.base import InferenceError
from sabir.opsets.families.text.libraries import library
from sabir.schema import Attribute

MODEL = Attribute("model", "string", "The model, a file of sentencepiece.", required=True)
FIRST, LAST, UNKNOWN, PADDING = 0, 2, 3, 1  # numbers of fairseq
_CACHED = 4


@functools.lru_cache(_CACHED)
def processor(operator: str, model: str | bytes) -> Any:
    """Return the model of an attribute; raises InferenceError where it is none."""
    sentencepiece = library("sentencepiece", operator)
    data = model if isinstance(model, bytes) else model.encode(errors="surrogateescape")
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=data)
    except RuntimeError as error:
        raise InferenceError(f"`model` is no model of sentencepiece: {error}") from error


def encoded(model: Any, text: str, best: int | None, alpha: float) -> Any:
    """Return the tokens of a text, with `id` and `begin`; drawn from the `best` ones if it is a number."""
    options = {} if best is None else {"enable_sampling": True, "nbest_size": best, "alpha": alpha}
    # before 0.2.2 the library names the type of the result differently
    kind = "proto" if hasattr(model, "sample_encode_as_proto") else "immutable_proto"
    return model.encode(text, out_type=kind, **options).pieces


def to_fairseq(model: Any, number: int) -> int:
    """Return the number that fairseq gives a token: one more, except for special tokens."""
    special = {model.bos_id(): FIRST, model.eos_id(): LAST, model.unk_id(): UNKNOWN}
    return special.get(number, number + 1)


def from_fairseq(model: Any, number: int) -> int:
    """Return the number of a token of fairseq, -1 for padding."""
    special = {FIRST: model.bos_id(), LAST: model.eos_id(), UNKNOWN: model.unk_id(), PADDING: -1}
    return special.get(number, number - 1)


# trained on "low lower lowest new newer newest wide wider widest"; 8 is "▁lowe", 3 "r", 6 "▁new", 7 "est"
MODEL_EXAMPLE = base64.b64decode(
    """
Cg4KBTx1bms+FQAAAAAYAgoMCgM8cz4VAAAAABgDCg0KBDwvcz4VAAAAABgDCggKAXIV+CzHvwoOCgfiloF3aWRlFfgT9b8KDQoG
4paBbG93Fa/BCMAKDQoG4paBbmV3Fa/BCMAKCgoDZXN0FVciF8AKDgoH4paBbG93ZRUUURnACg4KB+KWgW5ld2UVFlEZwAoICgF0
FQMoMsAKCAoBcxWnKTLACggKAW8VSisywAoICgFuFe0sMsAKCAoBbBWRLjLACggKAWkVNDAywAoICgFkFdgxMsAKCgoD4paBFXsz
MsAKCAoBdxUfNTLACggKAWUVwjYywAoQCgniloF3aWRlc3QVwjYywBIHGAEgFYgCABoMCghpZGVudGl0eRIA
"""
)
