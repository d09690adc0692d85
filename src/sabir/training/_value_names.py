"""What the name of an initializer says: that it is a parameter, that it is a constant, or nothing."""

from __future__ import annotations

import re
from typing import Literal

Verdict = Literal["parameter", "constant"]

_SEPARATORS = re.compile(r"[./:]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_GENERATED = re.compile(
    r"""(?:val|const|constant|initializer|tmp|tensor|t|v|_)?_?\d+     # val_3, 123
    | onnx::\w+_\d+                                                  # of TorchScript, for what it folded
    | .*_output_\d+ | .*Constant(?:_\d+)?(?:_output)?""",
    re.VERBOSE,
)

_LAST = frozenset({
    "weight", "weights", "kernel", "bias", "biases", "gamma", "beta", "slope", "gain", "token", "tokens",
    "embedding", "embeddings", "embed", "emb", "query", "queries", "prompt", "temperature", "codebook",
    "filters", "w", "b", "k", "u", "v", "wte", "wpe", "alpha", "lora",
})  # fmt: skip
_ANYWHERE = frozenset({
    "weight", "weights", "kernel", "bias", "embedding", "embeddings", "embed", "emb", "lora", "logit",
    "param", "parameter", "parameters", "token", "gamma", "beta", "temperature",
})  # fmt: skip
_CONSTANT = frozenset({
    "mask", "masks", "causal", "running", "moving", "mean", "means", "var", "variance", "std", "stddev",
    "stats", "freq", "freqs", "cos", "sin", "cached", "sinusoid", "sinusoidal", "anchor", "anchors", "grid",
    "ids", "tracked", "eps", "epsilon", "window", "filterbank", "fbank", "mel", "dft", "stft", "tril", "triu",
})  # fmt: skip
_SCALES = frozenset({"scale", "shift", "offset"})
_SCALED = frozenset({"logit", "layer", "residual", "res", "skip", "log", "gate"})


def verdict(name: str, *, one_number: bool = False) -> Verdict | None:
    """Return what a name says; `one_number` where the value has one element, which a scale often is.

    >>> verdict('encoder.fc.weight'), verdict('attn.causal_mask'), verdict('mask_token'), verdict('val_3')
    ('parameter', 'constant', 'parameter', None)
    """
    if is_generated(name):
        return None
    words = _words_of(name)
    if not words:
        return None
    if words[-1] in _LAST:
        return "parameter"
    if not _CONSTANT.isdisjoint(words):
        return "constant"
    if words[-1] in _SCALES and (not one_number or not _SCALED.isdisjoint(words)):
        return "parameter"
    return "parameter" if not _ANYWHERE.isdisjoint(words) else None


def is_generated(name: str) -> bool:
    """Return whether an exporter or an optimizer made up a name, so that it says nothing.

    >>> is_generated('onnx::MatMul_214'), is_generated('fc.weight')
    (True, False)
    """
    return _GENERATED.fullmatch(name) is not None


def _words_of(name: str) -> list[str]:
    """Return the words of the last part of a name that has any: `logit`, `scale` of `head.logit_scale`."""
    parts = [p for p in _SEPARATORS.split(name) if p and not p.isdigit()]
    while parts and (parts[-1].startswith("original") or parts[-1] == "data"):
        parts.pop()  # of torch.nn.utils.parametrize
    if not parts:
        return []
    if "ReadVariableOp" in parts[-1]:
        return ["weight"]  # of Keras
    return [word.lower() for word in _WORDS.findall(parts[-1])]


__all__ = ["Verdict", "is_generated", "verdict"]
