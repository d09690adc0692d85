"""Random numbers: the attributes that describe them, their types, how numpy draws them, and examples."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sabir.base import check_time
from sabir.elements import BFLOAT16, DOUBLE, FLOAT, FLOAT16, element
from sabir.ir import TensorType
from sabir.loops import WordArithmetic, threefry
from sabir.opsets.families.shapes.sizes import allotted
from sabir.schema import Attribute, Example, element_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.elements import ElementType
    from sabir.opsets.typing import Array

SEED = Attribute("seed", "float", "The seed of the generator; without it, each run differs.")

Key: TypeAlias = tuple[int, int]  # two words

_DRAWN = np.dtype(np.float64)  # as large as a number and its copies while it is drawn
_WORD = np.dtype(np.uint32)
_SINGLE = 4  # bytes
_BLOCK = 1 << 14  # words that stay in a cache while they are made
WORD_BITS, SINGLE_BITS = 32, 24  # of a word, and of it those that a number in single precision has
HIGH_BITS, LOW_BITS = 27, 26  # that a number in double precision has of two words
ANGLE = 2 * math.pi * 2.0**-WORD_BITS  # the angle of a word, of the whole circle


def dtype(constraint: str, absent: str, default: int | None = None) -> Attribute:
    """Return the attribute that names the element type, one of a type constraint; `absent` is the default."""
    doc = f"The element type, as a number of TensorProto.DataType; {absent} by default."
    return Attribute("dtype", "int", doc, default=default, values=element_types(constraint))


def infer_like(x: TensorType, /, *, dtype: int | None) -> TensorType:
    """Infer a tensor of the shape of the input, and of its element type where `dtype` names none."""
    return TensorType(x.element if dtype is None else element(dtype), x.shape)


def float_key(seed: float | None) -> Key | None:
    """Return the key of a seed, None without one: calls with equal seeds draw the same words."""
    return None if seed is None else (int(np.float32(seed).view(np.uint32)), 0)


def uniform(shape: Sequence[int], to: ElementType, key: Key | None, *, low: float, high: float) -> Array:
    """Return numbers of the uniform distribution over [low, high)."""
    first, last = range_of(to, low, high)
    drawn = unit(allotted(shape, _DRAWN), precision(to), key)
    # rounding must neither go below `low` nor reach `high`
    y = np.minimum(np.maximum(low * (1 - drawn) + high * drawn, first), last)
    return y.astype(to.dtype, copy=False)


def range_of(to: ElementType, low: float, high: float) -> tuple[float, float]:
    """Return the first and the last number of [low, high) that an element type has.

    Raises ValueError where there are none, and unless `to` is a float.
    """
    precision(to)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"no numbers lie evenly between {low} and {high}")
    with np.errstate(over="ignore"):  # the number before infinity is the largest one
        first, end = np.asarray(low, to.dtype), np.asarray(high, to.dtype)
    return float(first), float(np.nextafter(end, first))


def normal(shape: Sequence[int], to: ElementType, key: Key | None, *, mean: float, scale: float) -> Array:
    """Return numbers of the normal distribution with this mean and standard deviation."""
    kind = precision(to).dtype
    drawn = _drawn(allotted(shape, _DRAWN), kind, key, _bell)
    return (mean + drawn * drawn.dtype.type(scale)).astype(to.dtype, copy=False)


def unit(shape: Sequence[int], kind: ElementType, key: Key | None) -> Array:
    """Return numbers of [0, 1): multiples of 2**-24 in single precision, of 2**-53 in double."""
    return _drawn(shape, kind.dtype, key, _unit)


def precision(to: ElementType) -> ElementType:
    """Return the type to draw in, from which halves are rounded; raises ValueError unless `to` is a float."""
    if to.kind != "float":
        raise ValueError(f"random numbers are floats, and not {to}")
    return DOUBLE if to is DOUBLE else FLOAT


# ---------------------------------------------------------------- words and numbers


def words(shape: Sequence[int], key: Key) -> tuple[Array, Array]:
    """Return the two random words of each element of a shape, as a function of its row-major number."""
    first, second = (np.empty(math.prod(shape), _WORD) for _ in range(2))
    for block in _blocks(first.size):
        first[block], second[block] = _words_of(block, key)
    return first.reshape(shape), second.reshape(shape)


def _blocks(count: int) -> Iterator[slice]:
    """Yield ranges of `count` elements, each small enough for a cache."""
    for start in range(0, count, _BLOCK):
        check_time()
        yield slice(start, min(start + _BLOCK, count))


def _words_of(block: slice, key: Key) -> tuple[Array, Array]:
    """Return the random words of the elements of a block."""
    numbers = np.arange(block.start, block.stop, dtype=np.uint64)
    low, high = numbers.astype(_WORD), (numbers >> np.uint64(WORD_BITS)).astype(_WORD)
    parts = np.array(key, _WORD)
    return threefry(_ARITHMETIC, (low + parts[:1], high + parts[1:]), (parts[:1], parts[1:]))


def _drawn(
    shape: Sequence[int],
    kind: np.dtype[Any],
    key: Key | None,
    to: Callable[[Array, Array, np.dtype[Any]], Array],
) -> Array:
    """Return a tensor whose element number `i`, row by row, is a function of the random words of `i`."""
    if key is None:
        first, second = np.frombuffer(os.urandom(2 * _WORD.itemsize), _WORD).tolist()
        key = first, second
    found: Array = np.empty(math.prod(shape), kind)
    for block in _blocks(found.size):
        found[block] = to(*_words_of(block, key), kind)
    return found.reshape(shape)


def _unit(first: Array, second: Array, kind: np.dtype[Any]) -> Array:
    if kind.itemsize == _SINGLE:
        return (first >> (WORD_BITS - SINGLE_BITS)).astype(kind) * kind.type(2.0**-SINGLE_BITS)
    high, low = (
        (first >> (WORD_BITS - HIGH_BITS)).astype(kind),
        (second >> (WORD_BITS - LOW_BITS)).astype(kind),
    )
    return (high * 2.0**LOW_BITS + low) * 2.0 ** -(HIGH_BITS + LOW_BITS)


def _bell(first: Array, second: Array, kind: np.dtype[Any]) -> Array:
    """Return numbers of the normal distribution, by the transformation of Box and Muller."""
    share = (first.astype(kind) + kind.type(0.5)) * kind.type(2.0**-WORD_BITS)
    angle = second.astype(kind) * kind.type(ANGLE)
    return np.sqrt(np.log(share) * kind.type(-2)) * np.cos(angle)


def _rotated(x: Array, bits: int) -> Array:
    return (x << np.uint32(bits)) | (x >> np.uint32(WORD_BITS - bits))


def _added(x: Array, y: Array | int) -> Array:
    return x + np.asarray(y, _WORD)


def _mixed(x: Array, y: Array | int) -> Array:
    return x ^ np.asarray(y, _WORD)


_ARITHMETIC: WordArithmetic[Array] = WordArithmetic(_added, _mixed, _rotated)


# ---------------------------------------------------------------- examples


def examples_of(number: float, *opsets: int, bfloat16: int, **attributes: Any) -> Iterator[Example]:
    """Yield calls of an operator that can draw nothing but `number` with these attributes.

    `bfloat16` is the first opset that admits it.
    """
    for opset in opsets:
        for to in _types(opset, bfloat16):
            expect = [np.full((2, 3), number, to.dtype)]
            yield Example(opset, shape=[2, 3], dtype=to.number, seed=1.0, **attributes, expect=expect)
        yield Example(opset, shape=[2, 0], expect=[np.zeros((2, 0), np.float32)])
        yield Example(opset, shape=[])


def examples_like(number: float, *opsets: int, bfloat16: int, **attributes: Any) -> Iterator[Example]:
    """Yield calls as `examples_of`, of an operator that takes the shape from its input."""
    for opset in opsets:
        for to in _types(opset, bfloat16):
            x = np.ones((2, 3), to.dtype)
            yield Example(opset, x, **attributes, expect=[np.full_like(x, number)])
            expect = [np.full(2, number, to.dtype)]
            yield Example(opset, ["a", "b"], dtype=to.number, seed=1.0, **attributes, expect=expect)
        nothing = np.zeros((2, 0), np.float32)
        yield Example(opset, nothing, expect=[nothing])
        yield Example(opset, 3, dtype=1)


def _types(opset: int, bfloat16: int) -> list[ElementType]:
    return [FLOAT, DOUBLE, FLOAT16, *([BFLOAT16] if opset >= bfloat16 else [])]
