"""Einstein summation: equations, and their evaluation by matrix products of two operands at a time.

A label is one letter, or the number of a dimension that an ellipsis represents.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from sabir.base import InferenceError
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.products import products
from sabir.opsets.families.shapes.shapes import broadcast_dim, same_dim
from sabir.opsets.families.shapes.sizes import allotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Dim, Shape
    from sabir.opsets.typing import Array

Labels: TypeAlias = tuple[str, ...]

_TERM = re.compile(r"[A-Za-z]*(?:\.{3}[A-Za-z]*)?")
_LETTERS = re.compile(r"\.{3}|[A-Za-z]")
_ELLIPSIS = "..."
_LONGEST_QUOTE = 100
MOST_CHOICES = 12  # operands among which the next pair is chosen


class Equation(NamedTuple):
    """The labels of each operand and of the output, where an ellipsis is one label."""

    terms: tuple[Labels, ...]
    output: Labels

    @classmethod
    def parse(cls, text: str) -> Equation:
        """Parse an equation; raises InferenceError for an invalid one."""
        left, arrow, right = text.replace(" ", "").partition("->")
        parts = left.split(",")
        wrong = next((t for t in (*parts, right) if not _TERM.fullmatch(t)), None)
        if wrong is not None:
            raise InferenceError(
                f"equation {_shown(text)}: a term is letters, with at most one '...' among them"
            )
        terms = tuple(tuple(_LETTERS.findall(part)) for part in parts)
        output: Labels = tuple(_LETTERS.findall(right)) if arrow else _implied(terms)
        seen = {label for term in terms for label in term} | {_ELLIPSIS}
        if len(set(output)) < len(output) or not seen.issuperset(output):
            raise InferenceError(
                f"equation {_shown(text)}: the output must name labels of the inputs, each once"
            )
        return cls(terms, output)

    def spread(self, ranks: Sequence[int | None]) -> Equation | None:
        """Return the equation with a label per dimension of an ellipsis; None where it needs an unknown rank.

        Raises InferenceError where the rank of an operand does not fit its term.
        """
        if len(ranks) != len(self.terms):
            raise InferenceError(f"an equation of {len(self.terms)} terms cannot take {len(ranks)} operands")
        counts: set[int] = set()
        for term, rank in zip(self.terms, ranks, strict=True):
            if rank is None:
                continue
            count = rank - len(term) + (_ELLIPSIS in term)
            if count < 0 or (count and _ELLIPSIS not in term):
                raise InferenceError(f"the term {_shown(''.join(term))} cannot label {rank} dimensions")
            if _ELLIPSIS in term:
                counts.add(count)
        if len(counts) > 1:
            raise InferenceError(
                f"'...' cannot represent {' and '.join(map(str, sorted(counts)))} dimensions"
            )
        if not counts and any(_ELLIPSIS in term for term in self.terms):
            return None
        numbers = [str(i) for i in range(max(counts, default=0))]
        return Equation(tuple(_spread(t, numbers) for t in self.terms), _spread(self.output, numbers))


def infer(equation: Equation, shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the shape of the output; a dimension of 1 broadcasts to another of the same label."""
    whole = equation.spread([None if s is None else len(s) for s in shapes])
    if whole is None:
        return None
    found: dict[str, list[Dim]] = {}
    for term, shape in zip(whole.terms, shapes, strict=True):
        for label in dict.fromkeys(term):
            dims = [d for t, d in zip(term, shape or (None,) * len(term), strict=True) if t == label]
            found.setdefault(label, []).append(same_dim(dims, f"the dimensions of {label!r} in one operand"))
    sizes = {label: broadcast_dim(dims) for label, dims in found.items()}
    return tuple(sizes[label] for label in whole.output)


def evaluate(equation: Equation, operands: Sequence[Array]) -> Array:
    """Return the output, in the operands' type."""
    whole = equation.spread([x.ndim for x in operands])
    if whole is None:  # ranks are known here
        raise ValueError("no operand determines the dimensions of '...'")
    parts = list(itertools.starmap(_diagonal, zip(operands, whole.terms, strict=True)))
    sizes = _sizes(parts)
    parts = [_narrowed(part, sizes) for part in parts]
    counts = Counter(label for part in parts for label in part.labels)
    counts.update(whole.output)
    parts = [_summed(part, counts) for part in parts]
    while len(parts) > 1:
        i, j = _cheapest(parts, counts, sizes)
        a, b = parts[i], parts[j]
        parts = [p for k, p in enumerate(parts) if k not in {i, j}]
        parts.append(_product(a, b, counts, sizes))
    (last,) = parts
    return last.array.transpose([last.labels.index(label) for label in whole.output])


