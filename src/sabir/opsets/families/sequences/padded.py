"""Padded batches of sequences: the sizes of their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.opsets.families.shapes.axes import as_input

if TYPE_CHECKING:
    from sabir.ir import Builder, Value


def rows_of(b: Builder, x: Value) -> Value:
    """Emit a tensor [batch, sequence, hidden] as [batch * sequence, hidden]."""
    size = b.Concat(token_count(b, b.Shape(x, start=0, end=2)), b.Shape(x, start=2), axis=0)
    return b.Reshape(x, size, allowzero=1)


def token_count(b: Builder, sizes: Value) -> Value:
    """Emit the number of tokens of a batch of these sizes, [1]."""
    return b.ReduceProd(sizes, as_input(b, "axes", [0]), keepdims=1)
