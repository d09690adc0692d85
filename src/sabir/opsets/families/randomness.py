"""Random numbers: the attributes that describe them, their types, how they are drawn, and examples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import BFLOAT16, DOUBLE, FLOAT, FLOAT16, element
from sabir.ir import TensorType
from sabir.opsets.families.sizes import allotted
from sabir.schema import Attribute, Example, at_least, element_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.elements import ElementType
    from sabir.opsets.typing import Array

SEED = Attribute("seed", "float", "The seed of the generator; without it, each run differs.")
SHAPE = Attribute("shape", "ints", "The size of each dimension.", required=True, values=at_least(0))
UNIFORM = (
    Attribute("high", "float", "The upper end, which is never drawn.", default=1.0),
    Attribute("low", "float", "The lower end.", default=0.0),
)
NORMAL = (
    Attribute("scale", "float", "The standard deviation.", default=1.0, values=at_least(0)),
    Attribute("mean", "float", "The mean.", default=0.0),
)

_DRAWN = np.dtype(np.float64)  # as large as a number and its copies while it is drawn


def dtype(constraint: str, absent: str, default: int | None = None) -> Attribute:
    """Return the attribute that names the element type, one of a type constraint; `absent` is the default."""
    doc = f"The element type, as a number of TensorProto.DataType; {absent} by default."
    return Attribute("dtype", "int", doc, default=default, values=element_types(constraint))


def infer(*, shape: Sequence[int], dtype: int) -> TensorType:
    """Infer a tensor of the attributes' shape and element type."""
    return TensorType(element(dtype), tuple(shape))


def infer_like(x: TensorType, /, *, dtype: int | None) -> TensorType:
    """Infer a tensor of the shape of the input, and of its element type where `dtype` names none."""
    return TensorType(x.element if dtype is None else element(dtype), x.shape)


def generator(seed: float | None) -> np.random.Generator:
    """Return a generator: the same numbers for the same seed, different ones at each call without."""
    return np.random.default_rng(None if seed is None else int(np.float32(seed).view(np.uint32)))


def uniform(shape: Sequence[int], to: ElementType, low: float, high: float, seed: float | None) -> Array:
    """Return numbers of the uniform distribution over [low, high)."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"no numbers lie evenly between {low} and {high}")
    drawn = np.asarray(generator(seed).random(allotted(shape, _DRAWN), _precision(to)))
    y = (low * (1 - drawn) + high * drawn).astype(to.dtype, copy=False)
    if low == high:
        return np.full_like(y, low)
    first, end = np.asarray(low, to.dtype), np.asarray(high, to.dtype)
    # rounding must neither go below `low` nor reach `high`
    return np.minimum(np.maximum(y, first), np.nextafter(end, first))


def normal(shape: Sequence[int], to: ElementType, mean: float, scale: float, seed: float | None) -> Array:
    """Return numbers of the normal distribution with this mean and standard deviation."""
    drawn = np.asarray(generator(seed).standard_normal(allotted(shape, _DRAWN), _precision(to)))
    return (mean + drawn * drawn.dtype.type(scale)).astype(to.dtype, copy=False)


def _precision(to: ElementType) -> type[np.float32 | np.float64]:
    """Return the type to draw in, from which halves are rounded; raises ValueError unless `to` is a float."""
    if to.kind != "float":
        raise ValueError(f"random numbers are floats, and not {to}")
    return np.float64 if to is DOUBLE else np.float32


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
