"""Reductions as tensor expressions, over axes that an attribute names, or an input of known contents.

A formula `(x, axes) -> expression` computes a reduction that keeps its axes with size 1; over no axes it maps
each element.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from sabir import loops
from sabir.ir import lower_bound
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.shapes import axes_in, axis_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.loops import Size
    from sabir.opsets.typing import BehaviourFunction
    from sabir.schema import Version

    Formula: TypeAlias = Callable[[Expression, tuple[int, ...]], Expression]


# ---------------------------------------------------------------- behaviours


def attach(older: Version, newer: Version, formula: Formula) -> None:
    """Attach the lowering by a formula to two versions, whose axes are an attribute and an input."""

    @older.lower
    def lower_by_attribute(data: Expression, /, *, axes: Sequence[int] | None, keepdims: int) -> Expression:
        return _reduced(formula, data, axes or range(data.rank), keepdims)

    @newer.lower
    def lower_by_input(
        data: Expression, axes: Expression | None = None, /, *, keepdims: int, noop_with_empty_axes: int
    ) -> Expression:
        default = () if noop_with_empty_axes else range(data.rank)
        return _reduced(formula, data, _listed(axes) or default, keepdims)


def _listed(axes: Expression | None) -> tuple[int, ...]:
    """Return the axes in an input; raises NotLowered if only a run computes them."""
    if axes is None or axes.shape == (0,):
        return ()
    return kernels.integers_of(axes, "axes")


def _reduced(formula: Formula, data: Expression, axes: Sequence[int], keepdims: int) -> Expression:
    over = axes_in(axes, data.rank)
    result = formula(data, over)
    return result if keepdims else loops.squeeze(result, over)


def place_of_extreme(op: str) -> BehaviourFunction:
    """Return the lowering of a search for the first or last extreme; `op` is argmax or argmin."""

    def lower(data: Expression, /, *, axis: int, keepdims: int, select_last_index: int = 0) -> Expression:
        along = axis_in(axis, data.rank)
        places = loops.reduce(op, data, [along], last=select_last_index != 0)
        if (lower_bound(data.shape[along]) or 0) < 1:
            places = loops.apply("add", places, _error_if_empty(data.shape[along]))
        return places if keepdims else loops.squeeze(places, [along])

    return lower


def _error_if_empty(size: Size) -> Expression:
    """Return 0; the run fails if a size is 0."""
    if size == 0:
        raise NotLowered("an axis without elements has no extreme")
    return kernels.zero_if(loops.apply("ne", loops.sized("int64", size), 0))


# ---------------------------------------------------------------- formulas


def fold(op: str) -> Formula:
    """Return the reduction by `sum` or `prod`; integers wrap."""
    return lambda x, axes: loops.reduce(op, x, axes)


def extreme(op: str) -> Formula:
    """Return the reduction by `max` or `min`; over no elements it is the least or greatest of the type."""

    def formula(x: Expression, axes: tuple[int, ...]) -> Expression:
        if x.element == "bool":
            return loops.cast(loops.reduce(op, loops.cast(x, "uint8"), axes), "bool")
        return loops.reduce(op, x, axes)

    return formula


def mean(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return means; those of integers are truncated toward zero, and 0 for no elements."""
    if x.is_float:
        return loops.mean(x, axes)
    wide = "uint64" if x.element.startswith("u") else "int64"
    return loops.cast(loops.mean(loops.cast(x, wide), axes), x.element)


def absolute_sum(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return sums of absolute values; integers wrap."""
    return loops.reduce("sum", kernels.absolute(x), axes)


def square_sum(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return sums of squares; integers wrap."""
    return loops.reduce("sum", loops.apply("mul", x, x), axes)


def euclidean(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return roots of sums of squares."""
    return loops.apply("sqrt", square_sum(x, axes))


def log_sum(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return logarithms of sums."""
    return loops.apply("log", loops.reduce("sum", x, axes))


def log_sum_exp(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Return log(sum(exp(x))), shifted by a finite maximum so that no exponential overflows."""
    most = loops.reduce("max", x, axes)
    shift = loops.where(loops.apply("lt", loops.apply("abs", most), math.inf), most, 0)
    total = loops.reduce("sum", loops.apply("exp", loops.apply("sub", x, shift)), axes)
    return loops.apply("add", loops.apply("log", total), shift)


def in_floats(formula: Formula) -> Formula:
    """Return a formula that computes integers in double, and converts the results as Cast does."""
    return lambda x, axes: loops.cast(formula(kernels.as_floats(x), axes), x.element)


# ---------------------------------------------------------------- norms


def powers(x: Expression, p: float) -> Expression:
    """Return `|x| ** p`; `roots` of their sums are the norms."""
    if p == 2:  # ruff: ignore[magic-value-comparison]  a square
        return loops.apply("mul", x, x)
    size = kernels.absolute(x)
    return size if p == 1 else loops.apply("pow", size, p)


def roots(sums: Expression, p: float) -> Expression:
    """Return `sums ** (1 / p)`."""
    if p == 2:  # ruff: ignore[magic-value-comparison]  a square root
        return loops.apply("sqrt", sums)
    return sums if p == 1 else loops.apply("pow", sums, 1 / p)
