"""An LSTM whose input and state are quantized by their range, as a Scan of standard operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.elements import FLOAT, INT64
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.quantization.quantized_products import write_floats
from sabir.opsets.families.recurrence.lstm_steps import GATES, LAYER
from sabir.opsets.families.recurrence.recurrence_gradients import given, slice_type
from sabir.opsets.families.recurrence.recurrence_shapes import directions_of
from sabir.opsets.families.recurrence.recurrence_slopes import Slopes
from sabir.opsets.families.recurrence.recurrences import bound_of, named_of
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import shape_of, squeezed, unsqueezed
from sabir.schema import Unconvertible, as_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value

_GATES_WITH_PEEPHOLES = 3


class Weights(NamedTuple):
    """A quantized matrix of one direction, with one scale and zero point, or one for each column."""

    matrix: Value
    scale: Value
    zero: Value

    def multiplied(self, b: Builder, x: Value) -> Value:
        """Return the product of floats, quantized by their range, as floats."""
        q, scale, zero = as_results(b.DynamicQuantizeLinear(x))
        return write_floats(b, b.MatMulInteger(q, self.matrix, zero, self.zero), scale, self.scale, None)


@dataclass(frozen=True, slots=True)
class DynamicLstm:
    """The inputs of the layer as values of a graph; absent ones are None."""

    b: Builder
    x: Value
    w: Value
    r: Value
    bias: Value | None
    lens: Value | None
    h: Value | None
    c: Value | None
    p: Value | None
    quantization: Sequence[Value]  # the scales and zero points of W, then those of R

    def written(
        self, *, direction: str, clip: float | None, input_forget: int, activations: Sequence[str] | None,
        activation_alpha: Sequence[float] | None, activation_beta: Sequence[float] | None, **_: Any,
    ) -> tuple[Value, Value, Value]:  # fmt: skip
        """Return Y and the final states; raises Unconvertible where the hidden size is unknown."""
        named = named_of(LAYER, activations, activation_alpha, activation_beta, direction=direction)
        bounds = (bound_of(clip), bound_of(clip), None)
        results = [
            self._direction(
                number,
                [Slopes(self.b, FLOAT, *pair) for pair in zip(named[number], bounds, strict=True)],
                backwards=backwards,
                coupled=input_forget != 0,
            )
            for number, backwards in enumerate(directions_of(direction))
        ]
        y, h, c = zip(*results, strict=True)
        return self._joined(y, 1), self._joined(h, 0), self._joined(c, 0)

    def _joined(self, parts: Sequence[Value], axis: int) -> Value:
        """Return the results of the directions along a new axis."""
        wide = [unsqueezed(self.b, part, [axis]) for part in parts]
        return wide[0] if len(wide) == 1 else self.b.op("Concat", *wide, axis=axis)

    def _direction(
        self, number: int, functions: Sequence[Slopes], *, backwards: bool, coupled: bool
    ) -> tuple[Value, Value, Value]:
        b = self.b
        w_scale, w_zero, r_scale, r_zero = (self._part(v, number) for v in self.quantization)
        gates = self._gates(number, Weights(self._part(self.w, number), w_scale, w_zero), backwards=backwards)
        step = _Step(
            Weights(self._part(self.r, number), r_scale, r_zero),
            _hidden(self.r),
            None if self.p is None else self._part(self.p, number),
            functions,
            coupled,
        )
        states = [self._state(s, number) for s in (self.h, self.c, self.h)]
        scanned = [gates, *self._active()]
        made = b.op(
            "Scan", *states, *scanned, num_scan_inputs=len(scanned), outputs=4,
            body=b.subgraph(lambda inner: step.written(inner, states, scanned), name="step"),
        )  # fmt: skip
        _, c, h, y = as_results(made)
        return self._reversed(y) if backwards else y, h, c

    def _gates(self, number: int, weights: Weights, *, backwards: bool) -> Value:
        """Return the sums of the gates without those of the states, for all steps."""
        x, b = self._reversed(self.x) if backwards else self.x, self.b
        gates = weights.multiplied(b, self._used(x))
        if self.bias is None:
            return gates
        own = b.Reshape(self._part(self.bias, number), as_input(b, "shape", [2, -1]))
        return b.Add(gates, b.ReduceSum(own, as_input(b, "axes", [0]), keepdims=0))

    def _part(self, v: Value, number: int) -> Value:
        """Return the part of a direction, without the axis of the directions."""
        return self.b.Gather(v, self.b.initializer("direction", np.array(number, np.int64)), axis=0)

    def _reversed(self, x: Value) -> Value:
        """Return the steps of each sequence in reverse."""
        if self.lens is None:
            last, first = as_input(self.b, "last", [-1]), as_input(self.b, "first", [np.iinfo(np.int64).min])
            return self.b.Slice(x, last, first, as_input(self.b, "axes", [0]), last)
        return self.b.ReverseSequence(x, self._lengths(), time_axis=0, batch_axis=1)

    def _lengths(self) -> Value:
        return self.b.Cast(given(self.lens), to=INT64.number)

    def _times(self) -> Value:
        """Return the number of each step, (time, 1)."""
        b = self.b
        zero, one = (b.initializer("number", np.array(n, np.int64)) for n in (0, 1))
        return unsqueezed(b, b.Range(zero, squeezed(b, b.Shape(self.x, end=1), [0]), one), [1])

    def _used(self, x: Value) -> Value:
        """Return X with zeros after the last step of the longest sequence: zeros do not change its range."""
        if self.lens is None:
            return x
        b = self.b
        longest = b.ReduceMax(self._lengths(), keepdims=0)
        used = unsqueezed(b, b.Less(self._times(), longest), [2])
        return b.Where(used, x, Numbers(b, FLOAT)(0))

    def _active(self) -> list[Value]:
        """Return whether each sequence has each step, (time, batch, 1), if sequences end."""
        if self.lens is None:
            return []
        return [unsqueezed(self.b, self.b.Less(self._times(), self._lengths()), [2])]

    def _state(self, state: Value | None, number: int) -> Value:
        """Return an initial state, (batch, hidden)."""
        if state is not None:
            return self._part(state, number)
        hidden = as_input(self.b, "hidden", [_hidden(self.r)])
        shape = self.b.Concat(self.b.Shape(self.x, start=1, end=2), hidden, axis=0)
        return self.b.ConstantOfShape(shape, value=np.zeros(1, np.float32))


def _hidden(r: Value) -> int:
    """Return the size of h."""
    _, hidden, _ = shape_of("R", r)
    if not isinstance(hidden, int):
        raise Unconvertible("the hidden size is unknown, and the gates are parts of that size")
    return hidden


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of one direction in the body of a Scan."""

    weights: Weights
    hidden: int
    peepholes: Value | None
    functions: Sequence[Slopes]
    coupled: bool

    def written(self, b: Builder, states: Sequence[Value], scanned: Sequence[Value]) -> list[Value]:
        """Return h, c, the last h of each sequence, and the output; the first h is 0 after the end."""
        h, c, last = (b.input("state", slice_type(v, 0)) for v in states)
        gates, *active = (b.input("item", slice_type(v, 1)) for v in scanned)
        new_h, new_c = self._states(b, b.Add(self.weights.multiplied(b, h), gates), c)
        if not active:
            return [new_h, new_c, new_h, new_h]
        (now,) = active
        masked = b.Where(now, new_h, Numbers(b, FLOAT)(0))
        return [masked, b.Where(now, new_c, c), b.Where(now, new_h, last), masked]

    def _states(self, b: Builder, sums: Value, c: Value) -> tuple[Value, Value]:
        of_gates, of_input, of_cell = (function.inside(b) for function in self.functions)
        sizes = as_input(b, "sizes", [self.hidden] * GATES)
        i, o, f, g = as_results(b.op("Split", sums, sizes, axis=1, outputs=GATES))
        from_c = self._from_cell(b)
        if from_c:
            i, f = (b.Add(v, b.Mul(p, c)) for v, p in ((i, from_c[0]), (f, from_c[2])))
        i = of_gates.value(i)
        kept = b.Sub(Numbers(b, FLOAT)(1), i) if self.coupled else of_gates.value(f)
        new = b.Add(b.Mul(kept, c), b.Mul(i, of_input.value(g)))
        if from_c:
            o = b.Add(o, b.Mul(from_c[1], new))
        return b.Mul(of_gates.value(o), of_cell.value(new)), new

    def _from_cell(self, b: Builder) -> tuple[Value, ...]:
        """Return the peepholes of the gates i, o, f."""
        if self.peepholes is None:
            return ()
        sizes = as_input(b, "sizes", [self.hidden] * _GATES_WITH_PEEPHOLES)
        return as_results(b.op("Split", self.peepholes, sizes, axis=0, outputs=_GATES_WITH_PEEPHOLES))
