"""Shapes with dimensions that may be symbols or unknown: axes and broadcasting."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.ir import MAX_RANK, is_capped, is_one, known_equal, may_be_equal, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sabir.ir import Dim, Shape


def axis_in(axis: int, rank: int) -> int:
    """Return `axis` counted from the front; raises InferenceError outside [-rank, rank-1]."""
    if not -rank <= axis < rank:
        raise InferenceError(f"axis {axis} is outside [{-rank}, {rank - 1}] of a tensor of rank {rank}")
    return axis % rank


def axes_in(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Return several axes counted from the front; raises InferenceError for duplicates."""
    found = tuple(axis_in(int(a), rank) for a in axes)
    if len(set(found)) != len(found):
        raise InferenceError(f"axes {list(found)} name one axis twice")
    return found


def broadcast(*shapes: Shape | None) -> Shape | None:
    """Return the shape to which several broadcast, by numpy's rules; None when a rank is unknown."""
    known = [s for s in shapes if s is not None]
    if len(known) < len(shapes):
        return None
    columns = itertools.zip_longest(*(reversed(s) for s in known), fillvalue=1)
    return tuple(reversed([broadcast_dim(column) for column in columns]))


def broadcast_dim(dims: Sequence[Dim]) -> Dim:
    """Return the dimension to which several broadcast: a 1 is repeated, the others must be equal.

    A number above 1 is the result. For different symbols it is unknown, because one of them may be 1.
    """
    wide = [d for d in dims if d != 1]
    if len(wide) <= 1:
        return wide[0] if wide else 1
    numbers = [d for d in wide if isinstance(d, int)]
    # a symbol may be 1, unless a plan is made for larger sizes
    fixed = [*numbers, *(d for d in wide if not isinstance(d, int) and is_one(d) is False)]
    if any(not may_be_equal(fixed[0], d) for d in fixed):
        raise InferenceError(f"dimensions {' and '.join(map(str, wide))} do not broadcast")
    if numbers:
        return numbers[0]
    # d and min(d, 512) can only broadcast where they are equal: if one of them is 1, the other is
    return next((d for d in wide if all(known_equal(d, o) or is_capped(o, d) for o in wide)), None)


def same_dim(dims: Sequence[Dim], what: str) -> Dim:
    """Return the dimension that several must equal, a number if one of them is."""
    best: Dim = None
    for dim in dims:
        if not may_be_equal(best, dim):
            raise InferenceError(f"{what}: {best} and {dim} must be equal")
        if best is None or (isinstance(dim, int) and not isinstance(best, int)):
            best = dim
    return best


def joined_shape(shapes: Sequence[Shape | None], axis: int) -> Shape | None:
    """Return the shape of tensors one after another along an axis; None where no rank is known.

    Raises InferenceError for ranks that differ, for other dimensions that differ, and for a wrong axis.
    """
    known = [s for s in shapes if s is not None]
    if not known:
        return None
    if len({len(s) for s in known}) > 1:
        raise InferenceError(
            f"the inputs have ranks {', '.join(str(len(s)) for s in known)}; they must be equal"
        )
    axis = axis_in(axis, len(known[0]))
    dims: list[Dim] = [
        same_dim(column, f"dimension {i}") for i, column in enumerate(zip(*known, strict=True)) if i != axis
    ]
    dims.insert(axis, total(s[axis] for s in known) if len(known) == len(shapes) else None)
    return tuple(dims)


def with_some_dropped(shape: Shape, count: int, may_go: Callable[[Dim], bool]) -> Shape:
    """Return what is known of a shape after `count` unknown ones of its dimensions are removed.

    Only those with `may_go` can be removed. Raises InferenceError where they are too few.
    """
    before = [0, *itertools.accumulate(may_go(d) for d in shape)]  # removable dimensions before each place
    if not 0 <= count <= before[-1]:
        raise InferenceError(f"{count} of the dimensions cannot be removed; only {before[-1]} of them can")
    if len(shape) > MAX_RANK:
        return (None,) * (len(shape) - count)
    return tuple(
        shared_dim(
            shape[source]
            for source in range(place, place + count + 1)
            if before[source] >= source - place and before[-1] - before[source + 1] >= count + place - source
        )
        for place in range(len(shape) - count)
    )


def shared_dim(dims: Iterable[Dim]) -> Dim:
    """Return the dimension that several are all known to be, or None."""
    found = [*dims]
    return found[0] if found and all(known_equal(found[0], d) for d in found) else None
