"""Gradients of the parts of a tensor, padded with zeros: where they are all of it, a join is their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Tensor, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value


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
    if node is None or node.op != "Pad" or node.attributes or any(node.inputs[2:]):
        return None
    data, pads = node.inputs[:2]
    kind = data.type if data is not None else None
    if data is None or not isinstance(kind, TensorType) or kind.shape is None:
        return None
    shape, around = kind.shape, _numbers(pads)
    if len(around) != 2 * len(shape):
        return None
    pairs = zip(shape, around[: len(shape)], around[len(shape) :], strict=True)
    found = [(axis, *sizes) for axis, sizes in enumerate(pairs) if any(sizes[1:])]
    if len(found) != 1:
        return None
    axis, size, before, after = found[0]
    if not isinstance(size, int) or min(before, after) < 0:
        return None
    return _Part(axis, before, size, after, data)


def _numbers(value: Value | None) -> list[int]:
    """Return the contents of a small constant; nothing for another value."""
    data = None if value is None or value.is_input else value.constant
    return data.array().tolist() if isinstance(data, Tensor) and data.shape else []
