"""Lowering of recurrent layers: the input products of all steps at once, then the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir import loops
from sabir.loops import Expression, NotLowered
from sabir.opsets.families import kernels, recurrences
from sabir.opsets.families.recurrence_shapes import directions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.loops import Recurred, Size, Steps
    from sabir.opsets.families.recurrence_shapes import RecurrentInputs
    from sabir.opsets.families.recurrences import Layer, Named

    Activation = Callable[[Expression], Expression]

_PEEPHOLES = 3


class Gates(NamedTuple):
    """The gates of one direction in a step, in the order of the operator.

    `sums` are the parts of their inputs that depend on X, with the biases; `matrices` those of R. `biases` are
    those of R where they come late, `peepholes` those of three gates; both are empty where there are none.
    The inputs of `functions` are limited by `clip`, those of `unlimited`, the same functions, are not.
    """

    sums: Sequence[Expression]
    matrices: Sequence[Expression]
    biases: Sequence[Expression]
    peepholes: Sequence[Expression]
    functions: Sequence[Activation]
    unlimited: Sequence[Activation]

    def input(self, number: int, h: Expression) -> Expression:
        """Return the input of the function of a gate, without peepholes, after a state."""
        return loops.apply("add", loops.contract(h, self.matrices[number]), self.sums[number])


class Shape(NamedTuple):
    """The sizes of a layer."""

    time: Size
    batch: Size
    hidden: Size


def recur(
    layer: Layer,
    inputs: RecurrentInputs[Any],
    cell: Callable[[Gates, Sequence[Expression]], Sequence[Expression]],
    *,
    activations: Sequence[str] | None,
    activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None,
    clip: float | None,
    direction: str,
    hidden_size: int | None,
    layout: int = 0,
    late_bias: bool = False,
    **_: Any,
) -> tuple[Expression, ...]:
    """Return Y and the final states.

    `cell` returns the states after a step for the gates and the states before it. With `late_bias` it adds the
    biases of R itself.
    """
    shape = _shape(layer, inputs, direction=direction, hidden_size=hidden_size, layout=layout)
    named = recurrences.named_of(layer, activations, activation_alpha, activation_beta, direction=direction)
    x = loops.permute(inputs.x, (1, 0, 2)) if layout else inputs.x
    active = _active(inputs.lens, shape)
    initial = [
        loops.permute(s, (1, 0, 2)) if s is not None and layout else s
        for s in (inputs.h, inputs.c)[: layer.states]
    ]
    found: list[Recurred] = []
    for number, backwards in enumerate(directions_of(direction)):
        steps = loops.Steps(x.element, (shape.time, 1, shape.batch, shape.hidden), backwards=backwards)
        states = [steps.state(_initial(s, number, shape, x.element)) for s in initial]
        gates = _gates(layer, inputs, x, number, steps, shape, late_bias=late_bias)
        functions, unlimited = ([function_of(f, limit) for f in named[number]] for limit in (clip, None))
        gates = gates._replace(functions=functions, unlimited=unlimited)
        after = cell(gates, states)
        output = after[0]
        if active is not None:
            mask = steps.operand(active)
            output = loops.where(mask, after[0], 0)
            after = [loops.where(mask, new, old) for new, old in zip(after, states, strict=True)]
        found.append(steps.results(after, [output]))
    y = _joined([of.outputs[0] for of in found], 1)
    finals = [_joined(parts, 0) for parts in zip(*(of.final for of in found), strict=True)]
    if not layout:
        return (y, *finals)
    return (loops.permute(y, (2, 0, 1, 3)), *(loops.permute(s, (1, 0, 2)) for s in finals))


def _joined(parts: Sequence[Expression], axis: int) -> Expression:
    return parts[0] if len(parts) == 1 else loops.join(parts, axis)


# ---------------------------------------------------------------- operands


def _shape(
    layer: Layer, inputs: RecurrentInputs[Any], *, direction: str, hidden_size: int | None, layout: int
) -> Shape:
    """Return the sizes; raises NotLowered where it is open whether the operands match."""
    directions = len(directions_of(direction))
    first, second, width = inputs.x.shape
    time, batch = (second, first) if layout else (first, second)
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
            raise NotLowered("whether the shapes of the operands match is open")
    if hidden_size is not None and hidden != hidden_size:
        raise NotLowered("whether the hidden size is that of the operands is open")
    return Shape(time, batch, hidden)


def _gates(
    layer: Layer, inputs: RecurrentInputs[Any], x: Expression, number: int, steps: Steps, shape: Shape,
    *, late_bias: bool,
) -> Gates:  # fmt: skip
    """Return the gates of one direction, without their functions."""
    hidden = shape.hidden
    w, r = _of_direction(inputs.w, number), _of_direction(inputs.r, number)
    sums = loops.contract(x, loops.permute(w, (1, 0)))
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
        [steps.operand(loops.permute(part, (1, 0))) for part in _parts(r, hidden, layer.gates)],
        biases, peepholes, (), (),
    )  # fmt: skip


def _of_direction(x: Expression, number: int) -> Expression:
    """Return the part of an operand that belongs to a direction."""
    return loops.reshape(loops.narrow(x, 0, number, 1), x.shape[1:])


def _parts(x: Expression, hidden: Size, count: int) -> list[Expression]:
    """Return the parts of an operand that belong to the hidden units of each gate."""
    return [loops.narrow(x, 0, n * hidden, hidden) for n in range(count)]


def _initial(x: Expression | None, number: int, shape: Shape, element: str) -> Expression:
    if x is None:
        return kernels.filled(element, 0, (1, shape.batch, shape.hidden))
    return loops.narrow(x, 0, number, 1)


def _active(lens: Expression | None, shape: Shape) -> Expression | None:
    """Return whether each step is one of each sequence; a length out of range is an error of the run."""
    if lens is None:
        return None
    lengths = loops.cast(lens, "int64")
    end = loops.apply("add", loops.sized("int64", shape.time), 1)
    place = loops.where(loops.apply("lt", lengths, 0), end, lengths)
    checked = loops.take(loops.count((shape.time + 1,), 0), place, 0)
    turn = loops.count((shape.time, 1, 1, 1), 0)
    return loops.apply("lt", turn, loops.reshape(checked, (1, 1, shape.batch, 1)))


# ---------------------------------------------------------------- activation functions


def function_of(named: Named, clip: float | None) -> Activation:
    """Return an activation function, whose input is limited by `clip`."""
    bound = recurrences.bound_of(clip)
    return lambda x: _applied(named, x if bound is None else kernels.limited(x, -bound, bound))


def _applied(named: Named, x: Expression) -> Expression:
    # the parameters that a function has are numbers
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
