"""Random inputs for `sabir run`, of the declared types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import FeedError
from sabir.ir import Expr, OptionalType, SequenceType, TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.elements import ElementType
    from sabir.ir import Array, Dim, Type

# of one random input; if it is larger, a declared dimension is probably a mistake
MOST_BYTES = 1 << 31
_INTEGERS = 10  # random integers are below this, so that they can serve as indices and lengths
_ITEMS = 2  # in a random sequence


def random_value(kind: Type | None, sizes: Mapping[str, int], rng: np.random.Generator, where: str) -> Any:
    """Return a random value of a type; `sizes` has its dimension variables, other open dimensions are 1.

    `where` names the input in messages. Raises FeedError for a type without a shape or element type, and
    for a value that is too large.
    """
    if isinstance(kind, SequenceType):
        return [random_value(kind.item, sizes, rng, where) for _ in range(_ITEMS)]
    if isinstance(kind, OptionalType):
        return None
    if not isinstance(kind, TensorType) or not kind.element.number:
        shown = "no type" if kind is None else str(kind)
        raise FeedError(f"{where} declares {shown}, too little for a random value; pass one with --input")
    if kind.shape is None:
        raise FeedError(
            f"{where} declares no rank; choose a shape with --shape, or pass a value with --input"
        )
    shape = tuple(_size(dim, sizes, where) for dim in kind.shape)
    if math.prod(shape) * max(1, kind.element.dtype.itemsize) > MOST_BYTES:
        advice = "pass a value with --input, or smaller sizes with --dim"
        raise FeedError(f"{where}: a random value of shape {list(shape)} would be too large; {advice}")
    return random_array(kind.element, shape, rng)


def random_array(kind: ElementType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return a random array: normal floats, integers from 0 to 9 within their range, one-letter texts."""
    match kind.kind:
        case "float":
            values = rng.standard_normal(shape)
            return np.asarray(values if kind.is_signed else np.abs(values)).astype(kind.dtype)
        case "complex":
            return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind.dtype)
        case "integer":
            above = min(_INTEGERS, 1 << (kind.bits - kind.is_signed))
            return np.asarray(rng.integers(0, above, shape)).astype(kind.dtype)
        case "bool":
            return np.asarray(rng.integers(0, 2, shape)).astype(kind.dtype)
        case "string":
            return np.asarray(rng.choice(list("abcdefghij"), shape)).astype(kind.dtype)


def _size(dim: Dim, sizes: Mapping[str, int], where: str) -> int:
    if not isinstance(dim, Expr):
        return 1 if dim is None else dim
    try:
        size = dim.substitute(sizes)
    except ArithmeticError:
        size = "not a number"
    if not isinstance(size, int) or size < 0:
        chosen = ", ".join(f"{name} = {sizes[name]}" for name in sorted(dim.symbols))
        raise FeedError(f"{where}: the dimension {dim} is {size} if {chosen}; choose other sizes with --dim")
    return size
