"""Walks over expressions: every pass of the compiler visits, rewrites and verifies expressions with these."""

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
    """The fields of an expression contradict each other: a fault of what built it."""


def postorder(roots: Iterable[Expression], seen: set[Expression] | None = None) -> Iterator[Expression]:
    """Yield the expressions that some roots are computed from, each once and after its operands.

    Those in `seen` are left out, with their operands; the others are added to it.

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
            pending.append((x, True))
            pending += [(o, False) for o in reversed(x.operands)]


def rewrite(roots: Mapping[_Key, Expression], *rules: Rule) -> dict[_Key, Expression]:
    """Return the roots with each expression replaced by what the first rule that applies returns.

    Operands come first. A rule gets an expression, and a mapping from each of the expressions that it is
    computed from to the new one; it returns None where it does not apply. Then the expression is `rebuilt`.

    >>> from sabir import loops
    >>> def halve(x, new):
    ...     return loops.number('float', x.number / 2) if isinstance(x, loops.Number) else None
    >>> x = loops.apply('neg', loops.number('float', 8))
    >>> rewrite({'x': x}, halve)['x'].operands[0].number
    4.0
    """
    new: dict[Expression, Expression] = {}
    for x in postorder(roots.values()):
        new[x] = next((y for rule in rules if (y := rule(x, new)) is not None), None) or rebuilt(x, new)
    return {key: new[x] for key, x in roots.items()}


def rebuilt(x: Expression, new: Mapping[Expression, Expression]) -> Expression:
    """Return an expression of the new operands: the expression itself, where these are the old ones."""
    operands = [new[o] for o in x.operands]
    same = all(o is old for o, old in zip(operands, x.operands, strict=True))
    return x if same else x.with_operands(operands)


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
