"""Rotary position embeddings: pairs (a, b) of elements become `(a cos - b sin, a sin + b cos)`.

Elements that are half the rotated size apart are pairs; if `interleaved`, neighbours are. Elements after the
rotated ones stay as they are. Cosines and sines have one element for each pair, and broadcast otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.schema import Attribute, at_least

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

_END = np.iinfo(np.int64).max
OPTIONS = (
    Attribute(
        "rotary_embedding_dim",
        "int",
        "The number of elements of a head to rotate, by default all.",
        values=at_least(0),
    ),
    Attribute("interleaved", "int", "1: neighbours are pairs; else elements of the two halves are."),
    Attribute("is_packed_batching", "int", "1: the batch may be ragged; the result is the same."),
    Attribute("scale", "float", "Has no effect, as in the kernels of onnxruntime."),
)
"""The last attributes of onnxruntime's operators that rotate."""


def rotated(x: Array, cos: Array, sin: Array, *, interleaved: int) -> Array:
    """Rotate the first `2 * cos.shape[-1]` elements of the last axis; 16-bit floats become float32."""
    half = cos.shape[-1]
    first, second = slice(0, half), slice(half, 2 * half)
    if interleaved:
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    x, cos, sin = (widened(t) for t in (x, cos, sin))
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


def lowered(x: Expression, cos: Expression, sin: Expression, size: int, *, interleaved: int) -> Expression:
    """Rotate the first `size` elements of the last axis: rotated pairs joined with the elements that stay."""
    one, two = _halves(x, size, interleaved)
    first = loops.apply("sub", loops.apply("mul", one, cos), loops.apply("mul", two, sin))
    second = loops.apply("add", loops.apply("mul", one, sin), loops.apply("mul", two, cos))
    if interleaved:
        pairs = [loops.reshape(part, (*part.shape, 1)) for part in (first, second)]
        parts = [loops.reshape(loops.join(pairs, -1), (*x.shape[:-1], size))]
    else:
        parts = [first, second]
    if size != x.shape[-1]:
        parts.append(loops.narrow(x, -1, size, x.shape[-1] - size))
    return loops.join(parts, -1) if len(parts) > 1 else parts[0]


def rows_at(cache: Expression, positions: Expression) -> Expression:
    """Return the rows of a cache at some positions; a negative position is an error like one past the end."""
    outside = loops.sized("int64", cache.shape[0])
    return loops.take(cache, loops.where(loops.apply("lt", positions, 0), outside, positions), 0)


def emitted(b: Builder, x: Value, cos: Value, sin: Value, size: int | None, *, interleaved: int) -> Value:
    """Emit the rotation of the first `size` elements of the last axis; None rotates all of them."""
    last, whole = ints(b, -1), x
    if size is not None:
        x = b.Slice(whole, ints(b, 0), ints(b, size), last)
    if interleaved:
        one, two = (b.Slice(x, ints(b, i), ints(b, _END), last, ints(b, 2)) for i in range(2))
    else:
        one, two = b.Split(x, num_outputs=2, outputs=2, axis=-1)
    pair = b.Sub(b.Mul(one, cos), b.Mul(two, sin)), b.Add(b.Mul(one, sin), b.Mul(two, cos))
    if interleaved:
        y = b.Reshape(b.Concat(*(b.Unsqueeze(p, last) for p in pair), axis=-1), b.Shape(x))
    else:
        y = b.Concat(*pair, axis=-1)
    if size is not None:
        y = b.Concat(y, b.Slice(whole, ints(b, size), ints(b, _END), last), axis=-1)
    return y


def _halves(x: Expression, size: int, interleaved: int) -> tuple[Expression, Expression]:
    if not interleaved:
        return loops.narrow(x, -1, 0, size // 2), loops.narrow(x, -1, size // 2, size // 2)
    sizes, steps = (*x.shape[:-1], size // 2), (*(1,) * (x.rank - 1), 2)
    one, two = (loops.cut(x, (*(0,) * (x.rank - 1), i), sizes, steps) for i in range(2))
    return one, two
