"""Products of all states of a recurrence become outputs of the recurrence, which has computed them.

y = recur(h, ...)   a step computes contract(state, r)
z = contract(slice(join(h, y)), r)     before: the gradient of a recurrent layer needs the gates again
z = recur(h, ..., number=n)            after: the recurrence has one more output

The states before all steps are the first one, and all but the last of the outputs; of steps that run
backwards, all but the first of the outputs, and the first state. The recurrence may multiply by parts of the
columns of `r`, one for each gate: then there is an output for each, and `z` is their concatenation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.compilation.fusion.views import Views
from sabir.loops import (
    Contract,
    Expand,
    Expression,
    Join,
    Number,
    Recur,
    Reshape,
    Slice,
    StepBody,
    StepOperand,
    Stored,
)
from sabir.loops.walk import postorder, rebuilt, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

_AXES = 3  # of a product of all states: steps, rows, columns


def recurrent_products(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, where no state of a recurrence is multiplied by a matrix twice."""
    found = {x: _repeated(x) for x in postorder(expressions.values()) if isinstance(x, Contract)}
    repeated = {x: each for x, each in found.items() if each is not None}
    outputs = dict[StepBody, dict[Expression, None]]()
    for each in repeated.values():
        outputs.setdefault(each.recur.body, {}).update(dict.fromkeys(each.products))
    bodies = {
        body: replace(body, outputs=(*body.outputs, *(x for x in more if x not in body.outputs)))
        for body, more in outputs.items()
    }

    def rule(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
        if isinstance(x, Recur) and x.body in bodies:
            y = rebuilt(x, new)
            return replace(y, body=bodies[x.body]) if isinstance(y, Recur) else None
        if not isinstance(x, Contract) or x not in repeated:
            return None
        return _joined(x, repeated[x].products, new[repeated[x].recur])

    return rewrite(expressions, rule) if repeated else dict(expressions)


def is_recurrence(x: Expression) -> bool:
    """Return whether an expression is a result of a recurrence."""
    return isinstance(x, Recur)


class _Repeated(NamedTuple):
    """Products of a step of a recurrence, side by side, and a result of this recurrence."""

    recur: Recur
    products: list[Contract]


def _repeated(x: Contract) -> _Repeated | None:
    """Return which products of a recurrence a product of all of its states computes again; None if none."""
    if x.rank != _AXES or x.depth != 1 or x.a_zero is not None or x.b_zero is not None or x.scale is not None:
        return None
    a = x.a
    if not isinstance(a, Slice) or any(step != 1 for step in a.steps) or not isinstance(a.operand, Join):
        return None
    parts = a.operand.parts
    if a.operand.axis != 0 or len(parts) != 2 or any(start != 0 for start in a.starts[1:]):  # ruff: ignore[magic-value-comparison]  states, and the first
        return None
    after, first = (parts[1], parts[0]) if a.starts[0] == 0 else (parts[0], parts[1])
    recur = _unshaped(after)
    if not isinstance(recur, Recur) or (recur.body.backwards is (a.starts[0] == 0)):
        return None
    if a.starts[0] not in {0, 1} or a.shape[0] != recur.body.steps or first.shape[0] != 1:
        return None
    number = _state_of(recur)
    if number is None or not _is_same(first, recur.initial[number]):
        return None
    products = _side_by_side(recur, number, x.b)
    return None if products is None else _Repeated(recur, products)


def _state_of(recur: Recur) -> int | None:
    """Return the number of the state whose values after each step an output has; None if it has none."""
    place = recur.number - len(recur.body.states)
    if place < 0:
        return None
    output = recur.body.outputs[place]
    return next((number for number, x in enumerate(recur.body.after) if x is output), None)


def _side_by_side(recur: Recur, number: int, b: Expression) -> list[Contract] | None:
    """Return the products of a state by the parts of a matrix, in the order of columns; None if not all."""
    views, body = Views(), recur.body
    whole = views.locate(b)
    columns: dict[object, Contract] = {}
    for x in postorder((*body.after, *body.outputs)):
        if isinstance(x, Contract) and x.a is body.states[number] and isinstance(x.b, StepOperand):
            part = views.locate(recur.bound[x.b.number])
            if part.base is whole.base and part.strides == whole.strides:
                columns[part.offset] = x
    found: list[Contract] = []
    place = whole.offset
    while sum(x.b.shape[1] for x in found) != b.shape[1]:
        x = columns.get(place)
        if x is None or len(found) >= len(columns):
            return None
        found.append(x)
        place += x.b.shape[1] * whole.strides[1]
    return found


def _is_same(a: Expression, b: Expression) -> bool:
    """Return whether two expressions are known to have the same elements, in any shape."""
    a, b = _unshaped(a), _unshaped(b)
    return a is b or (_is_zero(a) and _is_zero(b))


def _is_zero(x: Expression) -> bool:
    """Return whether all elements are known to be 0, as those of a first state that is not given."""
    if isinstance(x, Stored) and x.origin is not None:
        return _is_zero(x.origin)
    if isinstance(x, (Reshape, Expand)):
        return _is_zero(x.operand)
    if isinstance(x, Number):
        return x.number == 0
    return isinstance(x, Stored) and x.contents is not None and x.contents.is_zero


def _unshaped(x: Expression) -> Expression:
    while isinstance(x, Reshape):
        x = x.operand
    return x


def _joined(x: Contract, products: list[Contract], recur: Expression) -> Expression:
    """Return the outputs of a recurrence that are the parts of a product."""
    if not isinstance(recur, Recur):
        raise TypeError("a recurrence was replaced by another expression")
    body = recur.body
    numbers = [len(body.states) + body.outputs.index(product) for product in products]
    results = [Recur(x.element, body.states[0].shape, body, recur.inputs, number) for number in numbers]
    parts = [loops.reshape(y, (*x.shape[:-1], y.shape[-1])) for y in results]
    return loops.join(parts, x.rank - 1) if len(parts) > 1 else parts[0]
