"""Keys that a mask excludes: where their scores cannot change a row, a job need not compute them.

A mask of causal attention excludes the keys after each query, and a mask of a buffer those after its last
row. If the nest of scores gives weight 0 to each key that the mask excludes, and all of its folds ignore it,
the keys after the last one that a row of the job attends to are skipped. This is found by computing the nest
for an excluded key, as far as its values do not depend on the others.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.nest import NEXT, Apply, ConstantStep, Fold, Load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.compilation.backends.cpu.emit.nest import Nest

_ANY = None  # a finite number that depends on other tensors, or on other keys
_MOST_EXPONENT = 700.0  # whose exponential is a finite float
_NEUTRAL = {"max": -math.inf, "sum": 0.0}  # operands that leave a fold as it is

_UNARY: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "cast": lambda a: a,
    "exp": lambda a: math.exp(min(a, _MOST_EXPONENT)),
    "isnan": math.isnan,
    "not": lambda a: 1.0 - a,
}
_BINARY: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "eq": operator.eq,
    "lt": operator.lt,
    "mul": operator.mul,
    "sub": operator.sub,
}


def mask_of(nest: Nest, numbers: Mapping[int, float]) -> int:
    """Return the access of a mask whose excluded keys have no effect on the rows of a nest; -1 without one.

    It is a tensor of bool, false for an excluded key, whose elements for neighbouring keys are contiguous. A
    mask of floats is added to the scores, and leaves those that are no numbers. `numbers` has the contents of
    accesses that are a constant number.
    """
    for number, access in enumerate(nest.accesses):
        is_row = number in {target for target, _ in nest.stores}
        is_mask = access.element == "bool" and not is_row and access.strides[nest.inner] == NEXT
        if is_mask and _excludes(nest, number, numbers):
            return number
    return -1


def _excludes(nest: Nest, mask: int, numbers: Mapping[int, float]) -> bool:
    values: list[float | None] = []
    for step in nest.steps:
        match step:
            case Load():
                values.append(0.0 if step.access == mask else numbers.get(step.access, _ANY))
            case ConstantStep():
                values.append(float(step.number))
            case Fold():
                if values[step.operand] != _NEUTRAL.get(step.op, math.nan):
                    return False
                values.append(_ANY)
            case Apply():
                values.append(_applied(step.op, [values[o] for o in step.operands]))
            case _:
                values.append(_ANY)
    return all(values[number] == 0 for _, number in nest.stores)


def _applied(op: str, operands: Sequence[float | None]) -> float | None:
    """Return the value of a function; `_ANY` if the known operands do not decide it."""
    if op == "where":
        condition, a, b = operands
        if condition is None:
            return a if a == b else _ANY
        return a if condition else b
    known = [x for x in operands if x is not None]
    if op in {"and", "or"}:
        decides = float(op == "or")
        rest = _ANY if len(known) < len(operands) else 1.0 - decides
        return decides if decides in known else rest
    if len(known) == len(operands):
        return _computed(op, known)
    if op == "mul":
        return 0.0 if 0.0 in known else _ANY
    is_below = (op == "add" and -math.inf in known) or (op == "sub" and operands[0] == -math.inf)
    return -math.inf if is_below else _ANY


def _computed(op: str, numbers: Sequence[float]) -> float | None:
    """Return the value of a function of known numbers; `_ANY` for one that masks do not need."""
    unary, binary = _UNARY.get(op), _BINARY.get(op)
    if unary is not None:
        return unary(numbers[0])
    return _ANY if binary is None else binary(*numbers)


__all__ = ["mask_of"]
