"""Momentum: a step of gradient descent that keeps part of the previous steps."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.loops import Expression
from sabir.opsets.families.optimizers import optimizer_kernels, optimizers
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator, one_of

momentum = Operator(
    "Momentum",
    domain="ai.onnx.preview.training",
    summary="`V' = alpha V + beta G` and `X' = X - R V'`, or by Nesterov `X - R (G + alpha V')`, with "
    "`norm_coefficient X` added to G.",
)

v1 = momentum.first(
    1,
    inputs=optimizers.inputs(
        "The learning rate, a scalar.",
        "The number of previous steps, a scalar; at 0 beta is taken as 1.",
        "All X, then their gradients G, then their momenta V.",
    ),
    outputs=optimizers.outputs("All new X, then their new V."),
    attributes=[
        Attribute("norm_coefficient", "float", "The weight of half the squared norm of X.", required=True),
        Attribute("beta", "float", "The factor of the gradient.", required=True),
        Attribute("mode", "string", "How V acts on X.", required=True, values=one_of("standard", "nesterov")),
        Attribute("alpha", "float", "The factor of the previous V.", required=True),
    ],
)

PARTS = 3  # X, G, V


v1.infer(optimizers.infer_groups(PARTS))


@v1.evaluate
def evaluate(
    r: Array, t: Array, /, *inputs: Array, norm_coefficient: float, beta: float, mode: str, alpha: float
) -> tuple[Array, ...]:
    rate, factor = optimizers.number(r, "R"), beta if optimizers.number(t, "T") > 0 else 1.0

    def step(x: Array, g: Array, v: Array) -> tuple[Array, Array]:
        slope = norm_coefficient * x + g
        moving = alpha * v + factor * slope
        return x - rate * (slope + alpha * moving if mode == "nesterov" else moving), moving

    return optimizers.stepped(inputs, PARTS, step)


@v1.lower
def lower(
    r: Expression, t: Expression, /, *inputs: Expression, norm_coefficient: float, beta: float, mode: str,
    alpha: float,
) -> tuple[Expression, ...]:  # fmt: skip
    rate, count = optimizer_kernels.scalar(r), optimizer_kernels.scalar(t)
    factor = loops.where(loops.apply("gt", count, 0), loops.number("double", beta), 1)

    def step(x: Expression, g: Expression, v: Expression) -> tuple[Expression, ...]:
        slope = optimizer_kernels.slope(x, g, norm_coefficient)
        moving = loops.apply("add", loops.apply("mul", v, alpha), loops.apply("mul", slope, factor))
        ahead = loops.apply("add", slope, loops.apply("mul", moving, alpha))
        taken = ahead if mode == "nesterov" else moving
        return loops.apply("sub", x, loops.apply("mul", taken, rate)), moving

    return optimizer_kernels.stepped(inputs, PARTS, step)


@momentum.examples
def examples() -> Iterator[Example]:
    # by hand: G + X is (4, 3), V becomes (1 + 1, 2 + 0.75), or at first (1 + 4, 2 + 3)
    settings: dict[str, Any] = {"norm_coefficient": 1.0, "alpha": 0.5, "beta": 0.25}
    for kind in (np.float32, np.float64):
        x, g, v = np.array([1, 2], kind), [3, 1], [2, 4]
        rate, later = kind(0.5), [2, 2.75]
        for mode, new in (("standard", [0, 0.625]), ("nesterov", [-1.5, -0.1875])):
            yield Example(1, rate, 1, x, g, v, **settings, mode=mode, outputs=2, expect=[new, later])
        standard: dict[str, Any] = {**settings, "mode": "standard"}
        yield Example(1, rate, 0, x, g, v, **standard, outputs=2, expect=[[-1.5, -0.5], [5, 5]])
        two, new = [x, x[:1], g, g[:1], v, v[:1]], [0, 0.625]
        yield Example(1, rate, 1, *two, **standard, outputs=4, expect=[new, new[:1], later, later[:1]])
