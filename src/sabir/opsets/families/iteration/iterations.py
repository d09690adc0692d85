"""Subgraphs that run repeatedly: the types of the values that an iteration passes to the next.

The standard says that a body MAY declare the types of its inputs and outputs. Where it declares them, a loop
passes its iteration number and its condition in the declared shape; where it does not, and no iteration runs,
the types of the stacked outputs are inferred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import EvaluationError, InferenceError, budget
from sabir.ir import OptionalType, SequenceType, TensorType, Type
from sabir.opsets.families.shapes import contents, ranks
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.schema import BFLOAT16, CLASSIC, optionals, sequences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

    Types: TypeAlias = tuple[Type | None, ...]

# the types of If and Loop after their first versions
SEQUENCES = sequences(CLASSIC)
OPTIONALS_AND_BFLOAT16 = (
    BFLOAT16 | sequences(BFLOAT16) | optionals(CLASSIC | SEQUENCES | BFLOAT16 | sequences(BFLOAT16))
)


def with_containers(steps: Mapping[int, frozenset[str]]) -> dict[int, frozenset[str]]:
    """Return the widenings with the sequences and optionals of their types."""
    return {since: types | sequences(types) | optionals(types) for since, types in steps.items()}


_ROUNDS = 4  # contents, dimensions and ranks become unknown in turn; then all shapes are dropped


def settle(body: Callable[..., Types], carried: Sequence[Type | None]) -> tuple[Types, Types]:
    """Return types of the carried values that are valid in every iteration, and the body's results for them.

    The first outputs of `body` become its inputs in the next iteration. A dimension that changes becomes
    unknown. Raises InferenceError where a carried value changes its element type or kind.
    """
    current = tuple(carried)
    for _ in range(_ROUNDS):
        results = _applied(body, current)
        wider = tuple(_covering(c, r, i) for i, (c, r) in enumerate(zip(current, results, strict=False)))
        if wider == current:
            return current, results
        current = wider
    current = tuple(_shapeless(c) for c in current)
    return current, _applied(body, current)


def stacked(item: Type | None, count: Dim, axis: int = 0) -> Type | None:
    """Return the type of one tensor per iteration, stacked on a new axis."""
    if item is None:
        return None
    if not isinstance(item, TensorType):
        raise InferenceError(f"only tensors can be stacked, and the body returns {item}")
    if item.shape is None:
        return TensorType(item.element)
    dims = list(item.shape)
    dims.insert(axis_in(axis, len(dims) + 1), count)
    return TensorType(item.element, tuple(dims))


def stack(items: Sequence[Array], kind: Type | None, axis: int = 0) -> Array:
    """Return the tensors of all iterations on a new axis; for no tensors, an empty stack of the type `kind`.

    Its unknown dimensions are then 0. Raises EvaluationError for items of several types.
    """
    if items:
        _check_alike(items)
        return np.stack(items, axis)
    if not isinstance(kind, TensorType) or not kind.element.number:
        raise EvaluationError(
            "no iteration runs, and the type of a stacked output is neither declared by the body nor inferred"
        )
    shape = [max(d, 0) if isinstance(d, int) else 0 for d in kind.shape or ()]
    shape.insert(axis_in(axis, len(shape) + 1), 0)
    return np.empty(shape, kind.element.dtype)


def _check_alike(items: Sequence[Any]) -> None:
    first: Any = items[0]
    for number, item in enumerate(items):
        if not isinstance(item, np.ndarray):
            found = "nothing" if item is None else f"a {type(item).__name__}"
            raise EvaluationError(f"only tensors can be stacked, and iteration {number} returns {found}")
        array = cast("Array", item)
        if array.shape != first.shape or array.dtype != first.dtype:
            raise EvaluationError(
                f"a stacked output must keep its type and shape; it is {type_of(first)} in iteration 0,"
                f" {type_of(array)} in iteration {number}"
            )


def one_of(what: str, value: Any) -> Array:
    """Return a tensor of one element; raises EvaluationError for anything else."""
    if not isinstance(value, np.ndarray):
        raise EvaluationError(f"{what} must be a tensor of one element, and is missing or not a tensor")
    array = cast("Array", value)
    if array.size != 1:
        raise EvaluationError(f"{what} must have one element, and has the shape {list(array.shape)}")
    return array


def check_one(what: str, kind: Type | None) -> None:
    """Raise InferenceError for a type that cannot have one element."""
    size = kind.size if isinstance(kind, TensorType) else None
    if isinstance(size, int) and size != 1:
        raise InferenceError(f"{what} must have one element, and is {kind}")


def shape_of_one(declared: Sequence[Type | None], place: int) -> tuple[int, ...]:
    """Return the shape of a body's input number `place`, which has one element.

    It is the declared one, `[1]` for instance, or else that of a scalar, as the standard requires.
    """
    kind = declared[place] if place < len(declared) else None
    shape = kind.shape if isinstance(kind, TensorType) else None
    # in files of several tools a number below 0 means an unknown dimension
    if shape is None or any(isinstance(d, int) and (d == 0 or d > 1) for d in shape):
        return ()
    return (1,) * len(shape)


def type_of(value: Any) -> Type | None:
    """Return the type of a value of a run, with contents if they are small; None where it has none."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        kind = ranks.type_of(array)
        has_contents = kind.element.is_integer or kind.element.kind == "bool"
        return (
            kind.with_known(contents.of_array(array))
            if has_contents and array.size <= contents.MOST
            else kind
        )
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
    """The items of the stacked outputs; they count against the memory budget while the loop runs."""

    def __init__(self, outputs: int) -> None:
        """Start with no items for each output."""
        self.stacks: list[list[Array]] = [[] for _ in range(outputs)]
        self._size = 0

    def add(self, items: Sequence[Array]) -> None:
        """Keep the results of one iteration; raises LimitError where they exceed the budget."""
        for stack, item in zip(self.stacks, items, strict=True):
            stack.append(item)
        if items:
            size = sum(getattr(x, "nbytes", 0) for x in items)
            self._size += size
            budget().allocate(size)

    def taken(self) -> list[list[Array]]:
        """Return the items by output, and release them from the budget."""
        budget().live_bytes -= self._size
        self._size = 0
        return self.stacks


def _applied(body: Callable[..., Types], carried: Types) -> Types:
    results = body(*carried)
    if len(results) < len(carried):
        raise InferenceError(f"the body has {len(results)} outputs for {len(carried)} carried values")
    return results


def _covering(before: Type | None, after: Type | None, place: int) -> Type | None:
    if before is None or after is None:
        return _shapeless(before or after)
    if isinstance(before, TensorType) and isinstance(
        after, TensorType
    ):  # an unknown element type is the other's
        before = before if before.element.number else TensorType(after.element, before.shape)
        after = after if after.element.number else TensorType(before.element, after.shape)
    if isinstance(before, OptionalType) and not isinstance(after, OptionalType):
        after = OptionalType(after)  # an iteration may return the value of an optional
    try:
        return before.join(after)
    except TypeError as mix:
        raise InferenceError(f"carried value {place} changes its type: {mix}") from mix


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
