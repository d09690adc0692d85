"""Padding: elements added before and after the axes of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError, check_elements
from sabir.ir import Expr, TensorType, total
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.shapes import axes_in
from sabir.opsets.families.shapes.sizes import allotted

_INDEX = 24  # temporary bytes for each index of a padded axis, approximately

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Dim, Item
    from sabir.opsets.typing import Array


def known_pads(pads: TensorType, axes: int | None) -> Sequence[Dim] | None:
    """Return the pads, as None where only their number is known, or None."""
    if pads.known is not None:
        return [p if isinstance(p, int | Expr) else None for p in pads.known]
    count = pads.size if axes is None else 2 * axes
    return (None,) * count if isinstance(count, int) and count <= contents.MOST else None


def inferred(
    data: TensorType, pads: Sequence[Dim], axes: Sequence[int] | None, mode: str, filling: Item
) -> TensorType:
    """Return the type of the padded tensor, with its contents where all is known.

    Raises InferenceError for pads that remove more elements than there are.
    """
    if data.shape is None:
        rank = len(pads) // 2 if axes is None else None
        return TensorType(data.element, None if rank is None else (None,) * rank)
    begin, end = by_axis(pads, axes, len(data.shape))
    dims = tuple(map(total, zip(data.shape, begin, end, strict=True)))
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise InferenceError(f"`pads` {[*map(str, pads)]} remove more elements than {data} has")
    kind = TensorType(data.element, dims)
    numbers = [p for p in (*begin, *end) if isinstance(p, int)]
    if len(numbers) < 2 * len(dims):
        return kind
    half = len(dims)
    check_sources(data.shape, numbers[:half], numbers[half:], mode)
    return contents.moved(
        kind, lambda known: padded(known, numbers[:half], numbers[half:], mode, filling), data
    )


def with_pads(
    data: Array, pads: Sequence[int], axes: Sequence[int] | None, mode: str, filling: object
) -> Array:
    """Return an array with elements added before and after some axes."""
    return padded(data, *by_axis(pads, axes, data.ndim), mode, filling)


def by_axis(pads: Sequence[Any], axes: Sequence[int] | None, rank: int) -> tuple[list[Any], list[Any]]:
    """Return the padding before and after each axis."""
    numbers = axes_in(range(rank) if axes is None else axes, rank)
    if len(pads) != 2 * len(numbers):
        raise InferenceError(
            f"{len(pads)} pads for {len(numbers)} axes: each needs one before and one after it"
        )
    begin, end = [0] * rank, [0] * rank
    for i, axis in enumerate(numbers):
        begin[axis], end[axis] = pads[i], pads[len(numbers) + i]
    return begin, end


def padded(data: Array, begin: Sequence[int], end: Sequence[int], mode: str, filling: object) -> Array:
    """Return an array with elements added before and after each axis, or removed for negative numbers."""
    sizes = [n + b + e for n, b, e in zip(data.shape, begin, end, strict=True)]
    if any(size < 0 for size in sizes):
        raise ValueError(f"pads {[*begin, *end]} remove more elements than the shape {list(data.shape)} has")
    allotted(sizes, data.dtype, data.size)
    if mode == "constant":
        return _filled(data, begin, sizes, filling)
    check_sources(data.shape, begin, end, mode)
    for axis, (n, b, e) in enumerate(zip(data.shape, begin, end, strict=True)):
        if b or e:
            data = np.take(data, _source(n, b, e, mode), axis)
    return data.copy() if not any((*begin, *end)) else data


def check_sources(shape: Sequence[Dim], begin: Sequence[int], end: Sequence[int], mode: str) -> None:
    """Raise InferenceError if a mode repeats elements of an axis that has none."""
    if mode == "constant":
        return
    for n, b, e in zip(shape, begin, end, strict=True):
        if isinstance(n, int) and n + min(b, 0) + min(e, 0) <= 0 < max(b, e):
            raise InferenceError(f"the mode {mode!r} has no elements to repeat in an axis of {n}")


def _filled(data: Array, begin: Sequence[int], sizes: Sequence[int], filling: object) -> Array:
    """Return an array of the constant that contains `data`."""
    padded = np.full(sizes, filling, data.dtype)
    source: list[slice] = []
    target: list[slice] = []
    for n, b, size in zip(data.shape, begin, sizes, strict=True):
        first, last = max(0, -b), min(n, size - b)
        source.append(slice(first, max(first, last)))
        target.append(slice(first + b, max(first, last) + b))
    padded[tuple(target)] = data[tuple(source)]
    return padded


def _source(n: int, before: int, after: int, mode: str) -> Array:
    """Return for each index of a padded axis the index that it copies, never a removed one."""
    first, last = max(0, -before), n - max(0, -after)
    left = last - first
    length = left + max(0, before) + max(0, after)
    check_elements(length, length, what="the indices", width=_INDEX)
    index = np.arange(-max(0, before), left + max(0, after))
    if left <= 0:
        return index
    return _FOLDS[mode](index, left) + first


def _mirrored(index: Array, n: int) -> Array:
    period = np.mod(index, max(2 * n - 2, 1))
    return np.minimum(period, 2 * n - 2 - period)


_FOLDS: dict[str, Callable[[Array, int], Array]] = {
    "edge": lambda index, n: np.clip(index, 0, n - 1),
    "reflect": _mirrored,
    "wrap": np.mod,
}
