"""Lowering of random numbers: the words of Threefry from a key and the number of each element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.elements import DOUBLE
from sabir.ir import TensorType, product
from sabir.loops import FLOATS, HALVES, Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.random import randomness
from sabir.opsets.families.random.randomness import ANGLE, HIGH_BITS, LOW_BITS, SINGLE_BITS, WORD_BITS

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.loops import Lowering, Size, Sizes
    from sabir.opsets.families.random.randomness import Key

_WORD = "uint32"


def uniform(call: Lowering, key: Key | None, *, low: float, high: float) -> Expression:
    """Return numbers of the uniform distribution over [low, high), in the inferred type and shape."""
    to, shape = _element(call), call.shape()
    try:
        first, last = randomness.range_of(to, low, high)
    except ValueError as error:
        raise NotLowered(str(error)) from error
    drawn = unit(call, shape, _precision(to), key)
    below = loops.apply("mul", loops.apply("sub", loops.number(drawn.element, 1), drawn), low)
    y = loops.apply("add", below, loops.apply("mul", drawn, high))
    return loops.cast(kernels.limited(y, first, last), to.name)


def normal(call: Lowering, key: Key | None, *, mean: float, scale: float) -> Expression:
    """Return numbers of the normal distribution, in the inferred type and shape."""
    to = _element(call)
    kind = _precision(to)
    first, second = _drawn(call, call.shape(), key)
    share = loops.apply("mul", loops.apply("add", loops.cast(first, kind), 0.5), 2.0**-WORD_BITS)
    radius = loops.apply("sqrt", loops.apply("mul", loops.apply("log", share), -2))
    bell = loops.apply("mul", radius, loops.apply("cos", loops.apply("mul", loops.cast(second, kind), ANGLE)))
    return loops.cast(loops.apply("add", loops.apply("mul", bell, scale), mean), to.name)


def unit(call: Lowering, shape: Sizes, kind: str, key: Key | None) -> Expression:
    """Return numbers of [0, 1) as float or double, equal to those of `randomness.unit`."""
    first, second = _drawn(call, shape, key)
    if kind == "float":
        return loops.apply("mul", _top(first, SINGLE_BITS, kind), 2.0**-SINGLE_BITS)
    high = loops.apply("mul", _top(first, HIGH_BITS, kind), 2.0**LOW_BITS)
    return loops.apply(
        "mul", loops.apply("add", high, _top(second, LOW_BITS, kind)), 2.0 ** -(HIGH_BITS + LOW_BITS)
    )


def result_element(call: Lowering) -> str:
    """Return the inferred element type of the first output."""
    kind = call.types[0]
    if not isinstance(kind, TensorType):
        raise NotLowered("the element type of an output is unknown")
    return kind.element.name


def _element(call: Lowering) -> ElementType:
    kind = call.types[0]
    if not isinstance(kind, TensorType) or kind.element.name not in FLOATS | HALVES:
        raise NotLowered(f"kernels draw no {result_element(call)}")
    return kind.element


def _precision(to: ElementType) -> str:
    return "double" if to is DOUBLE else "float"


def _top(word: Expression, bits: int, kind: str) -> Expression:
    """Return the upper bits of words as floats; conversion from signed integers is faster."""
    return loops.cast(loops.cast(loops.apply("shr", word, WORD_BITS - bits), "int32"), kind)


def words(shape: Sizes, key: Expression) -> tuple[Expression, Expression]:
    """Return two random words for each element of a shape; the key is two words."""
    first, second = (loops.reshape(loops.narrow(key, 0, i, 1), ()) for i in range(2))
    low, high = _number(shape)
    start = loops.apply("add", low, first), loops.apply("add", high, second)
    found = loops.random_words(start, (first, second))
    return loops.expand(found[0], shape), loops.expand(found[1], shape)


def _drawn(call: Lowering, shape: Sizes, key: Key | None) -> tuple[Expression, Expression]:
    """Return two random words for each element of a shape, with the key of the seed or of the run."""
    if call.key is None:
        raise NotLowered("the steps of a body that are computed at once would draw the same numbers")
    return words(shape, call.key if key is None else loops.tensor(np.array(key, np.uint32)))


def _number(shape: Sizes) -> tuple[Expression, Expression]:
    """Return the low and high half of the row-major number of each element."""
    number: Expression = loops.number("int64", 0)
    stride: Size | None = 1
    for axis in reversed(range(len(shape))):
        if shape[axis] != 1:
            term = loops.apply("mul", loops.count(shape, axis), loops.sized("int64", stride))
            number = term if number.rank == 0 else loops.apply("add", term, number)
        stride = product(shape[axis:])
    if isinstance(stride, int) and stride <= 1 << WORD_BITS:
        return loops.cast(number, _WORD), loops.number(_WORD, 0)
    return loops.cast(number, _WORD), loops.cast(loops.apply("shr", number, WORD_BITS), _WORD)
