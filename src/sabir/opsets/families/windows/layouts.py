"""Channels as the second axis, (N, C, ...), and as the last one, (N, ..., C)."""

from __future__ import annotations

from sabir.ir import TensorType


def last_to_first(rank: int) -> list[int]:
    """Return the permutation from (N, ..., C) to (N, C, ...)."""
    return [0, rank - 1, *range(1, rank - 1)]


def first_to_last(rank: int) -> list[int]:
    """Return the permutation from (N, C, ...) to (N, ..., C)."""
    return [0, *range(2, rank), 1]


def type_last_to_first(x: TensorType) -> TensorType:
    """Return the type of a tensor (N, ..., C) as (N, C, ...)."""
    if x.shape is None or len(x.shape) < 2:  # ruff: ignore[magic-value-comparison]  a batch and channels
        return x
    return TensorType(x.element, (x.shape[0], x.shape[-1], *x.shape[1:-1]))


def type_first_to_last(x: TensorType) -> TensorType:
    """Return the type of a tensor (N, C, ...) as (N, ..., C)."""
    if x.shape is None or len(x.shape) < 2:  # ruff: ignore[magic-value-comparison]  a batch and channels
        return x
    return TensorType(x.element, (x.shape[0], *x.shape[2:], x.shape[1]))
