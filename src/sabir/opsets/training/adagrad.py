"""Adagrad: a step of gradient descent whose rate falls where gradients have been large."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families import optimizers
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

adagrad = Operator(
    "Adagrad",
    domain="ai.onnx.preview.training",
    summary="`H' = H + G^2`, `X' = X - r G / (sqrt(H') + epsilon)`; `r` is `R / (1 + T decay_factor)`, and "
    "`norm_coefficient X` is added to G.",
)

T1 = Constraint("T1", tensors("double", "float"))
T2 = Constraint("T2", tensors("int64"))
T3 = Constraint("T3", tensors("double", "float"))

v1 = adagrad.first(
    1,
    inputs=[
        Input("R", T1, "The first learning rate, a scalar."),
        Input("T", T2, "How many steps have been made, a scalar."),
        Input(
            "inputs",
            T3,
            "All X, then their gradients G, then their sums of squares H.",
            variadic=True,
            heterogeneous=True,
        ),
    ],
    outputs=[Output("outputs", T3, "All new X, then their new H.", variadic=True, heterogeneous=True)],
    attributes=[
        Attribute("norm_coefficient", "float", "The weight of half the squared norm of X.", default=0.0),
        Attribute("decay_factor", "float", "How fast the learning rate falls with T.", default=0.0),
        Attribute("epsilon", "float", "Added to the divisor, against division by 0.", default=1e-06),
    ],
)

PARTS = 3  # X, G, H


@v1.infer
def infer(r: TensorType, t: TensorType, /, *inputs: TensorType) -> tuple[TensorType, ...]:
    return optimizers.infer(r, t, inputs, PARTS)


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
