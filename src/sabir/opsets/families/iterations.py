"""Subgraphs that run again and again: the types of what they carry from one iteration to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sabir.base import EvaluationError, InferenceError, budget
from sabir.ir import OptionalType, SequenceType, TensorType, Type
from sabir.opsets.families.shapes import axis_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

    Types: TypeAlias = tuple[Type | None, ...]

_ROUNDS = 4  # for contents, dimensions and ranks to become unknown in turn; then all shapes are dropped


def settle(body: Callable[..., Types], carried: Sequence[Type | None]) -> tuple[Types, Types]:
    """Return types of the carried values that hold in every iteration, and what the body gives on them.

    The first outputs of `body` come back as its inputs. A dimension that changes becomes unknown. Raises
    InferenceError where a value comes back with another element type or kind.
    """
    held = tuple(carried)
    for _ in range(_ROUNDS):
        results = _applied(body, held)
        wider = tuple(_covering(h, r, i) for i, (h, r) in enumerate(zip(held, results, strict=False)))
        if wider == held:
            return held, results
        held = wider
    held = tuple(_shapeless(h) for h in held)
    return held, _applied(body, held)


def stacked(item: Type | None, count: Dim, axis: int = 0) -> Type | None:
    """Return the type of one tensor per iteration, stacked on a new axis."""
    if item is None:
        return None
    if not isinstance(item, TensorType):
        raise InferenceError(f"only tensors can be stacked, and the body gives {item}")
    if item.shape is None:
        return TensorType(item.element)
    dims = list(item.shape)
    dims.insert(axis_in(axis, len(dims) + 1), count)
    return TensorType(item.element, tuple(dims))


def stack(items: Sequence[Array], declared: Type | None, axis: int = 0) -> Array:
    """Return the tensors of all iterations on a new axis; without any, what the body declares of one serves.

    A dimension that it does not give as a number is then 0.
    """
    if items:
        return np.stack(items, axis)
    if not isinstance(declared, TensorType) or not declared.element.number:
        raise EvaluationError("no iteration runs, and the body does not declare the type of what it stacks")
    shape = [d if isinstance(d, int) else 0 for d in declared.shape or ()]
    shape.insert(axis_in(axis, len(shape) + 1), 0)
    return np.empty(shape, declared.element.dtype)


class Gathered:
    """What every iteration gives to be stacked; a run holds it, though none of its values has it yet."""

    def __init__(self, outputs: int) -> None:
        """Take how many outputs there are."""
        self.stacks: list[list[Array]] = [[] for _ in range(outputs)]
        self._size = 0

    def add(self, items: Sequence[Array]) -> None:
        """Keep what one iteration gives; raises LimitError where it becomes too much."""
        for stack, item in zip(self.stacks, items, strict=True):
            stack.append(item)
        if items:
            size = sum(getattr(x, "nbytes", 0) for x in items)
            self._size += size
            budget().hold(size)

    def taken(self) -> list[list[Array]]:
        """Return the items by output; from now on they are the caller's."""
        budget().held -= self._size
        self._size = 0
        return self.stacks


def _applied(body: Callable[..., Types], held: Types) -> Types:
    results = body(*held)
    if len(results) < len(held):
        raise InferenceError(f"the body gives {len(results)} outputs, and carries {len(held)} values")
    return results


def _covering(before: Type | None, after: Type | None, place: int) -> Type | None:
    if before is None or after is None:
        return _shapeless(before or after)
    if isinstance(before, TensorType) and isinstance(after, TensorType):  # unknown elements are the other's
        before = before if before.element.number else TensorType(after.element, before.shape)
        after = after if after.element.number else TensorType(before.element, after.shape)
    if isinstance(before, OptionalType) and not isinstance(after, OptionalType):
        after = OptionalType(after)  # one that is filled may come back as what it holds
    try:
        return before.join(after)
    except TypeError as mix:
        raise InferenceError(f"carried value {place} does not keep its type: {mix}") from mix


def _shapeless(kind: Type | None) -> Type | None:
    match kind:
        case TensorType():
            return TensorType(kind.element)
        case SequenceType():
            return SequenceType(_shapeless(kind.item))
        case OptionalType():
            return OptionalType(_shapeless(kind.item))
        case _:
            return kind
