"""Reductions over some axes: up to opset 17 an attribute names them, later an input.

A reduction is a rule `(x, axes, keepdims) -> array`; from it these functions make a room's behaviours.
What several reductions begin or end with is here too: sums, extremes, and calls of them in function bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sabir.base import check_elements
from sabir.elements import DOUBLE
from sabir.ir import TensorType
from sabir.opsets.families import contents, halves
from sabir.opsets.families.arithmetic import as_dims, as_items, widened
from sabir.opsets.families.axes import as_input
from sabir.opsets.families.ranks import as_list, check_rank
from sabir.opsets.families.shapes import axes_in, with_some_dropped
from sabir.opsets.families.sizes import passed_over
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Builder, Dim, Value
    from sabir.opsets.typing import Array

    Reduction: TypeAlias = Callable[[Array, tuple[int, ...], bool], Array]
    Combine: TypeAlias = Callable[[Any, Any], Dim]

_UNSQUEEZE_BY_INPUT = 13  # from this opset on Unsqueeze takes its axes as an input
_SUM_BY_INPUT, _OTHERS_BY_INPUT = 13, 18  # and so do ReduceSum and the other reductions


def infer_attribute(combine: Combine | None = None) -> Callable[..., TensorType]:
    """Return the type rule of the versions whose axes are an attribute, none meaning all.

    `combine` joins two dimensions into one, for a reduction that shape arithmetic uses.
    """

    def infer(data: TensorType, /, *, axes: Sequence[int] | None, keepdims: int) -> TensorType:
        return _reduced(data, axes or None, keepdims, combine)

    return infer


def infer_input(combine: Combine | None = None) -> Callable[..., TensorType]:
    """Return the type rule of the versions whose axes are an input."""

    def infer(
        data: TensorType, axes: TensorType | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> TensorType:
        check_rank("axes", axes, 1)
        count = 0 if axes is None else axes.size
        known = () if count == 0 else contents.ints(axes.known if axes else None)
        if known is None:
            return TensorType(data.element, _some_reduced(data, count, keepdims))
        return _reduced(data, known or (() if noop_with_empty_axes else None), keepdims, combine)

    return infer


def over_attribute(reduction: Reduction) -> Callable[..., Array]:
    """Return the evaluation of the versions whose axes are an attribute."""

    def evaluate(data: Array, /, *, axes: Sequence[int] | None, keepdims: int) -> Array:
        passed_over(data)
        return reduction(data, _axes(axes or None, data.ndim), keepdims != 0)

    return evaluate


def over_input(reduction: Reduction) -> Callable[..., Array]:
    """Return the evaluation of the versions whose axes are an input."""

    def evaluate(
        data: Array, axes: Array | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Array:
        passed_over(data)
        given = [] if axes is None else as_list("axes", axes)
        return reduction(
            data, _axes(given or (() if noop_with_empty_axes else None), data.ndim), keepdims != 0
        )

    return evaluate


def to_input(name: str) -> Callable[..., Value]:
    """Return the upgrade to the version that takes its axes as an input."""

    def upgrade(b: Builder, data: Value, /, *, axes: Sequence[int] | None, keepdims: int) -> Value:
        given = (b.initializer("axes", np.array(axes, np.int64)),) if axes else ()
        return b.op(name, data, *given, keepdims=keepdims)

    return upgrade


def to_attribute(name: str) -> Callable[..., Value]:
    """Return the downgrade to the version that takes its axes as an attribute."""

    def downgrade(
        b: Builder, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Value:
        kind = axes.type if axes is not None and isinstance(axes.type, TensorType) else None
        known = (
            () if axes is None or (kind and kind.size == 0) else contents.ints(kind.known if kind else None)
        )
        if known is None:
            raise Unconvertible(
                f"the axes are computed at run time, and the older {name} needs them in the model"
            )
        if noop_with_empty_axes and not known:
            return b.op(name, _with_front(b, data), axes=[0], keepdims=0)
        return b.op(name, data, axes=tuple(known) or None, keepdims=keepdims)

    return downgrade


def without_integers(name: str) -> Callable[..., Value]:
    """Return the upgrade to the version that admits floats only; integers are computed as double."""

    def upgrade(
        b: Builder, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Value:
        if not isinstance(data.type, TensorType) or not data.type.element.number:
            raise Unconvertible(f"the element type is unknown, and the newer {name} takes floats only")
        whole = data.type.element.is_integer
        floats = as_floats(b, data) if whole else data
        y = b.op(name, floats, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
        return as_before(b, y, data) if whole else y

    return upgrade


def same(name: str) -> Callable[..., Value]:
    """Return the downgrade to a version that means the same."""

    def downgrade(
        b: Builder, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Value:
        return b.op(name, data, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)

    return downgrade


def _with_front(b: Builder, data: Value) -> Value:
    """Add a dimension of size 1: to reduce it is to reduce nothing, which the old versions cannot say."""
    if b.opset < _UNSQUEEZE_BY_INPUT:
        return b.Unsqueeze(data, axes=[0])
    return b.Unsqueeze(data, b.initializer("front", np.array([0], np.int64)))


def total(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    """Return sums in the type of `x`: those of integers wrap, those of halves are rounded once."""
    kind = x.dtype if x.dtype.kind in "iu" else accumulator(x.dtype)
    return np.add.reduce(x, axis=axes, dtype=kind, keepdims=keepdims).astype(x.dtype, copy=False)


def extreme(pick: np.ufunc, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    """Return what `pick` (maximum or minimum) leaves; of no elements, the other end of the type's range."""
    wide = widened(x)
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        ends = limits.min, limits.max
    elif x.dtype.kind == "b":
        ends = False, True
    else:
        ends = -np.inf, np.inf
    neutral = ends[0] if pick is np.maximum else ends[1]
    return pick.reduce(wide, axis=axes, keepdims=keepdims, initial=neutral).astype(x.dtype, copy=False)


