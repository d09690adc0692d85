"""The gradient of one direction of an LSTM layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.opsets.families.indexing.move_gradients import zeros_of
from sabir.opsets.families.recurrence.recurrence_gradients import given
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.families.recurrence.recurrence_gradients import Carried, Direction, Gradients
    from sabir.opsets.families.recurrence.recurrence_slopes import Slopes


class _Gates(NamedTuple):
    """A value for each gate, in the order of the operator."""

    i: Value
    o: Value
    f: Value
    g: Value


class _Cells(NamedTuple):
    """The cell state before and after each step."""

    before: Value
    after: Value


class _Factors(NamedTuple):
    """What a step multiplies: to the gates, from h to the cell, and from the cell to the one before."""

    gates: Value
    to_cell: Value
    kept: Value


def of_direction(d: Direction, functions: Sequence[Slopes], *, coupled: bool) -> Gradients:
    """Return the gradients of the inputs of one direction.

    A step multiplies what the cell and the output receive by factors that are known for all steps before:
    peepholes, like everything else in a gate, only change these.
    """
    g, states, weights = d.g, d.states, d.inputs.r
    product = g.MatMul(states, g.Transpose(weights, perm=[1, 0]))
    sums = _Gates(*_split(d, g.Add(d.of_inputs(2), product), len(_Gates._fields)))
    cells = _cells(d, sums, functions, coupled=coupled)
    factors = _factors(d, _with_peepholes(d, sums, cells), cells, functions, coupled=coupled)

    def step(b: Builder, carried: Sequence[Value], items: Sequence[Value]) -> Carried:
        (dh, dc), (factors, to_cell, kept, *ended) = carried, items
        dc = b.Add(dc, b.Mul(dh, to_cell))
        gates = b.Mul(b.Concat(dc, dh, dc, dc, axis=-1), factors)
        before = b.MatMul(gates, weights)
        if ended:
            before = b.Add(before, b.Mul(dh, ended[0]))
        return [before, b.Mul(dc, kept)], [gates]

    read = [d.active(factors.gates), d.active(factors.to_cell), d.active(factors.kept, 1), *d.kept()]
    dh, dc, gates = d.back(read, step, 1)
    d_p = None if d.inputs.p is None else _of_peepholes(d, gates, cells)
    return d.finish(gates, [dh, dc], of_r=gates, d_r=d.product(gates, states), p=d_p)


def _cells(d: Direction, sums: _Gates, functions: Sequence[Slopes], *, coupled: bool) -> _Cells:
    """Return the cell states, which the outputs of the layer do not have."""
    g, (of_gates, of_input, _) = d.g, functions
    new, first = of_input.value(sums.g), given(d.inputs.c)
    if d.inputs.p is not None:
        after = _cells_with_peepholes(d, sums._replace(g=new), of_gates, coupled=coupled)
        return _Cells(d.before(after, first), after)
    i = of_gates.value(sums.i)
    kept = g.Sub(1, i) if coupled else of_gates.value(sums.f)

    def step(b: Builder, carried: Sequence[Value], items: Sequence[Value]) -> Carried:
        c = b.Add(b.Mul(carried[0], items[0]), items[1])
        return [c], [b.Identity(c)]

    after = d.forward([first], [d.active(kept, 1), d.active(g.Mul(i, new))], step, 1)[1]
    return _Cells(d.before(after, first), after)


def _cells_with_peepholes(d: Direction, sums: _Gates, function: Slopes, *, coupled: bool) -> Value:
    """Return the cell states after each step; `sums.g` has the new values."""
    p_i, _, p_f = _peepholes(d)

    def step(b: Builder, carried: Sequence[Value], items: Sequence[Value]) -> Carried:
        (c,), (sum_i, sum_f, new, *ended), of_gates = carried, items, function.inside(b)
        i = of_gates.value(b.Add(sum_i, b.Mul(c, p_i)))
        kept = b.Sub(of_gates.number(1), i) if coupled else of_gates.value(b.Add(sum_f, b.Mul(c, p_f)))
        after = b.Add(b.Mul(c, kept), b.Mul(i, new))
        if ended:
            after = b.Add(after, b.Mul(b.Sub(c, after), ended[0]))
        return [after], [b.Identity(after)]

    return d.forward([given(d.inputs.c)], [sums.i, sums.f, sums.g, *d.kept()], step, 1)[1]


def _with_peepholes(d: Direction, sums: _Gates, cells: _Cells) -> _Gates:
    if d.inputs.p is None:
        return sums
    g, (p_i, p_o, p_f) = d.g, _peepholes(d)
    return sums._replace(
        i=g.Add(sums.i, g.Mul(cells.before, p_i)),
        o=g.Add(sums.o, g.Mul(cells.after, p_o)),
        f=g.Add(sums.f, g.Mul(cells.before, p_f)),
    )


def _factors(
    d: Direction, sums: _Gates, cells: _Cells, functions: Sequence[Slopes], *, coupled: bool
) -> _Factors:
    g, (of_gates, of_input, of_cell) = d.g, functions
    i, new = of_gates.value(sums.i), of_input.value(sums.g)
    kept = g.Sub(1, i) if coupled else of_gates.value(sums.f)
    to = _Gates(
        g.Mul(g.Sub(new, cells.before) if coupled else new, of_gates.slope(sums.i)),
        g.Mul(of_cell.value(cells.after), of_gates.slope(sums.o)),
        zeros_of(g, g.Shape(sums.f), sums.f) if coupled else g.Mul(cells.before, of_gates.slope(sums.f)),
        g.Mul(i, of_input.slope(sums.g)),
    )
    to_cell = g.Mul(of_gates.value(sums.o), of_cell.slope(cells.after))
    if d.inputs.p is not None:
        p_i, p_o, p_f = _peepholes(d)
        to_cell = g.Add(to_cell, g.Mul(to.o, p_o))
        kept = g.Add(kept, g.Add(g.Mul(to.i, p_i), g.Mul(to.f, p_f)))
    return _Factors(g.Concat(*to, axis=-1), to_cell, kept)


def _of_peepholes(d: Direction, gates: Value, cells: _Cells) -> Value:
    g, of = d.g, _Gates(*_split(d, gates, len(_Gates._fields)))
    pairs = ((of.i, cells.before), (of.o, cells.after), (of.f, cells.before))
    return g.Concat(*(g.ReduceSum(g.Mul(*pair), [0, 1], keepdims=0) for pair in pairs), axis=0)


def _peepholes(d: Direction) -> tuple[Value, Value, Value]:
    i, o, f = _split(d, given(d.inputs.p), 3)
    return i, o, f


def _split(d: Direction, gates: Value, count: int) -> tuple[Value, ...]:
    return as_results(d.g.op("Split", gates, axis=-1, num_outputs=count, outputs=count))
