"""Adam: a step of gradient descent along running means of gradients and of their squares."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.loops import Expression
from sabir.opsets.families.optimizers import optimizer_kernels, optimizers
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator

adam = Operator(
    "Adam",
    domain="ai.onnx.preview.training",
    summary="`V' = alpha V + (1 - alpha) G`, `H' = beta H + (1 - beta) G^2`, `X' = X - r V' / (sqrt(H') + "
    "epsilon)`; r comes from R and T, `norm_coefficient X` is added to G, and X' shrinks by "
    "`norm_coefficient_post`.",
)

v1 = adam.first(
    1,
    inputs=optimizers.inputs(
        "The learning rate, a scalar.",
        "The number of previous steps, a scalar; from 1 on r corrects the bias of the means.",
        "All X, then their gradients G, means V, means of squares H.",
    ),
    outputs=optimizers.outputs("All new X, then new V, then new H."),
    attributes=[
        optimizers.EPSILON,
        Attribute("norm_coefficient_post", "float", "The share of X lost after the step.", default=0.0),
        optimizers.NORM_COEFFICIENT,
        Attribute("beta", "float", "The factor of the previous H.", default=0.999),
        Attribute("alpha", "float", "The factor of the previous V.", default=0.9),
    ],
)

PARTS = 4  # X, G, V, H


v1.infer(optimizers.infer_groups(PARTS))


@v1.evaluate
def evaluate(
    r: Array, t: Array, /, *inputs: Array, alpha: float, beta: float, epsilon: float, **norms: float
) -> tuple[Array, ...]:
    a, b, least = (optimizers.single(value) for value in (alpha, beta, epsilon))
    penalty = optimizers.single(norms["norm_coefficient"])
    loss = optimizers.single(norms["norm_coefficient_post"])
    rate, count = np.float64(optimizers.number(r, "R")), optimizers.number(t, "T")
    if count > 0:
        rate *= np.sqrt(1 - b**count) / (1 - a**count)

    def step(x: Array, g: Array, v: Array, h: Array) -> tuple[Array, Array, Array]:
        slope = penalty * x + g
        mean = a * v + (1 - a) * slope
        squares = b * h + (1 - b) * np.square(slope)
        moved = x - rate * mean / (np.sqrt(squares) + least)
        return (1 - loss) * moved, mean, squares

    return optimizers.stepped(inputs, PARTS, step)


@v1.lower
def lower(
    r: Expression, t: Expression, /, *inputs: Expression, alpha: float, beta: float, epsilon: float,
    **norms: float,
) -> tuple[Expression, ...]:  # fmt: skip
    a, b, least = (optimizers.single(value) for value in (alpha, beta, epsilon))
    penalty = optimizers.single(norms["norm_coefficient"])
    loss = optimizers.single(norms["norm_coefficient_post"])
    rate, count = optimizer_kernels.scalar(r), optimizer_kernels.scalar(t)

    def bias(factor: float) -> Expression:
        power = loops.apply("pow", loops.number("double", factor), count)
        return loops.apply("sub", loops.number("double", 1), power)

    corrected = loops.apply("div", loops.apply("mul", rate, loops.apply("sqrt", bias(b))), bias(a))
    rate = loops.where(loops.apply("gt", count, 0), corrected, rate)

    def step(x: Expression, g: Expression, v: Expression, h: Expression) -> tuple[Expression, ...]:
        slope = optimizer_kernels.slope(x, g, penalty)
        mean = loops.apply("add", loops.apply("mul", v, a), loops.apply("mul", slope, 1 - a))
        square = loops.apply("mul", loops.apply("mul", slope, slope), 1 - b)
        squares = loops.apply("add", loops.apply("mul", h, b), square)
        moved = optimizer_kernels.descended(x, rate, mean, squares, least)
        return loops.apply("mul", moved, 1 - loss), mean, squares

    return optimizer_kernels.stepped(inputs, PARTS, step)


@adam.examples
def examples() -> Iterator[Example]:
    # by hand: G + X is (4, 3); V becomes (2, 1.5), H (8, 4.5); then X - R V / sqrt(H), and half of it
    settings: dict[str, Any] = {
        "norm_coefficient": 1.0,
        "norm_coefficient_post": 0.5,
        "epsilon": 0.0,
        "alpha": 0.5,
        "beta": 0.5,
    }
    root = np.sqrt(0.5)
    for kind in (np.float32, np.float64):
        x, g, zero = [1, 2], [3, 1], np.zeros(2, kind)
        state = [[2, 1.5], [8, 4.5]]
        start = (np.array([1 - 0.1 * root, 2 - 0.1 * root]) / 2).astype(kind)
        rate = kind(0.1)
        yield Example(1, rate, 0, x, g, zero, zero, **settings, outputs=3, expect=[start, *state])
        # after one step the correction is sqrt(1/2) / (1/2), and the step 0.1 again
        later = (np.array([0.9, 1.9]) / 2).astype(kind)
        yield Example(1, rate, [1], x, g, zero, zero, **settings, outputs=3, expect=[later, *state])
    x, g = np.array([[1.0]], np.float32), np.array([[2.0]], np.float32)
    zero = np.zeros((1, 1), np.float32)  # the defaults: V is 0.1 G, H 0.001 G^2, and the first step R long
    first = [x - 0.01, 0.1 * g, [[0.004]]]
    yield Example(1, 0.01, 1, x, g, zero, zero, outputs=3, tolerance=1e-6, expect=first)
    two = [x, x[0], g, g[0], zero, zero[0], zero, zero[0]]
    yield Example(1, 0.01, 1, *two, outputs=6, tolerance=1e-6, expect=[e for f in first for e in (f, f[0])])
