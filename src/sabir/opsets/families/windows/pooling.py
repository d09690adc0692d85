"""Poolings: the elements of each window reduced to one, one axis at a time."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.opsets.families.windows.windows import LEAST_RANK, Window
from sabir.schema import FLOATS, Constraint, Input, Output, Unconvertible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.opsets.families.windows.windows import WindowAxis
    from sabir.opsets.typing import Array
    from sabir.schema import Attribute, Operator, Version

_BLOCK = 1 << 19  # bytes of input that are reduced at a time, so that they stay in the cache


def pooled_type(x: TensorType, window: Window) -> TensorType:
    """Return the type of `x` (N, C, *lengths) with the number of windows along each spatial axis."""
    if x.shape is None:
        return TensorType(x.element, (None,) * (2 + len(window.kernel)))
    if len(x.shape) < LEAST_RANK:
        raise InferenceError(f"{x} has no spatial axes; the first two are batch and channels")
    return TensorType(x.element, (*x.shape[:2], *window.outputs(x.shape[2:])))


def declare_global(operator: Operator, result: str, *attributes: Attribute) -> Version:
    """Declare the first version of a pooling of whole channels to one `result`, with inference."""
    of = Constraint("T", FLOATS)
    v1 = operator.first(
        1,
        inputs=[Input("X", of, "The input, (N, C, D1, ..., Dn).", differentiable=True)],
        outputs=[Output("Y", of, f"One {result} for each channel, (N, C, 1, ..., 1).", differentiable=True)],
        attributes=attributes,
    )
    v1.infer(_pooled_to_one)
    return v1


def _pooled_to_one(x: TensorType, /) -> TensorType:
    """Return the type of `x` (N, C, *lengths) with one element for each channel."""
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) < LEAST_RANK - 1:
        raise InferenceError(f"{x} has no channels; the first axis is the batch, the second the channels")
    return TensorType(x.element, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


def reduce_windows(x: Array, axes: Sequence[WindowAxis], operation: np.ufunc, empty: float) -> Array:
    """Reduce the elements of each window of `x` (N, C, *lengths); a window without any becomes `empty`."""
    if all(a.windows == 1 and a.begin == a.end == 0 for a in axes):  # one window, as global pooling writes it
        reach = (slice(0, (a.kernel - 1) * a.dilation + 1, a.dilation) for a in axes)
        return operation.reduce(x[..., *reach], axis=tuple(range(2, x.ndim)), keepdims=True)
    counts = tuple(a.windows for a in axes)
    flat = x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
    y = np.empty(allotted((len(flat), *counts), x.dtype, x.size), x.dtype)
    step = max(1, _BLOCK // max(1, math.prod(x.shape[2:]) * x.itemsize))
    taps = sum(len(a.taps) for a in axes)
    spend_operations(taps * -(-len(flat) // step), taps * y.nbytes)
    for first in range(0, len(flat), step):
        part = flat[first : first + step]
        for number, axis in enumerate(axes, 1):
            if not axis.is_trivial:
                part = _along(part, number, axis, operation, empty)
        y[first : first + step] = part
    return y.reshape(*x.shape[:2], *counts)


def powers(x: Array, p: float) -> Array:
    """Return `|x| ** p`, 16-bit floats as float32; `roots` of their sums are the norms."""
    wide = np.abs(widened(x))
    if p in {1, 2}:
        return wide if p == 1 else np.square(wide)
    return np.power(wide, wide.dtype.type(p))


def whole_order(p: float) -> int:
    """Return the order of a norm as an integer; raises Unconvertible for a fraction."""
    if not float(p).is_integer():
        raise Unconvertible(f"p is {p:g}, and must be an integer in the newer version")
    return int(p)


def roots(sums: Array, p: float) -> Array:
    """Return `sums ** (1 / p)`."""
    if p in {1, 2}:
        return sums if p == 1 else np.sqrt(sums)
    return np.power(sums, sums.dtype.type(1 / p))


def _along(x: Array, number: int, axis: WindowAxis, operation: np.ufunc, empty: float) -> Array:
    """Reduce the taps of all windows along one axis, with one array operation for each tap."""
    before = (slice(None),) * number
    y = np.empty((*x.shape[:number], axis.windows, *x.shape[number + 1 :]), x.dtype)
    runs = [axis.run(t) for t in axis.taps]
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


def taps_backwards(axes: Sequence[WindowAxis]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield for each tap, the last first, the windows whose tap is inside the input, and what it reads."""
    taps = [a.taps[::-1] for a in axes]
    spend_operations(math.prod(map(len, taps)))
    for tap in itertools.product(*taps):
        runs = [a.run(t) for a, t in zip(axes, tap, strict=True)]
        yield tuple(slice(r.start, r.stop) for r in runs), tuple(r.source for r in runs)
