"""Gradients of recurrent layers.

The outputs of the forward layer are all states h, so the gates of all steps are one product again, and so are
their derivatives. Only what one step passes to the one before remains for a Scan over the time, which yields
the gradients of the gates; those of the weights and of X are one product each after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from sabir.ir import TensorType
from sabir.opsets.families.indexing.move_gradients import zeros_of
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs, directions_of
from sabir.opsets.families.recurrence.recurrence_slopes import Slopes
from sabir.opsets.families.recurrence.recurrences import bound_of, named_of
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.families.recurrence.recurrences import Layer
    from sabir.opsets.typing import Floats, Gradient, Strings


Values: TypeAlias = "Sequence[Value]"
Carried: TypeAlias = "tuple[Values, Values]"  # states after a step, and its results
Step: TypeAlias = "Callable[[Builder, Values, Values], Carried]"

_FIRST, _SECOND, _TO_THE_END = 0, 1, 2**63 - 1
_LIMITED = 2  # functions of LSTM whose argument `clip` limits; the third is applied to the cell


class Gradients(NamedTuple):
    """The gradients of the inputs of one direction; None for an input that the layer does not have."""

    x: Value
    w: Value
    r: Value
    b: Value
    h: Value
    c: Value | None = None
    p: Value | None = None


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a layer: its inputs and outputs, the time first, and the gradients of the outputs."""

    g: Gradient
    inputs: RecurrentInputs[Value]  # with initial states; `lens` is a mask (time, batch, 1) of actual steps
    y: Value  # (time, batch, hidden)
    dy: Value | None
    d_states: tuple[Value, ...]  # of the final states
    backwards: bool

    def before(self, values: Value, first: Value) -> Value:
        """Return the value before each step: that of the step before, or the first of all."""
        g, initial = self.g, self.g.Unsqueeze(first, [0])
        if self.backwards:
            return g.Slice(g.Concat(values, initial, axis=0), [1], [_TO_THE_END], [0])
        return g.Slice(g.Concat(initial, values, axis=0), [0], [-1], [0])

    @property
    def states(self) -> Value:
        """The state h before each step; where a sequence starts later, it is the initial one."""
        y, first, mask = self.y, given(self.inputs.h), self.inputs.lens
        return self.before(y if mask is None else self.g.Where(mask, y, first), first)

    def of_inputs(self, biases: int) -> Value:
        """Return `W x + b` for all steps, with so many of the two biases: that of W, or the sum of both."""
        g, (x, w, _, b, *_) = self.g, self.inputs
        product = g.MatMul(x, g.Transpose(w, perm=[1, 0]))
        if b is None:
            return product
        of_w, of_r = as_results(g.op("Split", b, axis=0, num_outputs=2, outputs=2))
        return g.Add(product, of_w if biases == 1 else g.Add(of_w, of_r))

    def active(self, values: Value, otherwise: float = 0.0) -> Value:
        """Return values, or a number at steps after the end of a sequence."""
        mask = self.inputs.lens
        return values if mask is None else self.g.Where(mask, values, otherwise)

    def kept(self) -> list[Value]:
        """Return 1 at steps after the end of a sequence, where a state stays; nothing if there are none."""
        mask = self.inputs.lens
        if mask is None:
            return []
        return [self.g.Cast(self.g.Not(mask), to=element_of(self.y).number)]

    def forward(self, initial: Values, read: Values, step: Step, count: int) -> tuple[Value, ...]:
        """Return the final states and the stacked results of steps in the direction of the layer."""
        return self._scan(initial, read, step, count, backwards=self.backwards)

    def back(self, read: Values, step: Step, count: int) -> tuple[Value, ...]:
        """Return the gradients of the initial states, and the stacked results of steps against the direction.

        A step reads the gradient of its output first, if there is one, which is added to that of h.
        """
        dy = [] if self.dy is None else [self.active(self.dy)]

        def added(b: Builder, states: Values, items: Values) -> tuple[Values, Values]:
            if self.dy is not None:
                states = [b.Add(states[0], items[0]), *states[1:]]
            return step(b, states, items[len(dy) :])

        return self._scan(self.d_states, [*dy, *read], added, count, backwards=not self.backwards)

    def _scan(
        self, initial: Values, read: Values, step: Step, count: int, *, backwards: bool
    ) -> tuple[Value, ...]:
        def body(b: Builder) -> list[Value]:
            states = [b.input("state", slice_type(v, 0)) for v in initial]
            after, results = step(b, states, [b.input("item", slice_type(v, 1)) for v in read])
            return [*after, *results]

        made = self.g.op(
            "Scan",
            *initial,
            *read,
            body=self.g.subgraph(body, name="step"),
            num_scan_inputs=len(read),
            scan_input_directions=[int(backwards)] * len(read),
            scan_output_directions=[int(backwards)] * count if count else None,
            outputs=len(initial) + count,
        )
        return as_results(made)

    def finish(self, gates: Value, states: Values, *, of_r: Value, d_r: Value, **more: Any) -> Gradients:
        """Return the gradients of the inputs from those of the gates (time, batch, gates * hidden).

        `states` are the gradients of the initial states, `of_r` is what the bias of R receives, `d_r` the
        gradient of R.
        """
        g, (x, w, *_) = self.g, self.inputs
        biases = [g.ReduceSum(v, [0, 1], keepdims=0) for v in (gates, of_r)]
        return Gradients(
            g.MatMul(gates, w), self.product(gates, x), d_r, g.Concat(*biases, axis=0), *states, **more
        )

    def product(self, gates: Value, values: Value) -> Value:
        """Return the gradient of weights: gates times what they were multiplied with, over all steps.

        The gates are several times as wide: they stay as they are, and the result is transposed.
        """
        g = self.g
        turned = g.Transpose(g.Flatten(values, axis=2), perm=[1, 0])
        return g.Transpose(g.MatMul(turned, g.Flatten(gates, axis=2)), perm=[1, 0])


