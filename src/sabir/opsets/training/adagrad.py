"""Adagrad: a step of gradient descent whose rate decreases where gradients have been large."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.loops import Expression
from sabir.opsets.families.optimizers import optimizer_kernels, optimizers
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator

adagrad = Operator(
    "Adagrad",
    domain="ai.onnx.preview.training",
    summary="`H' = H + G^2`, `X' = X - r G / (sqrt(H') + epsilon)`; `r` is `R / (1 + T decay_factor)`, and "
    "`norm_coefficient X` is added to G.",
)

v1 = adagrad.first(
    1,
    inputs=optimizers.inputs(
        "The first learning rate, a scalar.",
        "The number of previous steps, a scalar.",
        "All X, then their gradients G, then their sums of squares H.",
    ),
    outputs=optimizers.outputs("All new X, then their new H."),
    attributes=[
        optimizers.NORM_COEFFICIENT,
        Attribute("decay_factor", "float", "How fast the learning rate decreases with T.", default=0.0),
        optimizers.EPSILON,
    ],
)

PARTS = 3  # X, G, H


v1.infer(optimizers.infer_groups(PARTS))


@v1.evaluate
def evaluate(
    r: Array, t: Array, /, *inputs: Array, norm_coefficient: float, decay_factor: float, epsilon: float
) -> tuple[Array, ...]:
    rate = optimizers.number(r, "R") / (1 + optimizers.number(t, "T") * optimizers.single(decay_factor))
    penalty, least = optimizers.single(norm_coefficient), optimizers.single(epsilon)

    def step(x: Array, g: Array, h: Array) -> tuple[Array, Array]:
        slope = penalty * x + g
        squares = h + np.square(slope)
        return x - rate * slope / (np.sqrt(squares) + least), squares

    return optimizers.stepped(inputs, PARTS, step)


@v1.lower
def lower(
    r: Expression, t: Expression, /, *inputs: Expression, norm_coefficient: float, decay_factor: float,
    epsilon: float,
) -> tuple[Expression, ...]:  # fmt: skip
    rate, count = optimizer_kernels.scalar(r), optimizer_kernels.scalar(t)
    decay = loops.apply("add", loops.apply("mul", count, optimizers.single(decay_factor)), 1)
    rate = loops.apply("div", rate, decay)
    penalty, least = optimizers.single(norm_coefficient), optimizers.single(epsilon)

    def step(x: Expression, g: Expression, h: Expression) -> tuple[Expression, ...]:
        slope = optimizer_kernels.slope(x, g, penalty)
        squares = loops.apply("add", h, loops.apply("mul", slope, slope))
        return optimizer_kernels.descended(x, rate, slope, squares, least), squares

    return optimizer_kernels.stepped(inputs, PARTS, step)


@adagrad.examples
def examples() -> Iterator[Example]:
    # by hand: G + X is (4, 3), H becomes (25, 9), the rate 0.5 / (1 + 4 * 0.25)
    settings: dict[str, Any] = {"norm_coefficient": 1.0, "decay_factor": 0.25, "epsilon": 0.0}
    for kind in (np.float32, np.float64):
        x, g, h = np.array([1, 2], kind), np.array([3, 1], kind), np.array([9, 0], kind)
        new, squares = np.array([0.8, 1.75], kind), np.array([25, 9], kind)
        yield Example(1, 0.5, 4, x, g, h, **settings, outputs=2, expect=[new, squares])
        two = [*(a for t in zip((x, g, h), (x[None], g[None], h[None]), strict=True) for a in t)]
        yield Example(
            1, kind(0.5), [4], *two, **settings, outputs=4, expect=[new, new[None], squares, squares[None]]
        )
    zero = np.zeros(2, np.float32)
    yield Example(1, 0.5, 0, zero + 1, zero, zero, outputs=2, expect=[zero + 1, zero])
