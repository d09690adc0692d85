"""The gradient of linear attention: its states are computed again, and passed through backward.

All tensors are float matrices: queries (group, key size), keys (1, key size), values (1, value size), states
(key size, value size), with the batch and the heads as leading axes, and the steps before these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.elements import FLOAT

if TYPE_CHECKING:
    from sabir.ir import Builder, Graph, Value
    from sabir.opsets.typing import Gradient

_SHAPE = (None,) * 4
_TRANSPOSED = (0, 1, 3, 2)


class Steps(NamedTuple):
    """The operands of all steps."""

    query: Value
    key: Value
    value: Value
    decay: Value | None
    rate: Value | None

    def present(self) -> dict[str, Value]:
        """Return those that a call has, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def matrices(b: Builder, x: Value, *sizes: Value) -> Value:
    """Return (batch, steps, width) as float32 matrices (steps, batch, heads, rows, columns)."""
    parts = b.Reshape(b.Cast(x, to=FLOAT.number), b.Concat(b.Shape(x, start=0, end=2), *sizes, axis=0))
    return b.Transpose(parts, perm=[1, 0, 2, 3, 4])


def ints(b: Builder, *values: int) -> Value:
    """Return integers as a constant."""
    return b.initializer("ints", np.array(values, np.int64))


def operands(
    b: Builder, inputs: tuple[Value, Value, Value, Value | None, Value | None], heads: tuple[int, int]
) -> Steps:
    """Return the matrices of all steps."""
    q, k, v, decay, beta = inputs
    group, each, one = (ints(b, n) for n in (heads[0] // heads[1], heads[1], 1))
    size, width = (b.Div(b.Shape(x, start=2), each) for x in (k, v))
    return Steps(
        matrices(b, q, each, group, size),
        matrices(b, k, each, one, size),
        matrices(b, v, each, one, width),
        None if decay is None else matrices(b, decay, each, b.Div(b.Shape(decay, start=2), each), one),
        None if beta is None else matrices(b, beta, b.Shape(beta, start=2), one, one),
    )


def gradients(
    g: Gradient, steps: Steps, first: Value, dy: Value, d_last: Value
) -> tuple[Value, dict[str, Value]]:
    """Return the gradients of the first state and of the operands of all steps, in their shapes."""
    names = [*steps.present()]
    operands = list(steps.present().values())
    _, before = g.Scan(first, *operands, outputs=2, num_scan_inputs=len(operands), body=_forward(g, names))
    scanned = [*operands, before, dy]
    found: Any = g.Scan(
        d_last, *scanned, outputs=1 + len(names), num_scan_inputs=len(scanned), body=_backward(g, names),
        scan_input_directions=(1,) * len(scanned), scan_output_directions=(1,) * len(names),
    )  # fmt: skip
    return found[0], dict(zip(names, found[1:], strict=True))


def _forward(g: Gradient, names: list[str]) -> Graph:
    """Return the graph of one step, which outputs the state before it."""

    def build(b: Builder) -> None:
        state = b.input("state", FLOAT, _SHAPE)
        step = _Step.of(b, state, {n: b.input(n, FLOAT, _SHAPE) for n in names})
        after = b.Add(step.decayed, b.Mul(_transposed(b, step.operands["key"]), step.new))
        b.output(after, "after", FLOAT, _SHAPE)
        b.output(b.Identity(state), "before", FLOAT, _SHAPE)

    return g.subgraph(build, name="forward_step")


def _backward(g: Gradient, names: list[str]) -> Graph:
    """Return the graph of one step backward: from the gradient of the state after it to that before it."""

    def build(b: Builder) -> None:
        d_after = b.input("d_after", FLOAT, _SHAPE)
        operands = {n: b.input(n, FLOAT, _SHAPE) for n in names}
        state, dy = b.input("before", FLOAT, _SHAPE), b.input("dy", FLOAT, _SHAPE)
        d_before, found = _Step.of(b, state, operands).gradients(b, d_after, dy)
        b.output(d_before, "d_before", FLOAT, _SHAPE)
        for name in names:
            b.output(found[name], f"d_{name}", FLOAT, _SHAPE)

    return g.subgraph(build, name="backward_step")


class _Step(NamedTuple):
    """The values of one step."""

    operands: dict[str, Value]
    state: Value
    factor: Value | None
    decayed: Value
    error: Value  # what the state lacks of the value
    new: Value

    @classmethod
    def of(cls, b: Builder, state: Value, operands: dict[str, Value]) -> _Step:
        factor = b.Exp(operands["decay"]) if "decay" in operands else None
        decayed = state if factor is None else b.Mul(state, factor)
        error = new = operands["value"]
        if "rate" in operands:
            error = b.Sub(error, b.MatMul(operands["key"], decayed))
            new = b.Mul(error, operands["rate"])
        return cls(operands, state, factor, decayed, error, new)

    def gradients(self, b: Builder, d_after: Value, dy: Value) -> tuple[Value, dict[str, Value]]:
        """Return the gradients of the state before the step, and of the operands."""
        query, key = self.operands["query"], self.operands["key"]
        after = b.Add(self.decayed, b.Mul(_transposed(b, key), self.new))
        found = {"query": b.MatMul(dy, _transposed(b, after))}
        d = b.Add(d_after, b.MatMul(_transposed(b, query), dy))
        d_new = b.MatMul(key, d)
        found["key"] = b.MatMul(self.new, _transposed(b, d))
        if "rate" in self.operands:
            found["rate"] = _fitted(b, b.Mul(d_new, self.error), self.operands["rate"])
            d_new = b.Mul(d_new, self.operands["rate"])
            found["key"] = b.Sub(found["key"], b.MatMul(d_new, _transposed(b, self.decayed)))
            d = b.Sub(d, b.Mul(_transposed(b, key), d_new))
        found["value"] = d_new
        if self.factor is not None:
            found["decay"] = _fitted(b, b.Mul(b.Mul(d, self.state), self.factor), self.operands["decay"])
            d = b.Mul(d, self.factor)
        return d, found


def _transposed(b: Builder, x: Value) -> Value:
    return b.Transpose(x, perm=_TRANSPOSED)


def _fitted(b: Builder, d: Value, x: Value) -> Value:
    """Sum over the axes along which `x` was repeated."""
    large, small = b.Shape(d), b.Shape(x)
    axes = b.Squeeze(b.NonZero(b.Not(b.Equal(large, small))), [0])
    return b.ReduceSum(d, axes, keepdims=1, noop_with_empty_axes=1)
