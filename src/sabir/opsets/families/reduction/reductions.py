"""The behaviours of reductions over some axes, which an attribute names in older versions and an input later.

A reduction is a function `(x, axes, *, keepdims) -> array`. This module also has the sums and extremes that
several reductions share, and what function bodies that call reductions need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from sabir.base import check_elements
from sabir.elements import DOUBLE, element
from sabir.ir import TensorType
from sabir.opsets.families.building.calls import has_attribute
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import as_dims, as_items, widened
from sabir.opsets.families.numbers.casting import converted
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import as_list, check_rank
from sabir.opsets.families.shapes.shapes import axes_in, with_some_dropped
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Builder, Dim, Value
    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Version

    Combine: TypeAlias = Callable[[Any, Any], Dim]


class Reduction(Protocol):
    """Reduces an array over axes counted from the front; `keepdims` keeps them, with size 1."""

    def __call__(self, x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
        """Return the reduced array, in the type of `x`."""
        ...


# ---------------------------------------------------------------- behaviours


def attach(older: Version, newer: Version, reduction: Reduction, combine: Combine | None = None) -> None:
    """Attach inference and evaluation by `reduction` to two versions, and the adapters between them.

    The axes are an attribute from `older` on, an input from `newer` on. `combine` joins two dimensions into
    one, for a reduction that shape arithmetic uses.
    """
    older.infer(_infer_by_attribute(combine))
    older.evaluate(_evaluate_by_attribute(reduction))
    newer.infer(_infer_by_input(combine))
    newer.evaluate(_evaluate_by_input(reduction))
    newer.upgrade(_attribute_to_input(newer.operator.name))
    newer.downgrade(_input_to_attribute(newer.operator.name))


def attach_without_integers(newer: Version) -> None:
    """Attach the adapters of a version that no longer admits integers; upgraded, they are cast to double."""
    name = newer.operator.name

    @newer.upgrade
    def upgrade(b: Builder, data: Value, axes: Value | None = None, /, **attributes: Any) -> Value:
        if not isinstance(data.type, TensorType) or not data.type.element.number:
            raise Unconvertible(f"the element type is unknown, and the newer {name} takes floats only")
        if not data.type.element.is_integer:
            return b.op(name, data, axes, **attributes)
        return as_before(b, b.op(name, as_floats(b, data), axes, **attributes), data)

    @newer.downgrade
    def downgrade(b: Builder, data: Value, axes: Value | None = None, /, **attributes: Any) -> Value:
        return b.op(name, data, axes, **attributes)


def _infer_by_attribute(combine: Combine | None) -> BehaviourFunction:
    def infer(data: TensorType, /, *, axes: Sequence[int] | None, keepdims: int) -> TensorType:
        return _reduced(data, axes or None, keepdims, combine)

    return infer


def _infer_by_input(combine: Combine | None) -> BehaviourFunction:
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


def _evaluate_by_attribute(reduction: Reduction) -> BehaviourFunction:
    def evaluate(data: Array, /, *, axes: Sequence[int] | None, keepdims: int) -> Array:
        passed_over(data)
        return reduction(data, _axes(axes or None, data.ndim), keepdims=keepdims != 0)

    return evaluate


def _evaluate_by_input(reduction: Reduction) -> BehaviourFunction:
    def evaluate(
        data: Array, axes: Array | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Array:
        passed_over(data)
        listed = [] if axes is None else as_list("axes", axes)
        over = _axes(listed or (() if noop_with_empty_axes else None), data.ndim)
        return reduction(data, over, keepdims=keepdims != 0)

    return evaluate


def _attribute_to_input(name: str) -> BehaviourFunction:
    def upgrade(b: Builder, data: Value, /, *, axes: Sequence[int] | None, keepdims: int) -> Value:
        listed = (as_input(b, "axes", axes),) if axes else ()
        return b.op(name, data, *listed, keepdims=keepdims)

    return upgrade


def _input_to_attribute(name: str) -> BehaviourFunction:
    def downgrade(
        b: Builder, data: Value, axes: Value | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Value:
        known = _known_axes(axes)
        if known is None:
            raise Unconvertible(
                f"the axes are computed at run time, and the older {name} needs them in the model"
            )
        if noop_with_empty_axes and not known:
            return b.op(name, _with_front(b, data), axes=[0], keepdims=0)
        return b.op(name, data, axes=tuple(known) or None, keepdims=keepdims)

    return downgrade


def _known_axes(axes: Value | None) -> Sequence[int] | None:
    """Return the axes that an input lists, none where it is absent or empty; None where they are unknown."""
    if axes is None:
        return ()
    if not isinstance(axes.type, TensorType):
        return None
    return () if axes.type.size == 0 else contents.ints(axes.type.known)


def _with_front(b: Builder, data: Value) -> Value:
    """Add a dimension of size 1: reducing it reduces nothing, which the older versions cannot express."""
    if has_attribute(b, "Unsqueeze", "axes"):
        return b.Unsqueeze(data, axes=[0])
    return b.Unsqueeze(data, as_input(b, "front", [0]))


# ---------------------------------------------------------------- reductions of arrays


def total(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    """Return sums in the type of `x`: integers wrap, halves are rounded once."""
    dtype = x.dtype if x.dtype.kind in "iu" else accumulator(x.dtype)
    return summed(x, axes, keepdims=keepdims, dtype=dtype).astype(x.dtype, copy=False)


def in_floats(reduction: Reduction) -> Reduction:
    """Return a reduction that computes integers in float64, and converts the results as Cast does."""

    def reduce(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
        wide = x.astype(np.float64) if x.dtype.kind in "iu" else widened(x)
        return converted(np.asarray(reduction(wide, axes, keepdims=keepdims)), element(x.dtype))

    return reduce


def extreme(pick: np.ufunc) -> Reduction:
    """Return the reduction by `pick`, maximum or minimum; no elements have the type's other end."""

    def reduction(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
        least, greatest = _ends(x.dtype)
        neutral = least if pick is np.maximum else greatest
        y = pick.reduce(widened(x), axis=axes, keepdims=keepdims, initial=neutral)
        return y.astype(x.dtype, copy=False)

    return reduction


def _ends(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the least and the greatest value of a type."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return (False, True) if dtype.kind == "b" else (-np.inf, np.inf)


def log_sum_exp(x: Array, axes: tuple[int, ...], /, *, keepdims: bool) -> Array:
    """Return log(sum(exp(x))) of floats, shifted by the maximum so that no exponential overflows."""
    check_elements(x.size, x.size, what="the exponentials", width=2 * x.itemsize)
    most = np.maximum.reduce(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(most), most, x.dtype.type(0))
    logs = np.log(summed(np.exp(x - shift), axes, keepdims=True)) + shift
    return logs if keepdims else np.squeeze(logs, axis=axes)


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which a type is summed: float32 for halves, 64 bits for integers."""
    if dtype.kind in "iu":
        return np.dtype(np.int64 if dtype.kind == "i" else np.uint64)
    return np.promote_types(dtype, np.float32)


# ---------------------------------------------------------------- in function bodies


def as_floats(b: Builder, x: Value) -> Value:
    """Return `x` in a type to compute in: halves as float, integers as double."""
    if isinstance(x.type, TensorType) and x.type.element.is_integer:
        return b.Cast(x, to=DOUBLE.number)
    return halves.widened(b, x)


def as_before(b: Builder, y: Value, x: Value) -> Value:
    """Return `y` in the type that `x` had before `as_floats`."""
    if isinstance(x.type, TensorType) and x.type.element.is_integer:
        return b.Cast(y, to=x.type.element.number)
    return halves.rounded(b, y, x)


def call(b: Builder, name: str, x: Value, axes: Sequence[int], *, keepdims: int = 1) -> Value:
    """Emit a reduction over known axes, as an attribute or an input, whichever the opset has."""
    if has_attribute(b, name, "axes"):
        return b.op(name, x, axes=tuple(axes) or None, keepdims=keepdims)
    return b.op(name, x, as_input(b, "axes", axes), keepdims=keepdims)


# ---------------------------------------------------------------- inference


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
    result = TensorType(data.element, tuple(dims))
    if combine is None:
        return result
    return contents.moved(result, lambda x: _folded(x, gone, combine, data.element), data)


def _folded(x: Array, axes: tuple[int, ...], combine: Combine, element: ElementType) -> Array:
    """Fold an array of known contents over some axes; a fold of no elements is unknown."""
    if not x.size:
        return np.full([1 if i in axes else d for i, d in enumerate(x.shape)], None)
    whole, dims = np.frompyfunc(combine, 2, 1), as_dims(x)
    for axis in axes:
        dims = whole.reduce(dims, axis=axis, keepdims=True)
    return as_items(dims, element)


def _some_reduced(data: TensorType, count: Dim, keepdims: int) -> tuple[Dim, ...] | None:
    """Return the shape where it is unknown which axes are reduced; `count` is how many, where known."""
    if data.shape is None:
        return None
    if keepdims:
        return tuple(1 if d == 1 or count == len(data.shape) else None for d in data.shape)
    return with_some_dropped(data.shape, count, lambda _: True) if isinstance(count, int) else None
