"""Initialization graphs: random weights by the usual rules, as operators of the standard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import NotFoundError, UnsupportedError, quote
from sabir.ir import Node, Tensor
from sabir.training._parameters import matches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Builder, Value

_MATRIX = 2  # the rank from which a parameter is a weight, and not a bias or a scale
_CHANNELS_FIRST = frozenset({"Conv", "ConvInteger"})
_DEVIATION = 0.02  # of "normal", as the first large language models had it


def initial_values(
    b: Builder, parameters: Sequence[Value], rules: Mapping[str, str]
) -> list[tuple[Value, Value]]:
    """Build a first value for each parameter that a pattern of `rules` matches; return pairs to bind.

    A rule is "glorot" (uniform), "he" (normal), "normal" (deviation 0.02), "zeros" or "ones". Those with
    random numbers are for tensors of rank 2 or more: the pattern "*" leaves biases and scales as they are.
    Raises NotFoundError for a pattern that matches none, UnsupportedError for another rule.
    """
    for pattern in rules:
        if not any(matches(value.name, (pattern,)) for value in parameters):
            raise NotFoundError(f"no parameter that is trained matches the initialization {quote(pattern)}")
    found: list[tuple[Value, Value]] = []
    for value in parameters:
        rule = next((r for pattern, r in reversed([*rules.items()]) if matches(value.name, (pattern,))), None)
        new = None if rule is None else _built(b, value, rule)
        if new is not None:
            found.append((value, new))
    return found


def _built(b: Builder, value: Value, rule: str) -> Value | None:
    data = value.constant
    if not isinstance(data, Tensor):
        return None
    shape, dtype = data.shape, data.element.number
    if rule in {"zeros", "ones"}:
        fill = np.asarray([rule == "ones"], data.element.dtype)
        return b.ConstantOfShape(np.asarray(shape, np.int64), value=fill)
    if rule not in {"glorot", "he", "normal"}:
        raise UnsupportedError(
            f"there is no initialization {quote(rule)}; there are glorot, he, normal, zeros, ones"
        )
    if len(shape) < _MATRIX:
        return None
    fan_in, fan_out = _fans(value, shape)
    if rule == "glorot":
        bound = math.sqrt(6 / max(1, fan_in + fan_out))
        return b.RandomUniform(shape=shape, dtype=dtype, low=-bound, high=bound)
    scale = _DEVIATION if rule == "normal" else math.sqrt(2 / max(1, fan_in))
    return b.RandomNormal(shape=shape, dtype=dtype, scale=scale)


def _fans(value: Value, shape: Sequence[int]) -> tuple[int, int]:
    """Return how many numbers a result depends on, and how many results depend on a number."""
    node = next((u.user for u in value.uses if isinstance(u.user, Node)), None)
    if node is not None and node.op in _CHANNELS_FIRST:
        window = math.prod(shape[2:])
        return shape[1] * window, shape[0] * window
    attribute = node.attributes.get("transB") if node is not None and node.op == "Gemm" else None
    rows, columns = shape[-2:]
    return (columns, rows) if attribute is not None and attribute.value else (rows, columns)


__all__ = ["initial_values"]
