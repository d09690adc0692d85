"""Walks over expressions: passes visit, rewrite and verify expressions with these functions."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from sabir.base import SabirError
from sabir.loops._expression import ELEMENTS, Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    Rule: TypeAlias = Callable[[Expression, Mapping[Expression, Expression]], Expression | None]

_Key = TypeVar("_Key")


class InvalidExpression(SabirError):
    """The fields of an expression contradict each other: the lowering or a pass built it wrongly."""


def postorder(roots: Iterable[Expression], seen: set[Expression] | None = None) -> Iterator[Expression]:
    """Yield the roots and all their operands in postorder: each expression once, after its operands.

    Expressions in `seen`, and their operands, are skipped; the others are added to `seen`.

    >>> from sabir import loops
    >>> x = loops.number('float', 2)
    >>> y = loops.apply('mul', x, x)
    >>> [type(e).__name__ for e in postorder([y])]
    ['Number', 'Map']
    """
    pending = [(x, False) for x in reversed(list(roots))]
    seen = set() if seen is None else seen
    while pending:
        x, ready = pending.pop()
        if ready:
            yield x
        elif x not in seen:
            seen.add(x)
            if not (operands := x.operands):
                yield x
                continue
            pending.append((x, True))
            pending += [(o, False) for o in reversed(operands)]


def rewrite(roots: Mapping[_Key, Expression], *rules: Rule) -> dict[_Key, Expression]:
    """Return the roots rewritten: each expression becomes the result of the first rule that applies to it.

    Expressions are visited in postorder. A rule takes an expression and a mapping from the old expressions
    that were visited before, its operands among them, to the new ones. It returns the new expression, or None
    if it does not apply. If no rule applies, the expression is `rebuilt` from its new operands.

    >>> from sabir import loops
    >>> def halve(x, new):
    ...     return loops.number('float', x.number / 2) if isinstance(x, loops.Number) else None
    >>> x = loops.apply('neg', loops.number('float', 8))
    >>> rewrite({'x': x}, halve)['x'].operands[0].number
    4.0
    """
    new: dict[Expression, Expression] = {}
    for x in postorder(roots.values()):
        for rule in rules:
            y = rule(x, new)
            if y is not None:
                break
        else:
            y = rebuilt(x, new)
        new[x] = y
    return {key: new[x] for key, x in roots.items()}


def rebuilt(x: Expression, new: Mapping[Expression, Expression]) -> Expression:
    """Return an expression with its new operands; the expression itself if no operand changed."""
    for operand in x.operands:
        if new[operand] is not operand:
            return x.with_operands([new[o] for o in x.operands])
    return x


def structure(x: Expression) -> Hashable:
    """Return a key that is equal for expressions of one kind with equal fields and the same operands."""
    return type(x), *(getattr(x, f.name) for f in fields(x))


def verify(roots: Iterable[Expression]) -> None:
    """Raise InvalidExpression if the shapes, element types or axes of an expression contradict each other.

    >>> from sabir import loops
    >>> bad = loops.Reshape('float', (3,), loops.Stored('float', (2,)))
    >>> verify([bad])
    Traceback (most recent call last):
        ...
    sabir.loops.walk.InvalidExpression: Reshape float(3,): 2 elements as (3,)
    """
    for x in postorder(roots):
        if x.element not in ELEMENTS:
            raise InvalidExpression(f"{_shown(x)}: kernels do not know the element type")
        if any(isinstance(n, int) and n < 0 for n in x.shape):
            raise InvalidExpression(f"{_shown(x)}: a size is negative")
        for problem in x.violations():
            raise InvalidExpression(f"{_shown(x)}: {problem}")


def _shown(x: Expression) -> str:
    return f"{type(x).__name__} {x.element}{x.shape}"
