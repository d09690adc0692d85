"""Lowering of Scan and Loop: a body of maps and products becomes the step of a recurrence.

The body is lowered for one slice. Then its expressions are lifted to all steps, with a new first axis that
counts the steps: expressions that depend on no state are hoisted, and computed for all steps by other
kernels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.loops import (
    Contract,
    Expand,
    Expression,
    Join,
    Map,
    NotLowered,
    Recurred,
    Reduce,
    Reshape,
    Slice,
    StepOperand,
    StepState,
)
from sabir.loops.walk import postorder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import LoweredSubgraph, RecurrenceBuilder, Size, Sizes

_MATRIX = 2
_NUMBERS = (loops.Number, loops.Extent)


class Scanned(NamedTuple):
    """The states after the last step, and the other results of the body for all steps."""

    final: tuple[Expression, ...]
    stacks: tuple[Expression, ...]


def scanned(
    body: LoweredSubgraph, initial: Sequence[Expression], slices: Sequence[Expression], *,
    backwards: bool = False,
) -> Scanned:  # fmt: skip
    """Return the results of the loop; axis 0 of `slices` counts the steps, from the last one if `backwards`.

    Raises NotLowered for a body that is not the step of a recurrence, see `loops.RecurrenceBuilder`.
    """
    count = slices[0].shape[0]
    if any(not loops.equal(x.shape[0], count) for x in slices):
        raise NotLowered("whether the slices are equally many is known at run time only")
    before = [StepState(x.element, x.shape) for x in initial]
    items = [StepOperand(x.element, x.shape[1:], number) for number, x in enumerate(slices)]
    results = body(*before, *items)
    kept = {n for n, x in enumerate(before) if results[n] is x}
    if kept:  # they are values of the enclosing graph
        results = body(*(initial[n] if n in kept else x for n, x in enumerate(before)), *items)
    lifting = _Lifting(body, count, [initial[n] for n in kept], backwards=backwards)
    changed = [n for n in range(len(initial)) if n not in kept]
    for n in changed:
        lifting.begin(before[n], initial[n])
    for item, x in zip(items, slices, strict=True):
        lifting.known[item] = loops.reshape(x, lifting.shape_of(item.shape))
    stacks = results[len(initial) :]
    outputs = {x: lifting.columns(x) for x in stacks if lifting.depends(x)}
    found = lifting.results(
        [results[n] for n in changed], [part for parts in outputs.values() for part in parts]
    )
    left = iter(found.outputs)
    computed = {x: _joined([next(left) for _ in parts]) for x, parts in outputs.items()}
    final = dict(zip(changed, found.final, strict=True))
    return Scanned(
        tuple(loops.reshape(final.get(n, x), x.shape) for n, x in enumerate(initial)),
        tuple(
            loops.reshape(computed[x] if x in computed else lifting.over_steps(x), (count, *x.shape))
            for x in stacks
        ),
    )


def ordered(x: Expression, *, backwards: bool) -> Expression:
    """Return the tensor, reversed along the first axis if `backwards`."""
    if not backwards or x.shape[0] in {0, 1}:
        return x
    return loops.cut(x, (x.shape[0] - 1, *(0,) * (x.rank - 1)), x.shape, (-1, *(1,) * (x.rank - 1)))


def moved(x: Expression, axis: int, to: int) -> Expression:
    """Return a tensor with one axis moved."""
    order = [n for n in range(x.rank) if n != axis]
    order.insert(to, axis)
    return loops.permute(x, order)


def _matrix(shape: Sizes) -> tuple[Size, Size]:
    """Return a shape as that of a matrix; raises NotLowered for a rank above 2."""
    if any(n != 1 for n in shape[:-_MATRIX]):
        raise NotLowered("steps that compute tensors of another rank than 2 have no kernel yet")
    rows, columns = (1, 1, *shape)[-_MATRIX:]
    return rows, columns


class _Lifting:
    """Lifts the expressions of a step to all steps; `known` has the lifted ones."""

    def __init__(
        self, body: LoweredSubgraph, count: Size, around: Sequence[Expression], *, backwards: bool
    ) -> None:
        """Create the lifting of a body; `around` are further values of the enclosing graph that it reads."""
        self._backwards = backwards
        self.count, self.known = count, dict[Expression, Expression]()
        self._steps: RecurrenceBuilder | None = None
        self._states: set[Expression] = set()
        self._found = dict.fromkeys((*body.captured, *around), frozenset[type[Expression]]())
        self._visited = set(self._found)
        self._bound: dict[Expression, Expression] = {}
        self._columns: dict[Expression, list[Expression]] = {}

    def shape_of(self, shape: Sizes) -> Sizes:
        """Return the shape, over all steps, of a tensor of one step."""
        return (self.count, 1, *_matrix(shape))

    @property
    def steps(self) -> RecurrenceBuilder:
        """The builder of the recurrence; raises NotLowered without a state."""
        if self._steps is None:
            raise NotLowered("the loop has no state")
        return self._steps

    def begin(self, state: StepState, initial: Expression) -> None:
        """Add a state with its value before the first step."""
        self._steps = self._steps or loops.RecurrenceBuilder(
            state.element, self.shape_of(state.shape), backwards=self._backwards
        )
        self.known[state] = self.steps.state(loops.reshape(initial, (1, *_matrix(initial.shape))))
        self._states.add(state)

    def results(self, after: Sequence[Expression], outputs: Sequence[Expression]) -> Recurred:
        """Return the results of the recurrence from the states after a step and the outputs of a step."""
        if self._steps is None:
            return Recurred((), ())
        return self._steps.results([*map(self.stepped, after)], [*map(self.stepped, outputs)])

    def columns(self, x: Expression) -> list[Expression]:
        """Return the parts of the columns that a join concatenates; `x` itself if there is no join."""
        found = self._columns.get(x)
        if found is None:
            start: Size = 0
            found = self._columns[x] = []
            for size in _widths(x):
                part = loops.narrow(x, -1, start, size)
                found.append(_sliced(x, part) if isinstance(part, Slice) and part is not x else part)
                start += size
        return found

    def depends(self, x: Expression) -> bool:
        """Whether an expression depends on a state."""
        return StepState in self._leaves(x)

    def _varies(self, x: Expression) -> bool:
        """Whether an expression differs from step to step."""
        return not self._leaves(x).isdisjoint((StepState, StepOperand))

    def _leaves(self, x: Expression) -> frozenset[type[Expression]]:
        """Return the kinds of leaves of an expression, without those of the enclosing graph."""
        for node in postorder([x], self._visited):
            read = [self._found[o] for o in node.operands] or [frozenset([type(node)])]
            self._found[node] = frozenset[type[Expression]]().union(*read)
        return self._found[x]

    def over_steps(self, x: Expression) -> Expression:
        """Return an expression that depends on no state, for all steps."""
        if self._varies(x):
            return self._lifted(x)
        self._check(x)
        return loops.expand(loops.reshape(x, (1, 1, *_matrix(x.shape))), self.shape_of(x.shape))

    def stepped(self, x: Expression) -> Expression:
        """Return an expression of a step as `RecurrenceBuilder` takes it."""
        return self._lifted(x) if self.depends(x) else self._operand(self.over_steps(x))

    def _operand(self, x: Expression) -> Expression:
        if isinstance(x, _NUMBERS):
            return x
        if x not in self._bound:
            self._bound[x] = self.steps.operand(x)
        return self._bound[x]

    def _lifted(self, x: Expression) -> Expression:
        """Return an expression that differs from step to step, lifted to all steps."""
        found = self.known.get(x)
        if found is None:
            found = self.known[x] = self._made(x)
        return found

    def _made(self, x: Expression) -> Expression:
        match x:
            case Map():
                operands = tuple(self._part(o, x) for o in x.operands)
                return replace(x, shape=self.shape_of(x.shape), inputs=operands)
            case Contract() if self._is_plain(x) and x.b.rank == _MATRIX and x.depth == 1:
                self._check(x.b)
                return self._product(x) if self.depends(x) else loops.contract(self._lifted(x.a), x.b)
            case Slice() if self.depends(x):
                return self._lifted(_sliced(x.operand, x))
            case Slice():
                starts, steps = (0, 0, *x.starts)[-_MATRIX:], (1, 1, *x.steps)[-_MATRIX:]
                return loops.cut(
                    self._lifted(x.operand), (0, 0, *starts), self.shape_of(x.shape), (1, 1, *steps)
                )
            case Reshape() | Expand() if _matrix(x.shape) == _matrix(x.operand.shape):
                return self._lifted(x.operand)
            case Reshape() if not self.depends(x):
                return loops.reshape(self._lifted(x.operand), self.shape_of(x.shape))
            case Expand() if not self.depends(x):
                return loops.expand(self._lifted(x.operand), self.shape_of(x.shape))
            case Reduce() if not self.depends(x):
                _matrix(x.operand.shape)
                behind = [axis - x.rank for axis in x.axes if axis - x.rank >= -_MATRIX]
                return loops.reduce(x.op, self._lifted(x.operand), behind, last=x.last)
            case _:
                raise NotLowered(f"no kernel computes the {type(x).__name__.lower()} of a step")

    def _is_plain(self, x: Contract) -> bool:
        """Whether a product has a matrix that is the same in all steps, and no zero points or scales."""
        return not self._varies(x.b) and x.operands == (x.a, x.b) and x.element == x.a.element

    def _product(self, x: Contract) -> Expression:
        """Return a product of a step; if its operand is a join of columns, one product for each part."""
        columns = [self._lifted(part) for part in self.columns(x.a)]
        return loops.contract(_joined(columns), self._operand(x.b))

    def _part(self, x: Expression, of: Map) -> Expression:
        """Return an operand of a map."""
        if self.depends(x):
            return self._lifted(x)
        if self._varies(x):
            x = self._lifted(x)
        else:
            self._check(x)
            x = _plain(x)
        return self._operand(x) if self.depends(of) else x

    def _check(self, x: Expression) -> None:
        """Raise NotLowered for a constant of the body: a plan has only constants of the model."""
        if loops.Stored in self._leaves(x):
            raise NotLowered("a constant of the body has no kernel yet")


def _plain(x: Expression) -> Expression:
    """Return an expression that is the same in all steps as a matrix or a scalar."""
    number = x
    while isinstance(number, (Expand, Reshape)):
        number = number.operand
    if isinstance(number, _NUMBERS):
        return number
    return x if x.rank <= _MATRIX else loops.reshape(x, _matrix(x.shape))


def _widths(x: Expression) -> list[Size]:
    """Return the number of columns of each part of a join, also below maps; else of all columns."""
    if not x.shape:
        raise NotLowered("steps that stack single numbers have no kernel yet")
    match x:
        case Join() if x.axis == x.rank - 1:
            return [size for part in x.parts for size in _widths(part)]
        case Map():
            found = [_widths(o) for o in x.operands if o.rank and o.shape[-1] == x.shape[-1]]
            return max(found, key=len, default=[x.shape[-1]])
        case _:
            return [x.shape[-1]]


def _of_join(x: Join, start: Size, size: Size) -> Expression:
    """Return a range of columns that is one part of a join."""
    begin = 0
    for part in x.parts:
        width = part.shape[-1]
        if not isinstance(width, int) or not isinstance(start, int) or not isinstance(size, int):
            break
        if begin <= start and start + size <= begin + width:
            return loops.narrow(part, -1, start - begin, size)
        begin += width
    raise NotLowered("no kernel computes columns of several parts of a join")


def _joined(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else loops.join(parts, -1)


def _sliced(x: Expression, part: Slice) -> Expression:
    """Return the expression that computes only a part of the columns of an expression of a step."""
    whole = part.starts[:-1] == (0,) * (x.rank - 1) and part.shape[:-1] == x.shape[:-1]
    if not whole or part.steps[-1] != 1:
        raise NotLowered("no kernel computes rows of a step alone")
    start, size = part.starts[-1], part.shape[-1]
    match x:
        case Map():
            operands = tuple(
                o if o.rank == 0 or o.shape[-1] == 1 else loops.narrow(o, -1, start, size) for o in x.operands
            )
            return replace(x, shape=part.shape, inputs=operands)
        case Contract():
            return replace(x, shape=part.shape, b=loops.narrow(x.b, -1, start, size))
        case Join() if x.axis == x.rank - 1:
            return _of_join(x, start, size)
        case _:
            raise NotLowered("no kernel computes a part of a state")
