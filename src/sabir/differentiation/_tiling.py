"""Gradients of the parts of a tensor, padded with zeros: where they are all of it, a join is their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Tensor, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value

_OPERANDS = 4  # of Pad: data, pads, the number, axes


class _Part(NamedTuple):
    """A tensor with zeros before and after it along an axis; `order` is that of the axes after it, if any."""

    axis: int
    before: int
    size: int
    after: int
    data: Value
    order: tuple[int, ...] = ()


def joined(b: Builder, parts: Sequence[Value]) -> Value | None:
    """Return the sum of padded tensors that lie side by side, and nothing else, as their join; else None."""
    found = [part for value in parts if (part := _part(value)) is not None]
    if len(found) < len(parts):
        return None
    found.sort(key=lambda part: part.before)
    axis, order, end = found[0].axis, found[0].order, 0
    whole = found[0].before + found[0].size + found[0].after
    for part in found:
        if (
            part.axis != axis
            or part.order != order
            or part.before != end
            or part.before + part.size + part.after != whole
        ):
            return None
        end += part.size
    if end < whole:
        return None
    join = b.Concat(*(part.data for part in found), axis=axis)
    return b.Transpose(join, perm=order) if order else join


def _part(value: Value) -> _Part | None:
    """Return what zeros surround along one axis, None for another value or unknown sizes."""
    node = value.node
    if node is not None and node.op == "Transpose" and "perm" in node.attributes and node.inputs[0]:
        inner = _part(node.inputs[0])
        return None if inner is None or inner.order else inner._replace(order=node.attributes["perm"].value)
    if node is None or node.op != "Pad" or node.attributes or len(node.inputs) != _OPERANDS:
        return None
    data, pads, number, axes = node.inputs
    kind = data.type if data is not None else None
    around, along = _numbers(pads), _numbers(axes)
    if data is None or number is not None or len(along) != 1 or not isinstance(kind, TensorType):
        return None
    size = None if kind.shape is None or along[0] < 0 else kind.shape[along[0]]
    if not isinstance(size, int) or len(around) != 2 or min(around) < 0:  # ruff: ignore[magic-value-comparison]  before, after
        return None
    return _Part(along[0], around[0], size, around[1], data)


def _numbers(value: Value | None) -> list[int]:
    """Return the contents of a small constant; nothing for another value."""
    data = None if value is None or value.is_input else value.constant
    return data.array().tolist() if isinstance(data, Tensor) and data.shape else []
