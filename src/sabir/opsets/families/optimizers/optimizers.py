"""Optimizer steps that update several tensors in one call: [X1, X2, ..., G1, G2, ..., state of X1, ...].

The standard's pseudo code computes with numpy's broadcasting: the gradient and the state may be smaller or
larger than the tensor, and the results have the shape to which they broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.shapes.shapes import broadcast
from sabir.schema import Attribute, Constraint, Input, Output, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.opsets.typing import Array, BehaviourFunction

Item = TypeVar("Item")
_PARAMETERS = 2  # the tensor to optimize and its gradient; the rest of a group is state

_RATE = Constraint("T1", tensors("double", "float"))
_COUNT = Constraint("T2", tensors("int64"))
_TENSORS = Constraint("T3", tensors("double", "float"))
NORM_COEFFICIENT = Attribute("norm_coefficient", "float", "The weight of the penalty |X|^2 / 2.", default=0.0)
EPSILON = Attribute("epsilon", "float", "Added to the divisor, against division by 0.", default=1e-06)


def inputs(rate: str, count: str, groups: str) -> list[Input]:
    """Return the inputs of an optimizer, with these descriptions."""
    return [
        Input("R", _RATE, rate),
        Input("T", _COUNT, count),
        Input("inputs", _TENSORS, groups, variadic=True, heterogeneous=True),
    ]


def outputs(groups: str) -> list[Output]:
    """Return the output of an optimizer, with this description."""
    return [Output("outputs", _TENSORS, groups, variadic=True, heterogeneous=True)]


def grouped(inputs: Sequence[Item], parts: int) -> list[tuple[Item, ...]]:
    """Return the group of each optimized tensor: it, its gradient and its states, `parts` values."""
    if not inputs or len(inputs) % parts:
        raise InferenceError(f"takes {parts} inputs for each optimized tensor, and has {len(inputs)}")
    count = len(inputs) // parts
    return [tuple(inputs[place::count]) for place in range(count)]


def infer_groups(parts: int) -> BehaviourFunction:
    """Return the type inference of an optimizer with `parts` inputs for each tensor.

    A new state follows from the tensor, its gradient and that state, the new tensor from its whole group.
    """

    def infer(r: TensorType, t: TensorType, /, *inputs: TensorType) -> tuple[TensorType, ...]:
        _check_one("R", r)
        _check_one("T", t)
        results: list[list[TensorType]] = []
        for x, gradient, *states in grouped(inputs, parts):
            after = [TensorType(s.element, broadcast(x.shape, gradient.shape, s.shape)) for s in states]
            results.append([TensorType(x.element, broadcast(*(s.shape for s in after))), *after])
        return tuple(kind for part in zip(*results, strict=True) for kind in part)

    return infer


def _check_one(what: str, x: TensorType | Array) -> None:
    if isinstance(x.size, int) and x.size != 1:
        raise InferenceError(f"{what} must be a scalar, not of shape {list(x.shape or ())}")


def stepped(inputs: Sequence[Array], parts: int, rule: Callable[..., tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the new tensors, then their new states; `rule` computes in float64."""
    results: list[list[Array]] = []
    for group in grouped(inputs, parts):
        updated = rule(*(a.astype(np.float64) for a in group))
        previous = (group[0], *group[_PARAMETERS:])
        results.append([new.astype(old.dtype) for new, old in zip(updated, previous, strict=True)])
    return tuple(array for part in zip(*results, strict=True) for array in part)


def number(x: Array, what: str) -> float:
    """Return the only element of a tensor; raises InferenceError for another number of elements."""
    _check_one(what, x)
    return float(x.item())


def single(value: float) -> float:
    """Return an attribute rounded to float32, as a file stores it."""
    return float(np.float32(value))
