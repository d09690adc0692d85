"""Sequences of tensors: the types of their items, and positions in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.ir import UNDEFINED, SequenceType, TensorType
from sabir.opsets.families.shapes.ranks import as_number

if TYPE_CHECKING:
    from sabir.ir import Type
    from sabir.opsets.typing import Array

NO_SEQUENCES = "no operator before opset 11 has sequences"
"""Why an operator on sequences has no equivalent in older ones."""


def item_of(sequence: Type) -> TensorType:
    """Return the type of a sequence's items, as far as it is known."""
    item = sequence.item if isinstance(sequence, SequenceType) else None
    return item if isinstance(item, TensorType) else TensorType(UNDEFINED)


def sequence_of(*items: TensorType) -> SequenceType:
    """Return the type of a sequence of these items, which may differ in shape only.

    Contents are dropped: those of one item do not apply to the others.
    """
    element = next((t.element for t in items if t.element.number), UNDEFINED)
    for item in items:
        if item.element.number and item.element != element:
            raise InferenceError(f"a sequence has one element type, not {element} and {item.element}")
    covering: Type = TensorType(element, items[0].shape)
    for item in items[1:]:
        covering = covering.join(TensorType(element, item.shape))
    return SequenceType(covering)


def check_items(*items: Array) -> None:
    """Raise ValueError where tensors of several element types would share a sequence."""
    found = {x.dtype: None for x in items}
    if len(found) > 1:
        raise ValueError(f"a sequence has one element type, not {' and '.join(map(str, found))}")


def place(position: Array | None, count: int, *, default: int, last: int) -> int:
    """Return a position among `count` items from the front; raises ValueError outside [-count, last]."""
    index = default if position is None else int(as_number("position", position))
    if not -count <= index <= last:
        raise ValueError(f"position {index} is outside [{-count}, {last}] of a sequence of {count}")
    return index + count if index < 0 else index
