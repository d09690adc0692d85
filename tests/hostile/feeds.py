"""Small feeds for a model of which nothing is known but what it declares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.ir import MapType, OptionalType, SequenceType, TensorType

if TYPE_CHECKING:
    from sabir import Model
    from sabir.ir import Type

MOST_ELEMENTS, MOST_AXES = 4096, 64


def feeds_for(model: Model) -> dict[str, Any]:
    """Return a feed for each input whose type says what to give, unless that is large."""
    given = {v.name: _value_of(v.type) for v in model.graph.inputs}
    return {name: value for name, value in given.items() if value is not None}


def _value_of(kind: Type | None) -> Any:
    match kind:
        case TensorType() if kind.element.number and kind.shape is not None:
            return _array(kind, [d if isinstance(d, int) else 2 for d in kind.shape])
        case SequenceType():
            item = _value_of(kind.item)
            return None if item is None else [item]
        case OptionalType():
            return _value_of(kind.item)
        case MapType():
            return {"a" if kind.key.name == "string" else 1: 1.0}
        case _:
            return None


def _array(kind: TensorType, shape: list[int]) -> Any:
    if (
        len(shape) > MOST_AXES
        or min(shape, default=0) < 0
        or math.prod(max(d, 1) for d in shape) > MOST_ELEMENTS
    ):
        return None
    return np.full(shape, "a" if kind.element.name == "string" else 1).astype(kind.element.dtype)
