"""NegativeLogLikelihoodLoss: the negative log-probabilities of labels."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.losses import loss_gradients, loss_kernels, losses
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Operator, Output

negative_log_likelihood_loss = Operator(
    "NegativeLogLikelihoodLoss",
    summary="`-input[n, target[n]] * weight[target[n]]` for each label, then `reduction`.",
)

T = Constraint("T", FLOATS)

v12 = negative_log_likelihood_loss.first(
    12,
    inputs=losses.inputs(T, ("input", "Log-probabilities, (N, C, d1, ..., dk)."), "target", "weight"),
    outputs=[Output("loss", T, "A scalar; the shape of `target` without reduction.", differentiable=True)],
    attributes=[
        Attribute("ignore_index", "int", "A class whose losses and weights count as 0; none by default."),
        losses.REDUCTION,
    ],
)
v13 = v12.restate(13, "States which inputs and outputs are differentiable.")
v22 = v13.widen(22, T=BFLOAT16)


@v12.infer
def infer(
    x: TensorType, target: TensorType, weight: TensorType | None = None, /, *, reduction: str
) -> TensorType:
    return losses.infer(x, target, weight, reduction)


@v12.evaluate
def evaluate(
    x: Array, target: Array, weight: Array | None = None, /, *, ignore_index: int | None, reduction: str
) -> Array:
    scale = None if weight is None else widened(weight)
    return losses.evaluate(widened(x), target, scale, ignore_index, reduction).astype(x.dtype, copy=False)


@v12.lower
def lower(
    x: Expression, target: Expression, weight: Expression | None = None, /, *,
    ignore_index: int | None, reduction: str,
) -> Expression:  # fmt: skip
    return loss_kernels.loss(x, target, weight, ignore_index, reduction)


@v12.body
def body(
    b: Builder,
    x: Value,
    target: Value,
    weight: Value | None = None,
    /,
    *,
    ignore_index: int | None,
    reduction: str,
) -> Value:
    return losses.emit(b, x, target, weight, ignore_index, reduction)


@v13.gradient
def gradient(
    g: Gradient, x: Value, target: Value, weight: Value | None = None, /, *,
    ignore_index: int | None, reduction: str,
) -> tuple[Value, None, None]:  # fmt: skip
    dx = loss_gradients.gradient(g, g.dy, x, target, weight, ignored=ignore_index, reduction=reduction)
    return dx, None, None


@negative_log_likelihood_loss.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 2], [2, 2], [3, 2]], [[0, 1], [2, 2], [1, 2]]], f)
    target, weight = np.array([[2, 1], [0, 2]]), np.array([0.25, 0.5, 2], f)
    plain, scaled = [[-3, -2], [0, -2]], np.array([[-6, -1], [0, -4]], f)  # by hand
    for opset in (12, 13, 22):
        yield Example(opset, x, target, reduction="none", expect=[plain])
        yield Example(opset, x, target, weight, reduction="none", expect=[scaled])
        yield Example(opset, x, target, expect=[f(-7 / 4)])
        yield Example(opset, x, target, reduction="sum", expect=[f(-7)])
        yield Example(opset, x, target.astype(np.int32), weight, expect=[f(-11 / 4.75)])
        yield Example(opset, x, target, weight, reduction="sum", expect=[f(-11)])
        # an ignored target counts for nothing, whether or not there is such a class
        for ignored in (-1, 2, 5):
            marked = np.array([[ignored, 1], [0, ignored]])
            left = [[0, -2], [0, 0]]
            yield Example(opset, x, marked, ignore_index=ignored, reduction="none", expect=[left])
            yield Example(opset, x, marked, ignore_index=ignored, expect=[f(-2 / 2)])
            yield Example(opset, x, marked, weight, ignore_index=ignored, expect=[f(-1 / 0.75)])
            yield Example(opset, x, marked, weight, ignore_index=ignored, reduction="sum", expect=[f(-1)])
        yield Example(opset, x, np.full((2, 2), -1), ignore_index=-1, expect=[f(np.nan)])
        yield Example(opset, np.log(x[:, :, 1].astype(np.float64)), [1, 0], expect=[-np.log(2) / 2])
        many = np.full((1000, 1), -100, np.float16)  # their sum exceeds float16
        yield Example(opset, many, np.zeros(1000, np.int64), expect=[100])
        yield Example(opset, np.zeros((0, 3), f), np.zeros(0, np.int64), reduction="sum", expect=[f(0)])
    brain = ml_dtypes.bfloat16
    yield Example(
        22, x.astype(brain), target, weight.astype(brain), reduction="none", expect=[scaled.astype(brain)]
    )