def log_sum_exp(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  a reduction's signature
    """Return log(sum(exp(x))) of floats, shifted by the maximum so that no exponential overflows."""
    check_elements(x.size, x.size, what="the exponentials", width=2 * x.itemsize)
    most = np.maximum.reduce(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(most), most, x.dtype.type(0))
    logs = np.log(np.add.reduce(np.exp(x - shift), axis=axes, keepdims=True)) + shift
    return logs if keepdims else np.squeeze(logs, axis=axes)


def as_floats(b: Builder, x: Value) -> Value:
    """Return `x` in a type that can be computed in: halves as float, integers as double."""
    if isinstance(x.type, TensorType) and x.type.element.is_integer:
        return b.Cast(x, to=DOUBLE.number)
    return halves.widened(b, x)


def as_before(b: Builder, y: Value, x: Value) -> Value:
    """Return `y` in the type that `x` had before `as_floats`."""
    if isinstance(x.type, TensorType) and x.type.element.is_integer:
        return b.Cast(y, to=x.type.element.number)
    return halves.rounded(b, y, x)


def call(b: Builder, name: str, x: Value, axes: Sequence[int], *, keepdims: int = 1) -> Value:
    """Emit a reduction over axes known now, as the builder's opset takes them."""
    if b.opset < (_SUM_BY_INPUT if name == "ReduceSum" else _OTHERS_BY_INPUT):
        return b.op(name, x, axes=tuple(axes) or None, keepdims=keepdims)
    return b.op(name, x, as_input(b, "axes", axes), keepdims=keepdims)


def accumulator(kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which a type is summed: float32 for the halves, 64 bits for integers."""
    if kind.kind in "iu":
        return np.dtype(np.int64 if kind.kind == "i" else np.uint64)
    return np.promote_types(kind, np.float32)


def _axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    return tuple(range(rank)) if axes is None else axes_in(axes, rank)


def _reduced(
    data: TensorType, axes: Sequence[int] | None, keepdims: int, combine: Combine | None
) -> TensorType:
    if data.shape is None:
        scalar = axes is None and not keepdims
        return TensorType(data.element, () if scalar else None)
    gone = _axes(axes, len(data.shape))
    dims: list[Dim] = [1 if i in gone else d for i, d in enumerate(data.shape) if keepdims or i not in gone]
    kind = TensorType(data.element, tuple(dims))
    if combine is None:
        return kind
    return contents.moved(kind, lambda x: _folded(x, gone, combine, data.element), data)


def _folded(x: Array, axes: tuple[int, ...], combine: Combine, element: ElementType) -> Array:
    """Fold an array of known contents over some axes; nothing is known of a fold of no elements."""
    if not x.size:
        return np.full([1 if i in axes else d for i, d in enumerate(x.shape)], None)
    whole, dims = np.frompyfunc(combine, 2, 1), as_dims(x)
    for axis in axes:
        dims = whole.reduce(dims, axis=axis, keepdims=True)
    return as_items(dims, element)


def _some_reduced(data: TensorType, count: Dim, keepdims: int) -> tuple[Dim, ...] | None:
    """Return the shape when it is not known which axes go, but perhaps how many."""
    if data.shape is None:
        return None
    if keepdims:
        return tuple(1 if d == 1 or count == len(data.shape) else None for d in data.shape)
    return with_some_dropped(data.shape, count, lambda _: True) if isinstance(count, int) else None
