"""Poolings: windows folded to one element, one axis at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.windows import LEAST_RANK, Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.opsets.families.windows import Axis
    from sabir.opsets.typing import Array

_BLOCK = 1 << 19  # bytes of input that are folded while they are in the cache


def pooled_type(x: TensorType, window: Window) -> TensorType:
    """Return the type of `x` (N, C, *lengths) with a window's places for its lengths."""
    if x.shape is None:
        return TensorType(x.element, (None,) * (2 + len(window.kernel)))
    if len(x.shape) < LEAST_RANK:
        raise InferenceError(f"{x} has no spatial axes; batch and channels come first")
    return TensorType(x.element, (*x.shape[:2], *window.outputs(x.shape[2:])))


def pooled_to_one(x: TensorType) -> TensorType:
    """Return the type of `x` (N, C, *lengths) with one element for each channel."""
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) < LEAST_RANK - 1:
        raise InferenceError(f"{x} has no channels; the batch comes first, they second")
    return TensorType(x.element, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


def folded(x: Array, axes: Sequence[Axis], operation: np.ufunc, empty: float) -> Array:
    """Join the elements of each window of `x` (N, C, *lengths); what has none becomes `empty`."""
    if all(a.windows == 1 and a.begin == a.end == 0 for a in axes):  # one window, as before a classifier
        reach = (slice(0, (a.kernel - 1) * a.dilation + 1, a.dilation) for a in axes)
        return operation.reduce(x[..., *reach], axis=tuple(range(2, x.ndim)), keepdims=True)
    counts = tuple(a.windows for a in axes)
    flat = x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
    y = np.empty((len(flat), *counts), x.dtype)
    step = max(1, _BLOCK // max(1, math.prod(x.shape[2:]) * x.itemsize))
    for first in range(0, len(flat), step):
        part = flat[first : first + step]
        for place, axis in enumerate(axes, 1):
            if not axis.is_trivial:
                part = _along(part, place, axis, operation, empty)
        y[first : first + step] = part
    return y.reshape(*x.shape[:2], *counts)


def _along(x: Array, place: int, axis: Axis, operation: np.ufunc, empty: float) -> Array:
    """Join the taps of every window along one axis: as many array operations as the kernel has taps."""
    before = (slice(None),) * place
    y = np.empty((*x.shape[:place], axis.windows, *x.shape[place + 1 :]), x.dtype)
    runs = [axis.run(t) for t in range(axis.kernel)]
    whole = [r for r in runs if r.stop - r.start == axis.windows]
    rest = [r for r in runs if r.stop - r.start < axis.windows]
    if len(whole) > 1:
        operation(x[*before, whole[0].source], x[*before, whole[1].source], out=y)
    else:
        y[...] = x[*before, whole[0].source] if whole else empty
    for run in (*whole[2:], *rest):
        part = y[*before, slice(run.start, run.stop)]
        operation(part, x[*before, run.source], out=part)
    return y


def places(axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
    """Yield each tap of the kernel with the windows that have it inside the input, and what they read."""
    for tap in np.ndindex(*(a.kernel for a in axes)):
        runs = [a.run(t) for a, t in zip(axes, tap, strict=True)]
        yield tap, tuple(slice(r.start, r.stop) for r in runs), tuple(r.source for r in runs)
