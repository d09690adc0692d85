"""Reductions over some axes: up to opset 17 an attribute names them, later an input.

A reduction is a rule `(x, axes, keepdims) -> array`; from it these functions make a room's behaviours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families import contents
from sabir.opsets.families.shapes import axes_in
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Builder, Dim, Item, Value
    from sabir.opsets.typing import Array

    Reduction: TypeAlias = Callable[[Array, tuple[int, ...], bool], Array]
    Combine: TypeAlias = Callable[[Any, Any], Item]

_UNSQUEEZE_BY_INPUT = 13  # from this opset on Unsqueeze takes its axes as an input


def infer_attribute(combine: Combine | None = None) -> Callable[..., TensorType]:
    """Return the type rule of the versions whose axes are an attribute, none meaning all.

    `combine` joins two known elements into one, for a reduction that shape arithmetic uses.
    """

    def infer(data: TensorType, /, *, axes: Sequence[int] | None, keepdims: int) -> TensorType:
        return _reduced(data, axes or None, keepdims, combine)

    return infer


def infer_input(combine: Combine | None = None) -> Callable[..., TensorType]:
    """Return the type rule of the versions whose axes are an input."""

    def infer(
        data: TensorType, axes: TensorType | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> TensorType:
        count = 0 if axes is None else axes.size
        known = () if count == 0 else contents.ints(axes.known if axes else None)
        if known is None:
            return TensorType(data.element, _some_reduced(data, count, keepdims))
        return _reduced(data, known or (() if noop_with_empty_axes else None), keepdims, combine)

    return infer


def over_attribute(reduction: Reduction) -> Callable[..., Array]:
    """Return the evaluation of the versions whose axes are an attribute."""

    def evaluate(data: Array, /, *, axes: Sequence[int] | None, keepdims: int) -> Array:
        return reduction(data, _axes(axes or None, data.ndim), keepdims != 0)

    return evaluate


def over_input(reduction: Reduction) -> Callable[..., Array]:
    """Return the evaluation of the versions whose axes are an input."""

    def evaluate(
        data: Array, axes: Array | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Array:
        given = [] if axes is None else axes.ravel().tolist()
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


def _with_front(b: Builder, data: Value) -> Value:
    """Add a dimension of size 1: to reduce it is to reduce nothing, which the old versions cannot say."""
    if b.opset < _UNSQUEEZE_BY_INPUT:
        return b.Unsqueeze(data, axes=[0])
    return b.Unsqueeze(data, b.initializer("front", np.array([0], np.int64)))


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
    if combine is None or not data.element.is_integer:
        return kind
    return contents.moved(kind, lambda x: _folded(x, gone, combine), data)


def _folded(x: Array, axes: tuple[int, ...], combine: Combine) -> Array:
    """Fold an array of known contents over some axes; nothing is known of a fold of no elements."""
    if not x.size:
        return np.full([1 if i in axes else d for i, d in enumerate(x.shape)], None)
    whole = np.frompyfunc(lambda a, b: None if a is None or b is None else combine(a, b), 2, 1)
    for axis in axes:
        x = whole.reduce(x, axis=axis, keepdims=True)
    return x


def _some_reduced(data: TensorType, count: Dim, keepdims: int) -> tuple[Dim, ...] | None:
    """Return the shape when it is not known which axes go, but perhaps how many."""
    if data.shape is None:
        return None
    if keepdims:
        return tuple(1 if d == 1 else None for d in data.shape)
    return (
        (None,) * (len(data.shape) - count) if isinstance(count, int) and count <= len(data.shape) else None
    )
