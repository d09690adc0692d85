"""Lowering of recurrent layers: one product of the inputs of all steps, then the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, overload

from sabir import loops
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.recurrence import recurrences
from sabir.opsets.families.recurrence.recurrence_shapes import directions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.loops import Recurred, RecurrenceBuilder, Size, Sizes
    from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs
    from sabir.opsets.families.recurrence.recurrences import Layer, Named

    Activation = Callable[[Expression], Expression]
    Cell = Callable[["Gates", Sequence[Expression]], Sequence[Expression]]

_PEEPHOLES = 3


class Gates(NamedTuple):
    """The gates of one direction in a step, in the order of the operator.

    `sums` are `X @ W^T + biases` of each gate, `matrices` the parts of R. `biases` are the biases of R if the
    cell adds them, `peepholes` the weights of three gates; both may be empty. `functions` are the activations
    with `clip` applied to their inputs; `unlimited` are the same without `clip`.
    """

    sums: Sequence[Expression]
    matrices: Sequence[Expression]
    biases: Sequence[Expression]
    peepholes: Sequence[Expression]
    functions: Sequence[Activation]
    unlimited: Sequence[Activation]

    def input(self, number: int, h: Expression) -> Expression:
        """Return the input of the activation of a gate from the state `h`, without peepholes."""
        return loops.apply("add", loops.contract(h, self.matrices[number]), self.sums[number])


class Shape(NamedTuple):
    """The sizes of a layer."""

    time: Size
    batch: Size
    hidden: Size

    @property
    def of_steps(self) -> Sizes:
        """The shape of a state of one direction for all steps."""
        return self.time, 1, self.batch, self.hidden


def recur(
    layer: Layer,
    inputs: RecurrentInputs[Expression],
    cell: Cell,
    *,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
    late_bias: bool = False,
    **attributes: Any,
) -> tuple[Expression, ...]:
    """Return Y and the final states.

    `cell` computes the states after a step from the gates and the states before it. With `late_bias` it also
    adds the biases of R. Raises NotLowered if the operands may not match.
    """
    loops.check_computed(inputs.x.element)  # the states of halves are floats
    shape = _shape(layer, inputs, direction=direction, hidden_size=hidden_size, layout=layout)
    parameters = (attributes[name] for name in ("activations", "activation_alpha", "activation_beta"))
    named = recurrences.named_of(layer, *parameters, direction=direction)
    if layout:
        inputs = inputs._replace(x=_swapped(inputs.x), h=_swapped(inputs.h), c=_swapped(inputs.c))
    if inputs.lens is not None and not loops.at_least(shape.time, 1):
        raise NotLowered("lengths of sequences that may have no steps are evaluated")
    active = _active(inputs.lens, shape)
    found: list[Recurred] = []
    for number, backwards in enumerate(directions_of(direction)):
        steps = loops.RecurrenceBuilder(inputs.x.element, shape.of_steps, backwards=backwards)
        functions = [[function_of(f, limit) for f in named[number]] for limit in (clip, None)]
        gates = _gates(layer, inputs, number, steps, shape, late_bias=late_bias)
        gates = gates._replace(functions=functions[0], unlimited=functions[1])
        initial = (_initial(s, number, inputs.x, shape) for s in (inputs.h, inputs.c)[: layer.states])
        found.append(_recurred(steps, cell, gates, [*map(steps.state, initial)], active))
    y = _joined([of.outputs[0] for of in found], 1)
    finals = [_joined(parts, 0) for parts in zip(*(of.final for of in found), strict=True)]
    if not layout:
        return (y, *finals)
    return (loops.permute(y, (2, 0, 1, 3)), *map(_swapped, finals))


def _recurred(
    steps: RecurrenceBuilder,
    cell: Cell,
    gates: Gates,
    states: Sequence[Expression],
    active: Expression | None,
) -> Recurred:
    """Return the results of one direction; after the end of a sequence its states do not change."""
    after = cell(gates, states)
    if active is None:
        return steps.results(after, after[:1])
    mask = steps.operand(active)
    kept = [loops.where(mask, new, old) for new, old in zip(after, states, strict=True)]
    return steps.results(kept, [loops.where(mask, after[0], 0)])


@overload
def _swapped(x: Expression) -> Expression: ...
@overload
def _swapped(x: Expression | None) -> Expression | None: ...
def _swapped(x: Expression | None) -> Expression | None:
    return None if x is None else loops.permute(x, (1, 0, 2))


def _joined(parts: Sequence[Expression], axis: int) -> Expression:
    return parts[0] if len(parts) == 1 else loops.join(parts, axis)


# ---------------------------------------------------------------- operands


def _shape(
    layer: Layer, inputs: RecurrentInputs[Expression], *, direction: str, hidden_size: int | None, layout: int
) -> Shape:
    """Return the sizes; raises NotLowered if the operands may not match."""
    directions = len(directions_of(direction))
    time, batch, width = inputs.x.shape
    if layout:
        time, batch = batch, time
    hidden = inputs.r.shape[-1]
    if hidden_size is not None and loops.equal(hidden, hidden_size):
        hidden = hidden_size
    state = (batch, directions, hidden) if layout else (directions, batch, hidden)
    expected = [
        (inputs.w, (directions, layer.gates * hidden, width)),
        (inputs.r, (directions, layer.gates * hidden, hidden)),
        (inputs.b, (directions, 2 * layer.gates * hidden)),
        (inputs.lens, (batch,)),
        (inputs.h, state),
        (inputs.c, state),
        (inputs.p, (directions, _PEEPHOLES * hidden)),
    ]
    for operand, sizes in expected:
        if operand is not None and not loops.same_shape(operand.shape, sizes):
            raise NotLowered("whether the shapes of the operands match is known at run time only")
    if hidden_size is not None and hidden != hidden_size:
        raise NotLowered("whether the hidden size is that of the operands is known at run time only")
    return Shape(time, batch, hidden)


def _gates(
    layer: Layer, inputs: RecurrentInputs[Expression], number: int, steps: RecurrenceBuilder, shape: Shape, *,
    late_bias: bool,
) -> Gates:  # fmt: skip
    """Return the gates of one direction, without their activations."""
    hidden = shape.hidden
    w, r = _of_direction(inputs.w, number), _of_direction(inputs.r, number)
    sums = loops.contract(inputs.x, loops.permute(w, (1, 0)))
    biases: list[Expression] = []
    if inputs.b is not None:
        b = _of_direction(inputs.b, number)
        of_w, of_r = (
            loops.narrow(b, 0, half * layer.gates * hidden, layer.gates * hidden) for half in (0, 1)
        )
        sums = loops.apply("add", sums, of_w)
        if late_bias:
            biases = [steps.operand(part) for part in _parts(of_r, hidden, layer.gates)]
        else:
            sums = loops.apply("add", sums, of_r)
    sums = loops.reshape(sums, (shape.time, 1, shape.batch, layer.gates * hidden))
    peepholes: list[Expression] = []
    if inputs.p is not None:
        p = _of_direction(inputs.p, number)
        peepholes = [steps.operand(part) for part in _parts(p, hidden, _PEEPHOLES)]
    return Gates(
        [steps.operand(loops.narrow(sums, 3, n * hidden, hidden)) for n in range(layer.gates)],
        [steps.matrix(loops.permute(part, (1, 0))) for part in _parts(r, hidden, layer.gates)],
        biases, peepholes, (), (),
    )  # fmt: skip


def _of_direction(x: Expression, number: int) -> Expression:
    """Return the part of an operand for one direction."""
    return loops.reshape(loops.narrow(x, 0, number, 1), x.shape[1:])


def _parts(x: Expression, hidden: Size, count: int) -> list[Expression]:
    """Return the part of an operand for each gate."""
    return [loops.narrow(x, 0, n * hidden, hidden) for n in range(count)]


def _initial(state: Expression | None, number: int, x: Expression, shape: Shape) -> Expression:
    if state is None:
        return kernels.filled(x.element, 0, shape.of_steps[1:])
    return loops.narrow(state, 0, number, 1)


def _active(lens: Expression | None, shape: Shape) -> Expression | None:
    """Return the mask of steps within each sequence; a length out of range is an error of the run."""
    if lens is None:
        return None
    lengths = loops.cast(lens, "int64")
    end = loops.apply("add", loops.sized("int64", shape.time), 1)
    place = loops.where(loops.apply("lt", lengths, 0), end, lengths)
    checked = loops.take(loops.count((shape.time + 1,), 0), place, 0)
    step = loops.count((shape.time, 1, 1, 1), 0)
    return loops.apply("lt", step, loops.reshape(checked, (1, 1, shape.batch, 1)))


# ---------------------------------------------------------------- activation functions


def function_of(named: Named, clip: float | None) -> Activation:
    """Return an activation function whose input is clamped to `clip`."""
    bound = recurrences.bound_of(clip)
    return lambda x: _applied(named, x if bound is None else kernels.limited(x, -bound, bound))


def _applied(named: Named, x: Expression) -> Expression:
    # the parameters of a function are numbers
    name, alpha, beta = named.name, named.alpha or 0.0, named.beta or 0.0
    match name:
        case "Tanh" | "Sigmoid" | "Softplus":
            return loops.apply(name.lower(), x)
        case "Relu":
            return loops.apply("max", x, 0)
        case "Affine":
            return _line(x, alpha, beta)
        case "LeakyRelu":
            return loops.where(loops.apply("ge", x, 0), x, loops.apply("mul", x, alpha))
        case "ThresholdedRelu":
            return loops.where(loops.apply("ge", x, alpha), x, 0)
        case "ScaledTanh":
            return loops.apply("mul", loops.apply("tanh", loops.apply("mul", x, beta)), alpha)
        case "HardSigmoid":
            return kernels.limited(_line(x, alpha, beta), 0, 1)
        case "Elu":
            below = loops.apply("mul", loops.apply("expm1", x), alpha)
            return loops.where(loops.apply("ge", x, 0), x, below)
        case "Softsign":
            return loops.apply("div", x, loops.apply("add", loops.apply("abs", x), 1))
        case _:
            raise NotLowered(f"the activation function {name} has no kernel yet")


def _line(x: Expression, slope: float, start: float) -> Expression:
    return loops.apply("add", loops.apply("mul", x, slope), start)
