"""Merging the declared type of a value with the inferred one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.ir import Expr, OptionalType, SequenceType, TensorType, Type, known_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape


def merge(declared: Type | None, inferred: Type | None, *, prefer_declared: bool = False) -> Type | None:
    """Return the type with everything that the declared or the inferred type states.

    A number is preferred to a symbol, and a symbol to an open dimension; of two symbols the inferred one is
    preferred, with `prefer_declared` the declared one. Raises InferenceError if the types contradict.

    >>> from sabir.ir import tensor_type
    >>> print(merge(tensor_type('float', [None, 3]), tensor_type('float', ['N', None])))
    float[N,3]
    """
    if declared is None or inferred is None:
        return inferred or declared
    match declared, inferred:
        case TensorType(), TensorType():
            return _tensors(declared, inferred, prefer_declared=prefer_declared)
        case SequenceType(), SequenceType():
            return SequenceType(
                merge(declared.item, inferred.item, prefer_declared=prefer_declared), declared.note
            )
        case OptionalType(), OptionalType():
            return OptionalType(
                merge(declared.item, inferred.item, prefer_declared=prefer_declared), declared.note
            )
        case _ if type(declared) is type(inferred):
            return declared if declared == inferred or prefer_declared else inferred
        case _:
            raise InferenceError(f"declared as {declared}, but it is {inferred}")


def _tensors(declared: TensorType, inferred: TensorType, *, prefer_declared: bool) -> TensorType:
    element = inferred.element if inferred.element.number else declared.element
    if declared.element.number and element != declared.element:
        raise InferenceError(f"declared as {declared}, but its elements are {inferred.element}")
    shape = _shapes(declared, inferred, element, prefer_declared=prefer_declared)
    if element is inferred.element and shape == inferred.shape and declared.note is None:
        return inferred
    return TensorType(element, shape, inferred.known, declared.note)


def _shapes(
    declared: TensorType, inferred: TensorType, element: ElementType, *, prefer_declared: bool
) -> Shape | None:
    if declared.shape is None or inferred.shape is None:
        return declared.shape if inferred.shape is None else inferred.shape
    if len(declared.shape) != len(inferred.shape):
        raise InferenceError(
            f"declared as {declared}, but it is {TensorType(element, inferred.shape)}: the ranks differ"
        )
    dims: list[Dim] = []
    for stated, found in zip(declared.shape, inferred.shape, strict=True):
        if known_equal(stated, found) is False:
            raise InferenceError(
                f"declared as {declared}, but it is {inferred}: {stated} differs from {found}"
            )
        dims.append(_better(stated, found, prefer_declared=prefer_declared))
    return tuple(dims)


def _better(stated: Dim, found: Dim, *, prefer_declared: bool) -> Dim:
    if stated is None or found is None:
        return found if stated is None else stated
    if isinstance(stated, Expr) and isinstance(found, Expr):
        return stated if prefer_declared else found
    return stated if isinstance(stated, int) else found


def contradiction(one: Type | None, other: Type | None) -> str:
    """Return how two types of one value contradict each other, or "".

    >>> from sabir.ir import tensor_type
    >>> contradiction(tensor_type('float', [2]), tensor_type('float', ['N']))
    ''
    >>> bool(contradiction(tensor_type('float', [2]), tensor_type('float', [3])))
    True
    """
    try:
        merge(one, other)
    except InferenceError as error:
        return str(error)
    return ""


def without_names(declared: Type) -> Type:
    """Return a declared type without its symbolic dimensions.

    A name that a subgraph gives to a dimension means its size in one iteration or branch; outside, or in the
    next iteration, the same name would mean the same size.
    """
    return _opened(declared, lambda dim: isinstance(dim, Expr))


def without_negatives(declared: Type) -> Type:
    """Return a declared type without its dimensions below 0, which no tensor has."""
    return _opened(declared, lambda dim: isinstance(dim, int) and dim < 0)


def _opened(declared: Type, opens: Callable[[Dim], bool]) -> Type:
    match declared:
        case TensorType() if declared.shape is not None:
            if not any(map(opens, declared.shape)):
                return declared
            dims = tuple(None if opens(d) else d for d in declared.shape)
            return TensorType(declared.element, dims, note=declared.note)
        case SequenceType() | OptionalType() if declared.item is not None:
            item = _opened(declared.item, opens)
            return declared if item is declared.item else type(declared)(item, declared.note)
        case _:
            return declared


def without_item_names(declared: Type) -> Type:
    """Return a declared type without the symbolic dimensions of a sequence's items, which may all differ."""
    match declared:
        case SequenceType():
            return without_names(declared)
        case OptionalType() if declared.item is not None:
            item = without_item_names(declared.item)
            return declared if item is declared.item else OptionalType(item, declared.note)
        case _:
            return declared


def with_names(found: Type, declared: Type | None) -> Type:
    """Return an inferred type, with the file's names for the dimensions of unknown size."""
    match found, declared:
        case TensorType(), TensorType() if found.shape and declared.shape:
            if len(found.shape) != len(declared.shape) or None not in found.shape:
                return found
            dims = (name if d is None else d for d, name in zip(found.shape, declared.shape, strict=True))
            return TensorType(found.element, tuple(dims), note=found.note)
        case (SequenceType(), SequenceType()) | (OptionalType(), OptionalType()) if found.item is not None:
            return type(found)(with_names(found.item, declared.item), found.note)
        case _:
            return found
