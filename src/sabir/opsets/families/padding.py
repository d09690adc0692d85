"""Elements put before and behind the axes of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError, check_elements
from sabir.opsets.families.shapes import axes_in
from sabir.opsets.families.sizes import allotted

_PLACE = 24  # bytes, about, of a place while its source is found

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array


def by_axis(pads: Sequence[Any], axes: Sequence[int] | None, rank: int) -> tuple[list[Any], list[Any]]:
    """Return how much goes before and behind each axis."""
    places = axes_in(range(rank) if axes is None else axes, rank)
    if len(pads) != 2 * len(places):
        raise InferenceError(
            f"{len(pads)} pads for {len(places)} axes: one before and one behind each is needed"
        )
    begin, end = [0] * rank, [0] * rank
    for place, axis in enumerate(places):
        begin[axis], end[axis] = pads[place], pads[len(places) + place]
    return begin, end


def padded(data: Array, begin: Sequence[int], end: Sequence[int], mode: str, filling: object) -> Array:
    """Return an array with so many elements put before and behind each axis, or cut off it."""
    sizes = [n + b + e for n, b, e in zip(data.shape, begin, end, strict=True)]
    if any(size < 0 for size in sizes):
        raise ValueError(f"pads {[*begin, *end]} cut more off than the shape {list(data.shape)} has")
    allotted(sizes, data.dtype, data.size)
    if mode == "constant":
        return _filled(data, begin, sizes, filling)
    check_sources(data.shape, begin, end, mode)
    for axis, (n, b, e) in enumerate(zip(data.shape, begin, end, strict=True)):
        if b or e:
            data = np.take(data, _source(n, b, e, mode), axis)
    return data.copy() if not any((*begin, *end)) else data


def check_sources(shape: Sequence[Dim], begin: Sequence[int], end: Sequence[int], mode: str) -> None:
    """Raise InferenceError where a mode that repeats elements has none to repeat."""
    if mode == "constant":
        return
    for n, b, e in zip(shape, begin, end, strict=True):
        if isinstance(n, int) and n + min(b, 0) + min(e, 0) <= 0 < max(b, e):
            raise InferenceError(f"the mode {mode!r} has nothing to repeat in an axis of {n} elements")


def _filled(data: Array, begin: Sequence[int], sizes: Sequence[int], filling: object) -> Array:
    """Return the constant everywhere but where an element of `data` falls."""
    padded = np.full(sizes, filling, data.dtype)
    source: list[slice] = []
    target: list[slice] = []
    for n, b, size in zip(data.shape, begin, sizes, strict=True):
        first, last = max(0, -b), min(n, size - b)
        source.append(slice(first, max(first, last)))
        target.append(slice(first + b, max(first, last) + b))
    padded[tuple(target)] = data[tuple(source)]
    return padded


def _source(n: int, before: int, behind: int, mode: str) -> Array:
    """Return for each place of a padded axis the place it copies, never one that is cut off."""
    first, last = max(0, -before), n - max(0, -behind)
    left = last - first
    length = left + max(0, before) + max(0, behind)
    check_elements(length, length, what="the places", width=_PLACE)
    place = np.arange(-max(0, before), left + max(0, behind))
    if left <= 0:
        return place
    return _FOLDS[mode](place, left) + first


def _mirrored(place: Array, n: int) -> Array:
    turn = np.mod(place, max(2 * n - 2, 1))
    return np.minimum(turn, 2 * n - 2 - turn)


_FOLDS: dict[str, Callable[[Array, int], Array]] = {
    "edge": lambda place, n: np.clip(place, 0, n - 1),
    "reflect": _mirrored,
    "wrap": np.mod,
}
