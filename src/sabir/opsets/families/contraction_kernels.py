"""Einstein summation of one operand, or of two as a matrix product, as tensor expressions."""

from __future__ import annotations

import math
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.loops import Expression, NotLowered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Size
    from sabir.opsets.families.contractions import Equation, Labels

_PAIR = 2


class _Operand(NamedTuple):
    """An expression with one label for each axis, none twice."""

    x: Expression
    labels: Labels


def lowered(equation: Equation, operands: Sequence[Expression]) -> Expression:
    """Return the output; raises NotLowered for diagonals, and for more than two operands."""
    whole = equation.spread([x.rank for x in operands])
    if whole is None or len(operands) > _PAIR:
        raise NotLowered("products of more than two operands have no kernel yet")
    parts = list(starmap(_Operand, zip(operands, whole.terms, strict=True)))
    if any(len(set(part.labels)) < len(part.labels) for part in parts):
        raise NotLowered("the diagonal of an operand has no kernel yet")
    sizes = _sizes(parts)
    parts = [_narrowed(part, sizes) for part in parts]
    if whole.output and whole.output[-1] in parts[0].labels and whole.output[-1] not in parts[-1].labels:
        parts.reverse()  # the last axis of the output is one of the columns
    last = _summed(parts[0], {*whole.output, *(t for p in parts[1:] for t in p.labels)})
    if len(parts) > 1:
        last = _product(last, _summed(parts[1], {*whole.output, *last.labels}), whole.output, sizes)
    return _ordered(last, whole.output)


def _sizes(parts: Sequence[_Operand]) -> dict[str, Size]:
    sizes: dict[str, Size] = {}
    for part in parts:
        for label, size in zip(part.labels, part.x.shape, strict=True):
            (sizes[label],) = loops.broadcast((sizes.get(label, 1),), (size,))
    return sizes


def _narrowed(part: _Operand, sizes: dict[str, Size]) -> _Operand:
    """Drop the dimensions of 1 that are to be broadcast, with their labels."""
    wide = [i for i, t in enumerate(part.labels) if part.x.shape[i] != sizes[t]]
    return _Operand(loops.squeeze(part.x, wide), tuple(t for i, t in enumerate(part.labels) if i not in wide))


def _summed(part: _Operand, needed: set[str]) -> _Operand:
    """Sum over the labels that neither another operand has nor the output."""
    alone = [i for i, t in enumerate(part.labels) if t not in needed]
    kept = tuple(t for t in part.labels if t in needed)
    return _Operand(loops.squeeze(loops.reduce("sum", part.x, alone), alone), kept) if alone else part


def _product(a: _Operand, b: _Operand, output: Labels, sizes: dict[str, Size]) -> _Operand:
    """Multiply two operands, summed over the labels that the output lacks.

    The batch axes stay apart; rows, columns and summed axes are merged, as views where possible.
    """
    shared = [t for t in a.labels if t in b.labels]
    batch, summed = [t for t in shared if t in output], [t for t in shared if t not in output]
    rows, columns = [t for t in a.labels if t not in shared], [t for t in b.labels if t not in shared]
    outer = [sizes[t] for t in batch]
    if not summed or not (rows or columns):
        return _elementwise(a, b, [*batch, *rows, *columns], summed, sizes)
    m, n, k = (math.prod((sizes[t] for t in labels), start=1) for labels in (rows, columns, summed))
    left = loops.reshape(_ordered(a, [*batch, *rows, *summed]), (*outer, m, k))
    right = loops.reshape(_ordered(b, [*batch, *summed, *columns]), (*outer, k, n))
    labels = (*batch, *rows, *columns)
    return _Operand(loops.reshape(loops.contract(left, right), [sizes[t] for t in labels]), labels)


def _elementwise(
    a: _Operand, b: _Operand, labels: Sequence[str], summed: Sequence[str], sizes: dict[str, Size]
) -> _Operand:
    """Multiply the elements that have the same indices, and sum them."""
    order = (*labels, *summed)
    spread = [
        loops.reshape(
            _ordered(part, [t for t in order if t in part.labels]),
            [sizes[t] if t in part.labels else 1 for t in order],
        )
        for part in (a, b)
    ]
    axes = range(len(labels), len(order))
    return _Operand(
        loops.squeeze(loops.reduce("sum", loops.apply("mul", *spread), axes), axes), tuple(labels)
    )


def _ordered(part: _Operand, labels: Sequence[str]) -> Expression:
    return loops.permute(part.x, [part.labels.index(t) for t in labels])
