"""The gradient of Einstein summation: for each operand, one of the output's gradient and the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Value
    from sabir.opsets.families.products.contractions import Equation, Labels
    from sabir.opsets.typing import Gradient

_ELLIPSIS = "..."


def gradients(g: Gradient, equation: Equation, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Return the gradients of all operands."""
    return tuple(_gradient(g, equation, operands, i) for i in range(len(operands)))


def _gradient(g: Gradient, equation: Equation, operands: Sequence[Value], place: int) -> Value:
    """Sum over what the operand lacks, repeat along what only it has, and keep the diagonals of labels."""
    x, term = operands[place], equation.terms[place]
    others = [(v, t) for i, (v, t) in enumerate(zip(operands, equation.terms, strict=True)) if i != place]
    known = set(equation.output).union(*(t for _, t in others))
    labels = tuple(t for t in dict.fromkeys(term) if t in known)
    d = g.dy
    if others or labels != equation.output:
        terms = ",".join("".join(t) for t in (equation.output, *(t for _, t in others)))
        d = g.Einsum(d, *(v for v, _ in others), equation=f"{terms}->{''.join(labels)}")
    if labels != term:
        d = g.Unsqueeze(d, _missing(g, x, term, labels))
    for first, second in _diagonals(term):
        d = g.Where(g.Equal(_indices(g, x, first), _indices(g, x, second)), d, 0)
    if not g.shape(x) or g.shape(d) != g.shape(x):
        d = g.Expand(d, g.sizes(x))  # it does not shrink an axis along which `x` was broadcast
    return g.fit(d, x)


def _missing(g: Gradient, x: Value, term: Labels, labels: Labels) -> list[int]:
    """Return the axes of `x` without a label of their own among `labels`."""
    whole = _ELLIPSIS in term and _ELLIPSIS not in labels
    dots = term.index(_ELLIPSIS) if _ELLIPSIS in term else len(term)
    axes = [
        _axis(term, i)
        for i, label in enumerate(term)
        if label != _ELLIPSIS and (label not in labels or term.index(label) < i)
    ]
    return [*axes, *range(dots, dots + g.rank(x) - len(term) + 1)] if whole else axes


def _axis(term: Labels, place: int) -> int:
    """Return the axis of a label, from the end for one behind the ellipsis."""
    return place - len(term) if _ELLIPSIS in term[:place] else place


def _diagonals(term: Labels) -> list[tuple[int, int]]:
    """Return the pairs of axes that share a label, each with the first of that label."""
    return [
        (_axis(term, term.index(label)), _axis(term, i))
        for i, label in enumerate(term)
        if term.index(label) < i
    ]


def _indices(g: Gradient, x: Value, axis: int) -> Value:
    """Return the indices along an axis of `x`, in a shape that broadcasts to that of `x`."""
    rank = g.rank(x)
    size = g.Squeeze(g.Gather(g.Shape(x), [axis]), [0])
    others = [i for i in range(rank) if i != axis % rank]
    return g.Unsqueeze(g.Range(0, size, 1), others)
