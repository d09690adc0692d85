"""Einstein summation as a graph of matrix products, or of products and sums where sizes may differ."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.elements import INT32
from sabir.ir import known_equal
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import MOST, shape_of, squeezed, unsqueezed
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Builder, Dim, Value
    from sabir.opsets.families.products.contractions import Equation, Labels


class _Part(NamedTuple):
    """A value with one label and one size for each axis, no label twice."""

    value: Value
    labels: Labels
    dims: tuple[Dim, ...]

    def dim(self, label: str) -> Dim:
        return self.dims[self.labels.index(label)]


def graph(b: Builder, equation: Equation, operands: Sequence[Value]) -> Value:
    """Return the sums of products; raises Unconvertible where a rank, or the size of a diagonal, is unknown.

    Halves are computed as float and rounded once, integers of less than 32 bits as int32.
    """
    shapes = [shape_of("an input", x) for x in operands]
    whole = equation.spread([len(shape) for shape in shapes])
    if whole is None:
        raise Unconvertible("no operand determines the dimensions of '...'")
    kind = element_of(operands[0])
    parts = [
        _diagonal(b, _Part(_wide(b, x), term, tuple(shape)))
        for x, term, shape in zip(operands, whole.terms, shapes, strict=True)
    ]
    parts = [_narrowed(b, part, parts) for part in parts]
    counts = Counter(itertools.chain(whole.output, *(part.labels for part in parts)))
    part, *others = (_summed(b, p, [t for t in p.labels if counts[t] == 1]) for p in parts)
    for other in others:
        shared = [t for t in part.labels if t in other.labels]
        final = [t for t in shared if counts[t] == 2]  # ruff: ignore[magic-value-comparison]  both operands
        part = _product(b, part, other, shared, final)
        counts.subtract(shared)
    y = _ordered(b, part, whole.output)
    if y in operands:
        y = b.Identity(y)
    return halves.rounded(b, y, operands[0]) if kind.is_float else _back(b, y, operands[0])


def _wide(b: Builder, x: Value) -> Value:
    kind = element_of(x)
    if kind.is_float:
        return halves.widened(b, x)
    return x if f"tensor({kind})" in LARGE_INTEGERS else b.Cast(x, to=INT32.number)


def _back(b: Builder, y: Value, x: Value) -> Value:
    return y if element_of(y) is element_of(x) else b.Cast(y, to=element_of(x).number)


# ---------------------------------------------------------------- one operand


def _diagonal(b: Builder, part: _Part) -> _Part:
    """Gather the elements that have one index on all axes of one label."""
    while len(set(part.labels)) < len(part.labels):
        labels, dims = part.labels, part.dims
        label = next(t for t in labels if labels.count(t) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        size = next((d for d in (dims[i], dims[j]) if isinstance(d, int)), None)
        if size is None or size > MOST:
            raise Unconvertible(f"the size of {label!r} is unknown or large, and its diagonal is gathered")
        rest = [k for k in range(len(labels)) if k not in {i, j}]
        x = b.Transpose(part.value, perm=[*rest, i, j])
        # a 0 copies the size of an axis; so does that of an empty diagonal
        x = b.Reshape(x, as_input(b, "shape", [*[0] * len(rest), size * size]))
        x = b.Gather(x, as_input(b, "diagonal", np.arange(size) * (size + 1)), axis=len(rest))
        part = _Part(x, (*(labels[k] for k in rest), label), (*(dims[k] for k in rest), size))
    return part


def _narrowed(b: Builder, part: _Part, parts: Iterable[_Part]) -> _Part:
    """Drop the dimensions of 1 that are broadcast to those of other operands."""
    wide = [
        i
        for i, t in enumerate(part.labels)
        if part.dims[i] == 1 and any(t in p.labels and p.dim(t) != 1 for p in parts)
    ]
    return _without(part, wide, squeezed(b, part.value, wide))


def _summed(b: Builder, part: _Part, labels: Iterable[str]) -> _Part:
    axes = [part.labels.index(t) for t in labels]
    if not axes:
        return part
    return _without(part, axes, reductions.call(b, "ReduceSum", part.value, axes, keepdims=0))


def _without(part: _Part, axes: Sequence[int], value: Value) -> _Part:
    kept = [i for i in range(len(part.labels)) if i not in axes]
    return _Part(value, tuple(part.labels[i] for i in kept), tuple(part.dims[i] for i in kept))


def _ordered(b: Builder, part: _Part, labels: Sequence[str]) -> Value:
    perm = [part.labels.index(t) for t in labels]
    return part.value if perm == sorted(perm) else b.Transpose(part.value, perm=perm)


# ---------------------------------------------------------------- two operands


def _product(b: Builder, a: _Part, c: _Part, shared: Sequence[str], final: Sequence[str]) -> _Part:
    """Multiply two operands, summed over the labels `final`, which only they have.

    MatMul sums over one of them, or over several that Reshape makes one axis; ReduceSum over the others.
    """
    equal = [t for t in final if known_equal(a.dim(t), c.dim(t))]
    joined = equal if len(equal) > 1 and all(_is_positive(a.dim(t)) for t in equal) else equal[-1:]
    kept = [t for t in shared if t not in joined]
    rows, columns = ([t for t in p.labels if t not in shared] for p in (a, c))
    if joined:
        y, labels = _matrices(b, (a, c), kept, joined, (rows, columns))
    else:
        labels = (*kept, *rows, *columns)
        y = b.Mul(*(_aligned(b, p, labels) for p in (a, c)))
    sizes = {t: d for p in (a, c) for t, d in zip(p.labels, p.dims, strict=True)}
    sizes |= {t: _broadcast(a.dim(t), c.dim(t)) for t in kept}
    part = _Part(y, labels, tuple(sizes[t] for t in labels))
    return _summed(b, part, [t for t in final if t not in joined])


def _matrices(
    b: Builder, parts: tuple[_Part, _Part], batch: Sequence[str], joined: Sequence[str],
    own: tuple[Sequence[str], Sequence[str]],
) -> tuple[Value, Labels]:  # fmt: skip
    """Emit MatMul: the last own label of each operand is that of rows or columns, the others are batches."""
    rows, columns = own
    batches = (*batch, *rows[:-1], *columns[:-1])
    row, column = [*rows[-1:]] or [""], [*columns[-1:]] or [""]  # no label: a new axis
    a, c = parts
    left = _joined(b, a, (*batches, *row), joined)
    if len(joined) == 1:
        right = _aligned(b, c, (*batches, *joined, *column))
    else:
        axes = [*range(len(batches)), len(batches) + 1, len(batches)]
        right = b.Transpose(_joined(b, c, (*batches, *column), joined), perm=axes)
    y = b.MatMul(left, right)
    new = [len(batches) + i for i, label in enumerate((*row, *column)) if not label]
    return squeezed(b, y, new), tuple(t for t in (*batches, *row, *column) if t)


def _aligned(b: Builder, part: _Part, labels: Sequence[str]) -> Value:
    """Return the value with its axes in the order of the labels, and new axes for those that it lacks."""
    own = [t for t in labels if t in part.labels]
    return unsqueezed(b, _ordered(b, part, own), [i for i, t in enumerate(labels) if t not in own])


def _joined(b: Builder, part: _Part, before: Sequence[str], labels: Sequence[str]) -> Value:
    """Return the value with the axes of `before`, and a last one for the labels, whose sizes are known."""
    x = _aligned(b, part, (*before, *labels))
    if len(labels) == 1:
        return x
    size = math.prod(d for t in labels if isinstance(d := part.dim(t), int))
    return b.Reshape(x, as_input(b, "shape", [*[0] * len(before), size]))


def _is_positive(dim: Dim) -> bool:
    return isinstance(dim, int) and dim > 0


def _broadcast(a: Dim, c: Dim) -> Dim:
    if a == 1:
        return c
    return a if c == 1 or known_equal(a, c) else None
