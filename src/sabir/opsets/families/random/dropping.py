"""Dropout: which elements are dropped, and the scale of the others; on arrays and as kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.elements import FLOAT
from sabir.loops import NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.random import random_kernels, randomness
from sabir.opsets.families.random.randomness import WORD_BITS
from sabir.opsets.families.shapes.ranks import as_number, check_one

if TYPE_CHECKING:
    from sabir.loops import Expression, Lowering
    from sabir.opsets.families.random.randomness import Key
    from sabir.opsets.typing import Array

DEFAULT_RATIO = 0.5
_WORDS = 1 << WORD_BITS


def evaluated(x: Array, ratio: Array | None, training: Array | None, seed: int | None) -> tuple[Array, Array]:
    """Return what Dropout computes, and which elements it keeps; without training all."""
    check_one("ratio", ratio)
    if training is None or not as_number("training_mode", training):
        return x, np.ones(x.shape, np.bool_)
    return dropped(x, DEFAULT_RATIO if ratio is None else float(as_number("ratio", ratio)), key(seed))


def lowered(
    x: Expression, ratio: Expression, known: object, seed: Key | None, call: Lowering
) -> tuple[Expression, Expression]:
    """Return `dropped` of a ratio in double precision, which may be known before a run."""
    loops.check_computed(x.element)
    if not isinstance(known, (int, float)):
        inside = loops.apply("and", loops.apply("ge", ratio, 0), loops.apply("lt", ratio, 1))
        ratio = loops.apply("add", ratio, loops.cast(kernels.zero_if(inside), "double"))
    elif not 0 <= known < 1:
        raise NotLowered(f"ratio {known} must be at least 0 and below 1")
    mask = loops.apply("ge", random_kernels.unit(call, x.shape, "float", seed), loops.cast(ratio, "float"))
    rest = loops.apply("sub", loops.number("double", 1), ratio)
    scale = loops.cast(loops.apply("reciprocal", rest), x.element)
    return loops.where(mask, loops.apply("mul", x, scale), 0), mask


def key(seed: int | None) -> Key | None:
    """Return the two words of a seed."""
    return None if seed is None else (seed % _WORDS, (seed >> WORD_BITS) % _WORDS)


def dropped(x: Array, ratio: float, seed: Key | None) -> tuple[Array, Array]:
    """Draw which elements to keep, and scale them so that the expected value is unchanged."""
    if not 0 <= ratio < 1:
        raise ValueError(f"ratio {ratio} must be at least 0 and below 1")
    mask = randomness.unit(x.shape, FLOAT, seed) >= ratio
    wide = widened(x)
    kept: Array = np.where(mask, np.multiply(wide, 1 / (1 - ratio), dtype=wide.dtype), 0)
    return kept.astype(x.dtype, copy=False), mask
