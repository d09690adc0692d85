"""Gradients of sequences and optionals: they have the items of what they are the gradients of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import UnsupportedError, quote
from sabir.ir import OptionalType, SequenceType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Builder, Type, Value


def element_of(value: Value) -> ElementType:
    """Return the element type of a tensor; raises UnsupportedError where it is unknown."""
    if not isinstance(value.type, TensorType) or not value.type.element.number:
        raise UnsupportedError(f"a gradient needs the element type of {quote(value.name)}, which is unknown")
    return value.type.element


def item_element(value: Value) -> ElementType:
    """Return the element type of a tensor, or of the items of a sequence; raises as `element_of`."""
    return _item(value).element if isinstance(value.type, SequenceType) else element_of(value)


def zeros_like(b: Builder, value: Value) -> Value:
    """Return zeros of the shape and element type of a tensor, or of all items of a container."""
    if isinstance(value.type, SequenceType):
        return _for_each(b, [value], lambda inner, items: zeros_like(inner, items[0]))
    if isinstance(value.type, OptionalType):
        return _if_present(b, [value], lambda inner, items: zeros_like(inner, items[0]))
    zero = b.Constant(value=np.zeros((), element_of(value).dtype))
    return b.Expand(zero, b.Shape(value))


def total_of(b: Builder, parts: Sequence[Value]) -> Value:
    """Return the sum of tensors, or of containers item by item."""
    kind = parts[0].type
    if isinstance(kind, SequenceType):
        return _for_each(b, parts, total_of)
    if isinstance(kind, OptionalType):
        return _if_present(b, parts, total_of)
    return b.Sum(*parts)


def empty(b: Builder, kind: Type | None) -> Value:
    """Return an empty sequence or optional of a type."""
    if isinstance(kind, OptionalType):
        return b.Optional(None, type=kind.item)
    item = kind.item if isinstance(kind, SequenceType) else None
    if not isinstance(item, TensorType) or not item.element.number:
        raise UnsupportedError(
            f"a gradient needs an empty value of the type {kind}, which is not known well enough"
        )
    return b.SequenceEmpty(dtype=item.element.number)


def _for_each(
    b: Builder, sequences: Sequence[Value], build: Callable[[Builder, Sequence[Value]], Value]
) -> Value:
    def body(inner: Builder) -> Value:
        items = [inner.input("item", _item(s)) for s in sequences]
        result = build(inner, items)
        result.type = _item(sequences[0])
        return result

    return b.SequenceMap(*sequences, body=b.subgraph(body, name="each_item"), outputs=1)


def _if_present(
    b: Builder, optionals: Sequence[Value], build: Callable[[Builder, Sequence[Value]], Value]
) -> Value:
    def element(inner: Builder) -> Value:
        return inner.Optional(build(inner, [inner.OptionalGetElement(o) for o in optionals]))

    def nothing(inner: Builder) -> Value:
        return empty(inner, optionals[0].type)

    present: Any = b.OptionalHasElement(optionals[0])
    return b.If(
        present,
        then_branch=b.subgraph(element, name="present"),
        else_branch=b.subgraph(nothing, name="absent"),
        outputs=1,
    )


def _item(sequence: Value) -> TensorType:
    """Return the type of the items of a sequence, without sizes: they may differ from item to item."""
    item = sequence.type.item if isinstance(sequence.type, SequenceType) else None
    if not isinstance(item, TensorType) or not item.element.number:
        raise UnsupportedError(
            f"a gradient needs the type of the items of {quote(sequence.name)}, which is unknown"
        )
    return TensorType(item.element, None if item.shape is None else tuple(None for _ in item.shape))
