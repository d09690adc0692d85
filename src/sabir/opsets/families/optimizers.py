"""Steps of optimisers that move several tensors in one call: [X1, X2, ..., G1, G2, ..., state of X1, ...]."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.opsets.typing import Array

Item = TypeVar("Item")
_PARAMETERS = 2  # what is optimised and its gradient; the rest of a group is state


def grouped(inputs: Sequence[Item], parts: int) -> list[tuple[Item, ...]]:
    """Return for each optimised tensor what belongs to it, of `parts` values each."""
    if not inputs or len(inputs) % parts:
        raise InferenceError(f"takes {parts} inputs for each optimised tensor, and has {len(inputs)}")
    count = len(inputs) // parts
    return [tuple(inputs[place::count]) for place in range(count)]


def infer(inputs: Sequence[TensorType], parts: int) -> tuple[TensorType, ...]:
    """Return the types of the new tensors and of their new states: those that they had."""
    groups = grouped(inputs, parts)
    kept = [[group[0], *group[_PARAMETERS:]] for group in groups]
    return tuple(TensorType(t.element, t.shape) for part in zip(*kept, strict=True) for t in part)


def stepped(inputs: Sequence[Array], parts: int, rule: Callable[..., tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the new tensors, then their new states; `rule` takes and gives float64."""
    results: list[list[Array]] = []
    for group in grouped(inputs, parts):
        made = rule(*(a.astype(np.float64) for a in group))
        kept = (group[0], *group[_PARAMETERS:])
        results.append([new.astype(old.dtype) for new, old in zip(made, kept, strict=True)])
    return tuple(array for part in zip(*results, strict=True) for array in part)


def number(x: Array, what: str) -> float:
    """Return the one number in a tensor."""
    if x.size != 1:
        raise ValueError(f"{what} must be a scalar, not of shape {list(x.shape)}")
    return float(x.item())


def single(value: float) -> float:
    """Return an attribute as float32 holds it: its default, too, is a float32 number."""
    return float(np.float32(value))