class _Operand(NamedTuple):
    """An array with one label for each axis, none twice."""

    array: Array
    labels: Labels


def _implied(terms: Iterable[Labels]) -> Labels:
    """Return the output of an equation without an arrow: the ellipsis, then the labels that occur once."""
    counts = Counter(label for term in terms for label in term)
    once = sorted(label for label, count in counts.items() if count == 1 and label != _ELLIPSIS)
    return (_ELLIPSIS, *once) if _ELLIPSIS in counts else tuple(once)


def _spread(term: Labels, numbers: Sequence[str]) -> Labels:
    return tuple(itertools.chain.from_iterable(numbers if t == _ELLIPSIS else (t,) for t in term))


def _diagonal(x: Array, labels: Labels) -> _Operand:
    """Keep the elements that have one index on all axes of one label."""
    while len(set(labels)) < len(labels):
        label = next(t for t in labels if labels.count(t) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        if x.shape[i] != x.shape[j]:
            raise ValueError(f"{label!r} labels dimensions of {x.shape[i]} and {x.shape[j]} in one operand")
        x = np.diagonal(x, axis1=i, axis2=j).copy()  # now the last axis
        labels = (*(t for k, t in enumerate(labels) if k not in {i, j}), label)
    return _Operand(x, labels)


def _sizes(parts: Iterable[_Operand]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in parts:
        for label, size in zip(part.labels, part.array.shape, strict=True):
            other = sizes.get(label, 1)
            if 1 not in {size, other} and size != other:
                raise ValueError(f"{label!r} labels dimensions of {other} and {size}")
            sizes[label] = other if size == 1 else size
    return sizes


def _narrowed(part: _Operand, sizes: dict[str, int]) -> _Operand:
    """Drop the dimensions of 1 that are to be broadcast, with their labels."""
    wide = [i for i, t in enumerate(part.labels) if part.array.shape[i] != sizes[t]]
    kept = tuple(t for i, t in enumerate(part.labels) if i not in wide)
    return _Operand(part.array.squeeze(tuple(wide)), kept)


def _summed(part: _Operand, counts: Counter[str]) -> _Operand:
    """Sum over the labels that no other operand has, nor the output."""
    alone = tuple(i for i, t in enumerate(part.labels) if counts[t] == 1)
    kept = tuple(t for t in part.labels if counts[t] > 1)
    return _Operand(summed(part.array, alone, dtype=part.array.dtype), kept) if alone else part


def _cheapest(parts: Sequence[_Operand], counts: Counter[str], sizes: dict[str, int]) -> tuple[int, int]:
    """Return the pair whose product grows least beyond the two."""
    if len(parts) == 2:  # ruff: ignore[magic-value-comparison]  a pair
        return 0, 1

    def growth(pair: tuple[int, int]) -> int:
        a, b = (parts[i] for i in pair)
        kept = {t for t in (*a.labels, *b.labels) if counts[t] > (t in a.labels) + (t in b.labels)}
        return math.prod(sizes[t] for t in kept) - a.array.size - b.array.size

    return min(itertools.combinations(range(min(len(parts), MOST_CHOICES)), 2), key=growth)


def _product(a: _Operand, b: _Operand, counts: Counter[str], sizes: dict[str, int]) -> _Operand:
    """Multiply two operands, summed over the labels that only they have; `counts` follows."""
    shared = [t for t in a.labels if t in b.labels]
    summed, batch = [t for t in shared if counts[t] == 2], [t for t in shared if counts[t] > 2]  # ruff: ignore[magic-value-comparison]  both operands
    counts.subtract(shared)
    rows, columns = [t for t in a.labels if t not in shared], [t for t in b.labels if t not in shared]
    left, right = _ordered(a, [*batch, *rows, *summed]), _ordered(b, [*batch, *summed, *columns])
    lengths = [tuple(sizes[t] for t in labels) for labels in (batch, rows, columns, summed)]
    many, m, n, k = (math.prod(each) for each in lengths)
    labels = (*batch, *rows, *columns)
    shape = tuple(sizes[t] for t in labels)
    if not summed:
        allotted((many, m, n), left.dtype, left.size + right.size)
        y = left.reshape(many, m, 1) * right.reshape(many, 1, n)
    elif m == n == 1:
        y = np.einsum("bk,bk->b", left.reshape(many, k), right.reshape(many, k))
    elif batch:
        y = products.matmul(left.reshape(many, m, k), right.reshape(many, k, n))
    else:
        y = products.matmul(left.reshape(m, k), right.reshape(k, n))
    return _Operand(y.reshape(shape), labels)


def _ordered(part: _Operand, labels: Sequence[str]) -> Array:
    return part.array.transpose([part.labels.index(t) for t in labels])


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")
