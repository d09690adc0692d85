"""Momentum: a step of gradient descent that keeps some of the steps before."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families import optimizers
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, one_of, tensors

momentum = Operator(
    "Momentum",
    domain="ai.onnx.preview.training",
    summary="`V' = alpha V + beta G` and `X' = X - R V'`, or after Nesterov `X - R (G + alpha V')`, with "
    "`norm_coefficient X` added to G.",
)

T1 = Constraint("T1", tensors("double", "float"))
T2 = Constraint("T2", tensors("int64"))
T3 = Constraint("T3", tensors("double", "float"))

v1 = momentum.first(
    1,
    inputs=[
        Input("R", T1, "The learning rate, a scalar."),
        Input("T", T2, "How many steps have been made, a scalar; at 0 beta counts as 1."),
        Input(
            "inputs",
            T3,
            "All X, then their gradients G, then their momenta V.",
            variadic=True,
            heterogeneous=True,
        ),
    ],
    outputs=[Output("outputs", T3, "All new X, then their new V.", variadic=True, heterogeneous=True)],
    attributes=[
        Attribute("norm_coefficient", "float", "The weight of half the squared norm of X.", required=True),
        Attribute("beta", "float", "How much of the gradient is taken.", required=True),
        Attribute("mode", "string", "How V acts on X.", required=True, values=one_of("standard", "nesterov")),
        Attribute("alpha", "float", "How much of V is kept.", required=True),
    ],
)

PARTS = 3  # X, G, V


@v1.infer
def infer(r: TensorType, t: TensorType, /, *inputs: TensorType) -> tuple[TensorType, ...]:
    return optimizers.infer(r, t, inputs, PARTS)


@v1.evaluate
def evaluate(
    r: Array, t: Array, /, *inputs: Array, norm_coefficient: float, beta: float, mode: str, alpha: float
) -> tuple[Array, ...]:
    rate, taken = optimizers.number(r, "R"), beta if optimizers.number(t, "T") > 0 else 1.0

    def step(x: Array, g: Array, v: Array) -> tuple[Array, Array]:
        slope = norm_coefficient * x + g
        moving = alpha * v + taken * slope
        return x - rate * (slope + alpha * moving if mode == "nesterov" else moving), moving

    return optimizers.stepped(inputs, PARTS, step)


@momentum.examples
def examples() -> Iterator[Example]:
    # by hand: G + X is (4, 3), V becomes (1 + 1, 2 + 0.75), or at first (1 + 4, 2 + 3)
    settings: dict[str, Any] = {"norm_coefficient": 1.0, "alpha": 0.5, "beta": 0.25}
    for kind in (np.float32, np.float64):
        x, g, v = np.array([1, 2], kind), [3, 1], [2, 4]
        rate, one, later = kind(0.5), 1, [2, 2.75]
        yield Example(
            1, rate, one, x, g, v, **settings, mode="standard", outputs=2, expect=[[0, 0.625], later]
        )
        yield Example(
            1, rate, one, x, g, v, **settings, mode="nesterov", outputs=2, expect=[[-1.5, -0.1875], later]
        )
        yield Example(
            1, rate, 0, x, g, v, **settings, mode="standard", outputs=2, expect=[[-1.5, -0.5], [5, 5]]
        )
        two = [x, x[:1], g, g[:1], v, v[:1]]
        new = [0, 0.625]
        yield Example(
            1,
            rate,
            one,
            *two,
            **settings,
            mode="standard",
            outputs=4,
            expect=[new, new[:1], later, later[:1]],
        )
