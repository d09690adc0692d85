"""Recurrences: steps in order, each of which computes new states from the states of the previous step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sabir.loops._expression import FLOATS, Expression, Size, Sizes, agree, expression
from sabir.loops._expressions import Contract, Extent, Join, Map, Number
from sabir.loops._operations import NotLowered, cut, expand, number, same_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LEAST_RANK = 3  # steps, rows, columns
_MATRIX = 2
_MOST_NODES = 120  # of a step: its code must stay small


@expression
class StepState(Expression):
    """A state of a recurrence: index `i` of its first axis is the state before step `i`."""


@expression
class StepOperand(Expression):
    """An operand of a recurrence, by its number, in the expressions of a step.

    The operand may have another element type if it is a matrix that only products read.
    """

    number: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StepBody:
    """The body of a recurrence: the new states `after` each step, and outputs, from states and operands.

    The first axis of all its expressions counts the steps. If it runs `backwards`, the first step writes the
    last index of the outputs; operands are in the order of the steps.
    """

    states: tuple[StepState, ...]
    after: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    backwards: bool = False

    @property
    def steps(self) -> Size:
        """The number of steps."""
        return self.states[0].shape[0]

    def __str__(self) -> str:
        order = "backwards" if self.backwards else "forwards"
        return f"{self.steps} steps {order}, {len(self.states)} states"


@expression
class Recur(Expression):
    """A state after the last step of a recurrence, or one of its outputs.

    `number` counts the states first, then the outputs. The operands are the states before the first step,
    then the operands that the body names. All results of a recurrence share its body.
    """

    body: StepBody
    inputs: tuple[Expression, ...]
    number: int = 0

    @property
    def initial(self) -> tuple[Expression, ...]:
        """The states before the first step."""
        return self.inputs[: len(self.body.states)]

    @property
    def bound(self) -> tuple[Expression, ...]:
        """The operands that the body names."""
        return self.inputs[len(self.body.states) :]

    def violations(self) -> Iterator[str]:
        """Yield violations of the states and the number."""
        body = self.body
        if not 0 <= self.number < len(body.states) + len(body.outputs):
            yield f"there is no result {self.number}"
        for initial, state in zip(self.initial, body.states, strict=False):
            if not agree(initial.shape, state.shape[1:]):
                yield f"an initial state has the shape {initial.shape}"
        if len(body.after) != len(body.states) or len(self.inputs) < len(body.states):
            yield "a step computes each state, and each begins with an operand"


class Recurred(NamedTuple):
    """The results of a recurrence: the states after the last step, and the outputs of all steps."""

    final: tuple[Expression, ...]
    outputs: tuple[Expression, ...]


class RecurrenceBuilder:
    """Builds a recurrence: a caller declares states and operands, and combines them by maps and products.

    All expressions of a step have one `shape`, whose first axis counts the steps. If it runs `backwards`, the
    first step is the last index. Raises NotLowered for shapes and element types that no kernel supports.
    """

    def __init__(self, element: str, shape: Sizes, *, backwards: bool = False) -> None:
        if element not in FLOATS:
            raise NotLowered(f"steps that carry {element} on have no kernel yet")
        if len(shape) < _LEAST_RANK or any(n != 1 for n in shape[1:-2]):
            raise NotLowered("steps that carry on tensors of another rank than 2 have no kernel yet")
        self._element, self._shape, self._backwards = element, shape, backwards
        self._states: list[StepState] = []
        self._initial: list[Expression] = []
        self._bound: list[Expression] = []

    def state(self, initial: Expression) -> Expression:
        """Declare a state and return it; `initial`, without the axis of steps, precedes the first step."""
        if initial.element != self._element or not same_shape(initial.shape, self._shape[1:]):
            raise NotLowered(
                "whether the initial states have the shape of the states is known at run time only"
            )
        self._initial.append(initial)
        self._states.append(StepState(self._element, self._shape))
        return self._states[-1]

    def operand(self, x: Expression) -> Expression:
        """Declare an operand and return its expression in a step.

        If it has as many axes as the shape, its first axis counts the steps.
        """
        if self._backwards and x.rank == len(self._shape) and x.shape[0] != 1:
            x = cut(x, (x.shape[0] - 1, *(0,) * (x.rank - 1)), x.shape, (-1, *(1,) * (x.rank - 1)))
        self._bound.append(x)
        return StepOperand(x.element, x.shape, len(self._bound) - 1)

    def matrix(self, x: Expression) -> Expression:
        """Declare a matrix for products and return its expression; it may be stored in fewer bytes."""
        self._bound.append(x)
        return StepOperand(x.element, x.shape, len(self._bound) - 1)

    def results(self, after: Sequence[Expression], outputs: Sequence[Expression]) -> Recurred:
        """Return the results of the recurrence; `after` are the states after a step, one for each state.

        Raises NotLowered for a step that no kernel computes: the first operand of a product is a state, a
        map, or a concatenation of these; the second is a matrix that was declared.
        """
        for x in (*after, *outputs):
            if x.element != self._element or not same_shape(x.shape, self._shape):
                raise NotLowered("what a step computes has another type or shape than its states")
        if self._shape[0] == 0:
            nothing = expand(number(self._element, 0), self._shape)
            return Recurred(tuple(self._initial), (nothing,) * len(outputs))
        self._check((*after, *outputs))
        body = StepBody(tuple(self._states), tuple(after), tuple(outputs), self._backwards)
        operands, count = (*self._initial, *self._bound), len(self._states)
        return Recurred(
            tuple(Recur(self._element, self._shape[1:], body, operands, n) for n in range(count)),
            tuple(Recur(self._element, self._shape, body, operands, count + n) for n in range(len(outputs))),
        )

    def _check(self, results: Iterable[Expression]) -> None:
        pending, seen = list(results), set[Expression]()
        while pending:
            x = pending.pop()
            if x in seen:
                continue
            seen.add(x)
            if len(seen) > _MOST_NODES:
                raise NotLowered(f"a step computes more than {_MOST_NODES} tensors")
            if isinstance(x, Map):
                pending += x.operands
            elif isinstance(x, Contract) and self._is_product(x):
                pending += _factors(x)
            elif not isinstance(x, (StepState, StepOperand, Number, Extent)):
                raise NotLowered(f"no kernel computes the {type(x).__name__.lower()} of a step")

    def _is_product(self, x: Contract) -> bool:
        if not isinstance(x.b, StepOperand) or x.b.rank != _MATRIX:
            return False
        factors = _factors(x)
        if any(not isinstance(a, (StepState, Map)) or x.element != a.element for a in factors):
            return False
        return all(same_shape(o.shape, self._shape) for o in (x, *factors))


def _factors(x: Contract) -> tuple[Expression, ...]:
    """Return the first operand of a product, or the parts if it is a concatenation along the columns."""
    joined = isinstance(x.a, Join) and x.a.axis == x.a.rank - 1
    return x.a.parts if joined and isinstance(x.a, Join) else (x.a,)
