"""Steps of optimisers that move several tensors in one call: [X1, X2, ..., G1, G2, ..., state of X1, ...].

The standard's pseudo code computes with numpy's broadcasting: the gradient and what is kept of earlier steps
may be smaller or larger than the tensor, and what comes out has the shape to which they broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.shapes import broadcast

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


def infer(r: TensorType, t: TensorType, inputs: Sequence[TensorType], parts: int) -> tuple[TensorType, ...]:
    """Return the types of the new tensors and of their new states.

    A new state follows from the tensor, its gradient and that state, the new tensor from all of its group.
    """
    _check_one("R", r)
    _check_one("T", t)
    kept: list[list[TensorType]] = []
    for x, gradient, *states in grouped(inputs, parts):
        after = [TensorType(s.element, broadcast(x.shape, gradient.shape, s.shape)) for s in states]
        kept.append([TensorType(x.element, broadcast(*(s.shape for s in after))), *after])
    return tuple(kind for part in zip(*kept, strict=True) for kind in part)


def _check_one(what: str, x: TensorType | Array) -> None:
    if isinstance(x.size, int) and x.size != 1:
        raise InferenceError(f"{what} must be a scalar, not of shape {list(x.shape or ())}")


def stepped(inputs: Sequence[Array], parts: int, rule: Callable[..., tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the new tensors, then their new states; `rule` takes and gives float64."""
    results: list[list[Array]] = []
    for group in grouped(inputs, parts):
        made = rule(*(a.astype(np.float64) for a in group))
        kept = (group[0], *group[_PARAMETERS:])
        results.append([new.astype(old.dtype) for new, old in zip(made, kept, strict=True)])
    return tuple(array for part in zip(*results, strict=True) for array in part)


def number(x: Array, what: str) -> float:
    """Return the one number in a tensor; raises InferenceError for none or several."""
    _check_one(what, x)
    return float(x.item())


def single(value: float) -> float:
    """Return an attribute as float32 holds it: its default, too, is a float32 number."""
    return float(np.float32(value))