def given(value: Value | None) -> Value:
    """Return an input that is known to be there."""
    return cast("Value", value)


def functions_of(
    g: Gradient, layer: Layer, x: Value, *, activations: Strings, activation_alpha: Floats,
    activation_beta: Floats, clip: float | None, direction: str, **_: Any,
) -> list[list[Slopes]]:  # fmt: skip
    """Return the activation functions of each direction; `clip` limits those of the gates."""
    named = named_of(layer, activations, activation_alpha, activation_beta, direction=direction)
    bounds = (*(bound_of(clip),) * _LIMITED, None)
    kind = element_of(x)
    return [[Slopes(g, kind, *pair) for pair in zip(names, bounds, strict=False)] for names in named]


def slice_type(value: Value, dropped: int) -> TensorType:
    """Return the type of a state, or that of the slices of what is read.

    Without symbols: an interpreter would compare their sizes in each step.
    """
    kind = value.type
    shape = kind.shape if isinstance(kind, TensorType) else None
    if shape is None:
        return TensorType(element_of(value), None)
    return TensorType(element_of(value), tuple(d if isinstance(d, int) else None for d in shape[dropped:]))


def gradient(
    g: Gradient,
    inputs: RecurrentInputs[Value],
    states: int,
    of_direction: Callable[[Direction, int], Gradients],
    *,
    direction: str,
    layout: int,
    **_: Any,
) -> tuple[Value | None, ...]:
    """Return the gradients of the inputs of a layer with so many states."""
    backwards = directions_of(direction)
    found = [of_direction(d, i) for i, d in enumerate(_directions(g, inputs, states, backwards, layout))]
    x = found[0].x if len(found) == 1 else g.Add(found[0].x, found[1].x)

    def stacked(parts: Values, *, swaps: bool = False) -> Value:
        whole = g.Concat(*(g.Unsqueeze(v, [0]) for v in parts), axis=0)
        return _swapped(g, whole, layout) if swaps else whole

    return (
        _swapped(g, x, layout),
        stacked([f.w for f in found]),
        stacked([f.r for f in found]),
        None if inputs.b is None else stacked([f.b for f in found]),
        None,
        None if inputs.h is None else stacked([f.h for f in found], swaps=True),
        None if inputs.c is None else stacked([given(f.c) for f in found], swaps=True),
        None if inputs.p is None else stacked([given(f.p) for f in found]),
    )


def _directions(
    g: Gradient, inputs: RecurrentInputs[Value], states: int, backwards: Sequence[bool], layout: int
) -> list[Direction]:
    """Return each direction, with zeros for initial states and for the gradients of final ones."""
    order = [1, 2, 0, 3]  # of Y with the batch first
    y = g.Transpose(g.y(), perm=order) if layout else g.y()
    d_y, *d_last = (*g.dys, None, None, None)[: states + 1]
    d_y = g.Transpose(d_y, perm=order) if layout and d_y is not None else d_y
    zeros = zeros_of(g, g.Shape(y, start=2), y)
    x, mask = _swapped(g, inputs.x, layout), None if inputs.lens is None else _mask(g, y, inputs.lens)

    def part(value: Value | None, number: int, axis: int = _FIRST) -> Value | None:
        if value is None:
            return None
        return g.Squeeze(value, [axis]) if len(backwards) == 1 else g.Gather(value, number, axis=axis)

    def state(value: Value | None, number: int) -> Value:
        return zeros if value is None else given(part(_swapped(g, value, layout), number))

    return [
        Direction(
            g,
            RecurrentInputs(
                x, given(part(inputs.w, i)), given(part(inputs.r, i)), part(inputs.b, i), mask,
                state(inputs.h, i), state(inputs.c, i), part(inputs.p, i),
            ),
            given(part(y, i, _SECOND)),
            part(d_y, i, _SECOND),
            tuple(state(d, i) for d in d_last),
            backwards=reverse,
        )
        for i, reverse in enumerate(backwards)
    ]  # fmt: skip


def _mask(g: Gradient, y: Value, lens: Value) -> Value:
    """Return which steps belong to each sequence, (time, batch, 1)."""
    steps = g.Range(0, g.Squeeze(g.Shape(y, end=1), [0]), 1)
    ends = g.Unsqueeze(g.Cast(lens, to=7), [1])
    return g.Less(g.Unsqueeze(steps, [1, 2]), ends)


def _swapped(g: Gradient, x: Value, layout: int) -> Value:
    """Exchange time, or directions, and batch where the batch is first."""
    return g.Transpose(x, perm=[1, 0, 2]) if layout else x
