"""The gradient of one direction of a GRU layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.families.recurrence.recurrence_gradients import Carried, Direction, Gradients
    from sabir.opsets.families.recurrence.recurrence_slopes import Slopes
    from sabir.opsets.typing import Gradient

_GATES = 3


class _Sums(NamedTuple):
    """The arguments of the activation functions."""

    z: Value
    r: Value
    new: Value


def of_early_reset(d: Direction, functions: Sequence[Slopes]) -> Gradients:
    """Return the gradients where the reset gate multiplies the state before R."""
    g, states = d.g, d.states
    weights, inputs = _parts(g, d.inputs.r, 0), _parts(g, d.of_inputs(2), -1)
    z, r = (g.Add(x, _times(g, states, w)) for x, w in zip(inputs[:2], weights[:2], strict=True))
    reset = functions[0].value(r)
    inner = g.Mul(reset, states)
    update = _of_update(d, functions, _Sums(z, r, g.Add(inputs[2], _times(g, inner, weights[2]))))
    to_r = g.Mul(states, functions[0].slope(r))

    def step(b: Builder, carried: Sequence[Value], items: Sequence[Value]) -> Carried:
        (dh,), (z, to_z, to_new, to_r, reset) = carried, items
        d_z, d_new = b.Mul(dh, to_z), b.Mul(dh, to_new)
        d_inner = b.MatMul(d_new, weights[2])
        d_r = b.Mul(d_inner, to_r)
        through = b.Add(b.MatMul(d_z, weights[0]), b.MatMul(d_r, weights[1]))
        direct = b.Add(b.Mul(dh, z), b.Mul(d_inner, reset))
        return [b.Add(direct, through)], [b.Concat(d_z, d_r, d_new, axis=-1)]

    dh, gates = d.back([*update, to_r, reset], step, 1)
    d_r = g.Concat(*map(d.product, _parts(g, gates, -1), (states, states, inner)), axis=0)
    return d.finish(gates, [dh], of_r=gates, d_r=d_r)


def of_late_reset(d: Direction, functions: Sequence[Slopes]) -> Gradients:
    """Return the gradients where the reset gate multiplies the product of R and the state, plus its bias."""
    g, states = d.g, d.states
    inputs = _parts(g, d.of_inputs(1), -1)
    recurrent = _times(g, states, d.inputs.r)
    if d.inputs.b is not None:
        recurrent = g.Add(recurrent, as_results(g.op("Split", d.inputs.b, num_outputs=2, outputs=2))[1])
    z, r, inner = _parts(g, recurrent, -1)
    z, r = g.Add(inputs[0], z), g.Add(inputs[1], r)
    reset = functions[0].value(r)
    z, to_z, to_new = _of_update(d, functions, _Sums(z, r, g.Add(inputs[2], g.Mul(reset, inner))))
    to_r = g.Mul(g.Mul(to_new, inner), functions[0].slope(r))

    def step(b: Builder, carried: Sequence[Value], items: Sequence[Value]) -> Carried:
        (dh,), (factors, z) = carried, items
        products = b.Mul(b.Concat(dh, dh, dh, axis=-1), factors)
        return [b.Add(b.Mul(dh, z), b.MatMul(products, d.inputs.r))], [products, b.Identity(dh)]

    dh, products, dhs = d.back([g.Concat(to_z, to_r, g.Mul(to_new, reset), axis=-1), z], step, 2)
    gates = g.Concat(*_parts(g, products, -1)[:2], g.Mul(dhs, to_new), axis=-1)
    return d.finish(gates, [dh], of_r=products, d_r=d.product(products, states))


def _of_update(d: Direction, functions: Sequence[Slopes], sums: _Sums) -> tuple[Value, Value, Value]:
    """Return the update gate, and the factors of the gradient of h in it and in the sum of the new values."""
    g, (of_gates, of_new) = d.g, functions
    z = of_gates.value(sums.z)
    to_z = g.Mul(g.Sub(d.states, of_new.value(sums.new)), of_gates.slope(sums.z))
    to_new = g.Mul(g.Sub(1, z), of_new.slope(sums.new))
    return d.active(z, 1), d.active(to_z), d.active(to_new)


def _parts(g: Gradient, gates: Value, axis: int) -> tuple[Value, ...]:
    return as_results(g.op("Split", gates, axis=axis, num_outputs=_GATES, outputs=_GATES))


def _times(g: Gradient, states: Value, weights: Value) -> Value:
    return g.MatMul(states, g.Transpose(weights, perm=[1, 0]))
