"""Recurrences: what steps compute one after the other, each from the states that the one before it left."""

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
    """An operand of a recurrence, by its number, within the expressions of a step.

    A matrix that only products read may be stored as another element type.
    """

    number: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StepBody:
    """What each step of a recurrence computes of states and operands: new states, and outputs.

    The first axis of all its expressions counts the steps. Backwards, the first step fills the last index of
    the outputs; operands are in the order of the steps.
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
        """Yield what is wrong with the states and the number."""
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
    """The steps of a recurrence in the making: maps and products of states and operands.

    All that steps compute has one `shape`, whose first axis counts the steps. Backwards, the first step is
    that of the last index. Raises NotLowered where no kernel carries such tensors on.
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
        """Return a state before each step; `initial` is that before the first, without the axis of steps."""
        if initial.element != self._element or not same_shape(initial.shape, self._shape[1:]):
            raise NotLowered(
                "whether the initial states have the shape of the states is known at run time only"
            )
        self._initial.append(initial)
        self._states.append(StepState(self._element, self._shape))
        return self._states[-1]

    def operand(self, x: Expression) -> Expression:
        """Return what stands for a tensor in a step; the first of as many axes as the shape counts steps."""
        if self._backwards and x.rank == len(self._shape) and x.shape[0] != 1:
            x = cut(x, (x.shape[0] - 1, *(0,) * (x.rank - 1)), x.shape, (-1, *(1,) * (x.rank - 1)))
        self._bound.append(x)
        return StepOperand(x.element, x.shape, len(self._bound) - 1)

    def matrix(self, x: Expression) -> Expression:
        """Return what stands for a matrix in products of a step; constants may be stored in fewer bytes."""
        self._bound.append(x)
        return StepOperand(x.element, x.shape, len(self._bound) - 1)

    def results(self, after: Sequence[Expression], outputs: Sequence[Expression]) -> Recurred:
        """Return what the steps leave that compute the states `after` each of them.

        Raises NotLowered for what no kernel computes in a step: a product is that of a state, or of what maps
        compute, or of several of these side by side, with a matrix that is an operand.
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
    """Return what a matrix is multiplied by: one tensor, or several side by side."""
    joined = isinstance(x.a, Join) and x.a.axis == x.a.rank - 1
    return x.a.parts if joined and isinstance(x.a, Join) else (x.a,)
