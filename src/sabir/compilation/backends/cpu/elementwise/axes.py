"""The axes of loop nests: merging adjacent axes, and choosing the inner axis, which is vectorized."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.nesting import Nesting
from sabir.compilation.backends.cpu.elementwise.transposes import can_transpose
from sabir.compilation.backends.cpu.emit.nest import (
    ANY,
    NEXT,
    SHORT,
    STILL,
    Access,
    Accumulated,
    Apply,
    ConstantStep,
    Fold,
    Load,
    Nest,
    Position,
    SizeArgument,
    TakeStep,
)
from sabir.compilation.backends.cpu.emit.row_passes import passes_of
from sabir.compilation.passes import MOST_REPEATS
from sabir.compilation.plan.entries import count_of
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.nest import Stride
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.loops import Size


def merged(nesting: Nesting, *, fixed: int = 0) -> Nesting:
    """Return the same loops over fewer axes; the last `fixed` axes are not changed.

    Axes of size 1 are removed. Adjacent axes, both reduced or neither, merge if every place has
    `stride[outer] == stride[inner] * size[inner]`. Axes whose index a step uses stay.
    """
    used = {s.axis for s in nesting.steps if isinstance(s, Position)}
    count = len(nesting.sizes)
    axes = [a for a in range(count) if nesting.sizes[a] != 1 or a in used or a >= count - fixed]
    groups: list[list[int]] = []
    for axis in axes:
        free = not used & {axis} and axis < count - fixed
        last = groups[-1] if groups else None
        if last is not None and free and not used & set(last) and _merges(nesting, last[-1], axis):
            last.append(axis)
        else:
            groups.append([axis])
    places = [p._replace(strides=tuple(p.strides[g[-1]] for g in groups)) for p in nesting.places]
    renamed = {g[0]: number for number, g in enumerate(groups)}
    steps = [Position(s.element, renamed[s.axis]) if isinstance(s, Position) else s for s in nesting.steps]
    sizes: list[Size] = []
    for g in groups:
        size: Size = 1
        for axis in g:
            size *= nesting.sizes[axis]
        sizes.append(size)
    reduced = tuple(nesting.reduced[g[0]] for g in groups)
    return Nesting(tuple(sizes), reduced, places, steps, nesting.stores, nesting.takes, nesting.arguments)


def _merges(nesting: Nesting, outer: int, inner: int) -> bool:
    if nesting.reduced[outer] != nesting.reduced[inner]:
        return False
    size = nesting.sizes[inner]
    return all(p.strides[outer] == p.strides[inner] * size for p in nesting.places)


def nest_of(nesting: Nesting, vector_bits: int, heuristics: Heuristics, *, inner: int | None = None) -> Nest:
    """Return the nest of merged loops; `inner` is the vectorized axis, None chooses it."""
    repeats = _repeats(nesting) if inner is None else None
    if repeats is not None:
        inner = repeats[0]
    inner = _inner(nesting, heuristics) if inner is None else inner
    elements = _elements(nesting) or [p.element for p in nesting.places]
    if nesting.sizes and not nesting.reduced[inner] and is_short(nesting, heuristics):
        elements = [s.element for s in nesting.steps if isinstance(s, Load)]  # what the loops of folds load
    widest = max([4, *(element_bytes(e) for e in elements)])
    nest = Nest(
        axes=len(nesting.sizes),
        reduced=nesting.reduced,
        inner=inner,
        accesses=tuple(Access(p.element, tuple(_class(s) for s in p.strides)) for p in nesting.places),
        steps=tuple(nesting.steps),
        stores=tuple(nesting.stores),
        sizes=len(nesting.arguments),
        lanes=vector_bits // 8 // widest,
    )
    if repeats is not None:
        return replace(nest, repeats=repeats[1:])
    together = _together(nest, nesting.sizes, heuristics)
    if together is not None:
        return replace(nest, together=together)
    if not can_transpose(nest):
        return nest
    short = [axis for axis, size in enumerate(nesting.sizes) if isinstance(size, int) and size <= SHORT]
    return replace(nest, short=tuple(short))


def _elements(nesting: Nesting) -> list[str]:
    """Return the element types of the places and steps that vary along some axis.

    The others are hoisted out of all loops.
    """
    moving: list[bool] = []
    for step in nesting.steps:
        if isinstance(step, Load):
            moving.append(any(s != 0 for s in nesting.places[step.access].strides))
        elif isinstance(step, Apply):
            moving.append(any(moving[n] for n in step.operands))
        else:
            moving.append(not isinstance(step, (ConstantStep, SizeArgument)))
    places = [p.element for p in nesting.places if any(s != 0 for s in p.strides)]
    return [*places, *(s.element for s, moves in zip(nesting.steps, moving, strict=True) if moves)]


def _repeats(nesting: Nesting) -> tuple[int, int, int] | None:
    """Return the vectorized axis, the axis along which each value is repeated, and its size; else None.

    Along the repeated axis, stores have stride 1 and loads stride 0.
    """
    stored = {number for number, _ in nesting.stores}
    if any(nesting.reduced) or any(isinstance(s, (TakeStep, Position, Accumulated)) for s in nesting.steps):
        return None
    if any(p.element == "bool" for p in nesting.places):
        return None
    for axis, times in enumerate(nesting.sizes):
        if not isinstance(times, int) or not 1 < times <= MOST_REPEATS:
            continue
        if any(p.strides[axis] != (number in stored) for number, p in enumerate(nesting.places)):
            continue
        for inner in range(len(nesting.sizes)):
            if inner != axis and all(
                p.strides[inner] == times if number in stored else p.strides[inner] in {0, 1}
                for number, p in enumerate(nesting.places)
            ):
                return inner, axis, times
    return None


def _together(nest: Nest, sizes: Sequence[Size], heuristics: Heuristics) -> tuple[int, int] | None:
    """Return an axis, and how many folds across the vectors along it are computed together; else None.

    It is the last other axis, if folds share a load there, or the axis of the vectors, if it is so long that
    there are jobs for all threads. No pass may depend on another.
    """
    if not any(nest.reduced) or nest.reduced[nest.inner] or any(isinstance(s, TakeStep) for s in nest.steps):
        return None
    passes = passes_of(nest, keep=False)
    if len(passes.roots) > 1 or passes.inside(0):
        return None
    outer = [a for a in range(nest.axes) if not nest.reduced[a] and a != nest.inner]
    size, length = sizes[outer[-1]] if outer else None, sizes[nest.inner]
    if isinstance(size, int):
        count = max(n for n in range(1, heuristics.folds_together + 1) if size % n == 0)
        varies = nest.varying(outer[-1])
        is_shared = any(isinstance(s, Load) and not v for s, v in zip(nest.steps, varies, strict=True))
        if count > 1 and is_shared:
            return outer[-1], count
    vectors = heuristics.vectors_together
    if isinstance(length, int) and length >= heuristics.vector_jobs * vectors * nest.lanes:
        return nest.inner, vectors
    return None


def _class(stride: Size) -> Stride:
    if stride == 0:
        return STILL
    return NEXT if stride == 1 else ANY


def _inner(nesting: Nesting, heuristics: Heuristics) -> int:
    """Return the axis to vectorize: the one along which the most places have stride 1."""
    count = len(nesting.sizes)
    if not count:
        return 0
    if not any(nesting.reduced):
        return max(range(count), key=lambda axis: (_advances(nesting, axis) - _gathers(nesting, axis), axis))
    kept = [a for a in range(count) if not nesting.reduced[a]]
    if kept and is_short(nesting, heuristics):
        return max(kept, key=lambda a: (_advances(nesting, a), _extent(nesting.sizes[a]), a))
    candidates = [
        max((a for a in range(count) if nesting.reduced[a] == folded), default=-1) for folded in (True, False)
    ]
    along, beside = candidates
    if beside < 0:
        return along
    return max(
        along, beside, key=lambda axis: (_advances(nesting, axis), -_jumps(nesting, axis), axis == along)
    )


def _gathers(nesting: Nesting, axis: int) -> int:
    """Return twice the number of gathers and scatters of vectors along an axis; 0 if the nest has no takes.

    These are the places with gaps between lanes, and the takes whose index is loaded and varies.
    """
    places = [nesting.steps[s.place] for s in nesting.steps if isinstance(s, TakeStep)]
    if not places:
        return 0
    own = sum(isinstance(p, Load) and nesting.places[p.access].strides[axis] != 0 for p in places)
    return 2 * (own + _jumps(nesting, axis))


def _jumps(nesting: Nesting, axis: int) -> int:
    """Return the number of places whose stride along an axis is neither 0 nor 1."""
    return sum(p.strides[axis] not in {0, 1} for p in nesting.places)


def is_short(nesting: Nesting, heuristics: Heuristics) -> bool:
    """Return whether folds are too short for vectors along them: the lanes then compute different folds."""
    count, most = fold_of(nesting, heuristics)
    return isinstance(count, int) and count <= most


def fold_of(nesting: Nesting, heuristics: Heuristics) -> tuple[Size | None, int]:
    """Return the number of elements of a fold, None without folds, and the largest number of a short fold."""
    folds = sum(isinstance(s, Fold) for s in nesting.steps)
    if not folds:
        return None, 0
    folded = [size for size, reduced in zip(nesting.sizes, nesting.reduced, strict=True) if reduced]
    return count_of(folded), heuristics.short_fold if folds == 1 else heuristics.short_folds


def beside_one(nesting: Nesting, heuristics: Heuristics) -> Nesting:
    """Return a nest with one short fold as many folds along a new axis of size 1, else the nest itself.

    So its result has the same bits as in a nest with many folds.
    """
    if not is_short(nesting, heuristics) or not all(nesting.reduced):
        return nesting
    places = [p._replace(strides=(1, *p.strides)) for p in nesting.places]  # only the first lane is active
    steps = [replace(s, axis=s.axis + 1) if isinstance(s, Position) else s for s in nesting.steps]
    return replace(
        nesting, sizes=(1, *nesting.sizes), reduced=(False, *nesting.reduced), places=places, steps=steps
    )


def _extent(size: Size) -> float:
    return size if isinstance(size, int) else math.inf


def _advances(nesting: Nesting, axis: int) -> int:
    """Return the number of places with stride 1 along an axis; stores count twice.

    In a nest with folds, places that do not vary along a fold do not count: so the order of a sum does not
    depend on the size of the batch. Indices of takes do not count: that they are contiguous does not make
    the elements that they choose contiguous.
    """
    stored = {number for number, _ in nesting.stores}
    taken = {s.access for s in nesting.steps if isinstance(s, TakeStep)}  # indices vary them along folds too
    places = {s.place for s in nesting.steps if isinstance(s, TakeStep)}
    indices = {s.access for n, s in enumerate(nesting.steps) if n in places and isinstance(s, Load)}
    folds = any(nesting.reduced)
    return sum(
        (2 if number in stored else 1) * (p.strides[axis] == 1)
        for number, p in enumerate(nesting.places)
        if number not in indices
        and (
            not folds
            or number in taken
            or any(s != 0 and r for s, r in zip(p.strides, nesting.reduced, strict=True))
        )
    )
