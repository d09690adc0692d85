"""One step of an LSTM on arrays, with any product of the state by its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.opsets.families.recurrence import recurrences
from sabir.schema import Attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.opsets.typing import Array

GATES = 4
ATTRIBUTES = (
    Attribute("input_forget", "int", "1: the forget gate is one minus the input gate.", default=0),
    Attribute(
        "activations",
        "strings",
        "Of i, o, f, of g, and of c, for each direction; Sigmoid, Tanh, Tanh by default.",
        values=recurrences.ACTIVATIONS,
    ),
)
LAYER = recurrences.Layer(GATES, 2, ("Sigmoid", "Tanh", "Tanh"))


def limited(
    functions: Sequence[recurrences.Activation], clip: float | None
) -> tuple[recurrences.Activation, ...]:
    """Return the activation functions of the gates, the input and the cell; that of the cell has no limit."""
    of_gates, of_input, of_cell = functions
    return recurrences.limited(of_gates, clip), recurrences.limited(of_input, clip), of_cell


def step_of(
    product: Callable[[Array], Array], p: Array | None, functions: Sequence[recurrences.Activation], *,
    coupled: bool,
) -> recurrences.RecurrentStep:  # fmt: skip
    """Return the step of one direction; without peepholes the three gates are computed together.

    `product` returns a new array (batch, 4 hidden), the product of h (batch, hidden) by the weights of the
    gates i, o, f, g.
    """
    of_gates, of_input, of_cell = functions

    def step(gates: Array, h: Array, c: Array) -> tuple[Array, Array]:
        sums, size = product(h), h.shape[1]
        sums += gates
        i, o, f = (sums[:, k * size : (k + 1) * size] for k in range(GATES - 1))
        if p is None:
            y = of_gates(sums[:, : (GATES - 1) * size])
            i, o, f = y[:, :size], y[:, size : 2 * size], y[:, 2 * size :]
        else:
            i, f = of_gates(i + p[:size] * c), of_gates(f + p[2 * size :] * c)
        g = of_input(sums[:, (GATES - 1) * size :])
        g *= i
        c = (1 - i if coupled else f) * c
        c += g
        if p is not None:
            o = of_gates(o + p[size : 2 * size] * c)
        h = of_cell(c)
        h *= o
        return h, c

    return step
