"""Einstein summation as tensor expressions: of one operand, or of two at a time as a matrix product."""

from __future__ import annotations

import math
from itertools import combinations, starmap
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.products.contractions import MOST_CHOICES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.loops import Size
    from sabir.opsets.families.products.contractions import Equation, Labels

_PAIR = 2
_USUAL = 64  # the assumed number for a symbolic size when the order of products is chosen


class _Labelled(NamedTuple):
    """An expression with a different label for each axis."""

    x: Expression
    labels: Labels


def lowered(equation: Equation, operands: Sequence[Expression]) -> Expression:
    """Return the output; raises NotLowered if sizes may not match."""
    whole = equation.spread([x.rank for x in operands])
    if whole is None:
        raise NotLowered("no operand determines the dimensions of '...'")
    parts = list(starmap(_diagonal, zip(operands, whole.terms, strict=True)))
    sizes = _sizes(parts)
    parts = [_narrowed(part, sizes) for part in parts]
    while len(parts) > _PAIR:
        i, j = _cheapest(parts, whole.output, sizes)
        others = [part for k, part in enumerate(parts) if k not in {i, j}]
        needed = (*whole.output, *(t for part in others for t in part.labels))
        parts = [*others, _multiplied(parts[i], parts[j], needed, sizes)]
    if len(parts) == 1:
        return _ordered(_summed(parts[0], {*whole.output}), whole.output)
    a, b = parts
    if whole.output and whole.output[-1] in a.labels and whole.output[-1] not in b.labels:
        a, b = b, a  # the last axis of the output becomes an axis of columns
    return _ordered(_multiplied(a, b, whole.output, sizes), whole.output)


def _diagonal(x: Expression, labels: Labels) -> _Labelled:
    """Take the diagonal along axes with the same label: a view, as its elements have one stride."""
    while len(set(labels)) < len(labels):
        label = next(t for t in labels if labels.count(t) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        if not loops.equal(x.shape[i], x.shape[j]):
            raise NotLowered(
                f"whether {x.shape[i]} and {x.shape[j]}, both {label!r}, are equal is known at run time only"
            )
        rest = [k for k in range(x.rank) if k not in {i, j}]
        x = loops.permute(x, [i, j, *rest])
        size, *others = x.shape[1:]
        flat = loops.reshape(x, (x.shape[0] * size, *others))
        if isinstance(size, int):
            sizes, steps = (size, *others), (size + 1, *(1,) * len(others))
            x = loops.cut(flat, (0,) * flat.rank, sizes, steps)
        else:
            place = loops.apply("mul", loops.count((size,), 0), loops.sized("int64", size + 1))
            x = loops.take(flat, place, 0)
        labels = (label, *(labels[k] for k in rest))
    return _Labelled(x, labels)


def _cheapest(parts: Sequence[_Labelled], output: Labels, sizes: dict[str, Size]) -> tuple[int, int]:
    """Return the pair whose product is larger than the two operands by the least."""

    def elements(labels: Iterable[str]) -> int:
        return math.prod(size if isinstance(size := sizes[t], int) else _USUAL for t in labels)

    def growth(pair: tuple[int, int]) -> int:
        own = {t for i in pair for t in parts[i].labels}
        others = {t for i, part in enumerate(parts) if i not in pair for t in part.labels}
        return elements(own & {*output, *others}) - sum(elements(parts[i].labels) for i in pair)

    return min(combinations(range(min(len(parts), MOST_CHOICES)), 2), key=growth)


def _multiplied(a: _Labelled, b: _Labelled, needed: Labels, sizes: dict[str, Size]) -> _Labelled:
    """Multiply two operands, summed over the labels that are not needed."""
    a = _summed(a, {*needed, *b.labels})
    return _product(a, _summed(b, {*needed, *a.labels}), needed, sizes)


def _sizes(parts: Sequence[_Labelled]) -> dict[str, Size]:
    sizes: dict[str, Size] = {}
    for part in parts:
        for label, size in zip(part.labels, part.x.shape, strict=True):
            (sizes[label],) = loops.broadcast((sizes.get(label, 1),), (size,))
    return sizes


def _narrowed(part: _Labelled, sizes: dict[str, Size]) -> _Labelled:
    """Remove dimensions of 1 that broadcast, with their labels."""
    wide = [i for i, t in enumerate(part.labels) if part.x.shape[i] == 1 and sizes[t] != 1]
    return _Labelled(
        loops.squeeze(part.x, wide), tuple(t for i, t in enumerate(part.labels) if i not in wide)
    )


def _summed(part: _Labelled, needed: set[str]) -> _Labelled:
    """Sum over the labels that are in no other operand and not in the output."""
    alone = [i for i, t in enumerate(part.labels) if t not in needed]
    kept = tuple(t for t in part.labels if t in needed)
    return _Labelled(loops.squeeze(loops.reduce("sum", part.x, alone), alone), kept) if alone else part


def _product(a: _Labelled, b: _Labelled, needed: Labels, sizes: dict[str, Size]) -> _Labelled:
    """Multiply two operands as a matrix product over the labels that both have and that are not needed.

    The batch axes are separate; rows, columns and depth are merged, as views if possible.
    """
    shared = [t for t in a.labels if t in b.labels]
    batch, summed = [t for t in shared if t in needed], [t for t in shared if t not in needed]
    rows, columns = [t for t in a.labels if t not in shared], [t for t in b.labels if t not in shared]
    outer = [sizes[t] for t in batch]
    if not summed or not (rows or columns):
        return _elementwise(a, b, [*batch, *rows, *columns], summed, sizes)
    m, n, k = (math.prod((sizes[t] for t in labels), start=1) for labels in (rows, columns, summed))
    left = loops.reshape(_ordered(a, [*batch, *rows, *summed]), (*outer, m, k))
    right = loops.reshape(_ordered(b, [*batch, *summed, *columns]), (*outer, k, n))
    labels = (*batch, *rows, *columns)
    return _Labelled(loops.reshape(loops.contract(left, right), [sizes[t] for t in labels]), labels)


def _elementwise(
    a: _Labelled, b: _Labelled, labels: Sequence[str], summed: Sequence[str], sizes: dict[str, Size]
) -> _Labelled:
    """Multiply elements with the same indices, and sum the products."""
    order = (*labels, *summed)
    spread = [
        loops.reshape(
            _ordered(part, [t for t in order if t in part.labels]),
            [sizes[t] if t in part.labels else 1 for t in order],
        )
        for part in (a, b)
    ]
    axes = range(len(labels), len(order))
    return _Labelled(
        loops.squeeze(loops.reduce("sum", loops.apply("mul", *spread), axes), axes), tuple(labels)
    )


def _ordered(part: _Labelled, labels: Sequence[str]) -> Expression:
    return loops.permute(part.x, [part.labels.index(t) for t in labels])
