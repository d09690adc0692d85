"""Subgraphs that run again and again: the types of what they carry from one iteration to the next.

A body MAY declare the types of its inputs and outputs, the standard says. Where it declares them, a loop
passes its number and its condition in the declared shape; where it does not, and no iteration runs, the types
of what would be stacked are inferred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import EvaluationError, InferenceError, budget
from sabir.ir import OptionalType, SequenceType, TensorType, Type
from sabir.opsets.families import contents, ranks
from sabir.opsets.families.shapes import axis_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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


def stack(items: Sequence[Array], kind: Type | None, axis: int = 0) -> Array:
    """Return the tensors of all iterations on a new axis; without any, an empty stack of the type `kind`.

    A dimension of it that is no number is then 0. Raises EvaluationError for items of several types.
    """
    if items:
        _check_alike(items)
        return np.stack(items, axis)
    if not isinstance(kind, TensorType) or not kind.element.number:
        raise EvaluationError(
            "no iteration runs, and the body does not declare the type of what it stacks; nor does it follow"
        )
    shape = [max(d, 0) if isinstance(d, int) else 0 for d in kind.shape or ()]
    shape.insert(axis_in(axis, len(shape) + 1), 0)
    return np.empty(shape, kind.element.dtype)


def _check_alike(items: Sequence[Any]) -> None:
    first: Any = items[0]
    for turn, item in enumerate(items):
        if not isinstance(item, np.ndarray):
            given = "nothing" if item is None else f"a {type(item).__name__}"
            raise EvaluationError(f"only tensors can be stacked, and iteration {turn} gives {given}")
        array = cast("Array", item)
        if array.shape != first.shape or array.dtype != first.dtype:
            raise EvaluationError(
                f"what is stacked keeps its type and shape, and is {type_of(first)} in the first iteration,"
                f" {type_of(array)} in iteration {turn}"
            )


def one_of(what: str, value: Any) -> Array:
    """Return a tensor of one element; raises EvaluationError for anything else."""
    if not isinstance(value, np.ndarray):
        raise EvaluationError(f"{what} must be a tensor of one element, and is missing or no tensor")
    array = cast("Array", value)
    if array.size != 1:
        raise EvaluationError(f"{what} must have one element, and has the shape {list(array.shape)}")
    return array


def check_one(what: str, kind: Type | None) -> None:
    """Raise InferenceError for a type that is known to have another number of elements than one."""
    size = kind.size if isinstance(kind, TensorType) else None
    if isinstance(size, int) and size != 1:
        raise InferenceError(f"{what} must have one element, and is {kind}")


def shape_of_one(declared: Sequence[Type | None], place: int) -> tuple[int, ...]:
    """Return the shape in which a body takes the one element of its input number `place`.

    It is the declared one, `[1]` for instance, or that of a scalar, as the standard has it.
    """
    kind = declared[place] if place < len(declared) else None
    shape = kind.shape if isinstance(kind, TensorType) else None
    # a number below 0 stands for an open dimension, as files of several tools have it
    if shape is None or any(isinstance(d, int) and (d == 0 or d > 1) for d in shape):
        return ()
    return (1,) * len(shape)


def type_of(value: Any) -> Type | None:
    """Return the type of a value of a run, with small contents; None where it does not show one."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        kind = ranks.type_of(array)
        tells = kind.element.is_integer or kind.element.kind == "bool"
        return kind.with_known(contents.of_array(array)) if tells and array.size <= contents.MOST else kind
    if isinstance(value, list):
        return SequenceType(_joined(map(type_of, cast("list[Any]", value))))
    return None


def _joined(kinds: Iterable[Type | None]) -> Type | None:
    whole: Type | None = None
    for kind in kinds:
        if kind is None:
            return None
        whole = kind if whole is None else whole.join(kind)
    return whole


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
            budget().allocate(size)

    def taken(self) -> list[list[Array]]:
        """Return the items by output; from now on they are the caller's."""
        budget().live_bytes -= self._size
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
