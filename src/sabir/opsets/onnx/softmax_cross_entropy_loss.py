"""SoftmaxCrossEntropyLoss: the negative logarithms of Softmax at labels."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.losses import loss_gradients, loss_kernels, losses
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Call, Constraint, Example, Operator, Output

softmax_cross_entropy_loss = Operator(
    "SoftmaxCrossEntropyLoss",
    summary="NegativeLogLikelihoodLoss of `LogSoftmax(scores)` over the classes, which is the second output.",
)

T = Constraint("T", FLOATS)

v12 = softmax_cross_entropy_loss.first(
    12,
    inputs=losses.inputs(T, ("scores", "Any numbers, (N, C, d1, ..., dk)."), "labels", "weights"),
    outputs=[
        Output("output", T, "A scalar; the shape of `labels` without reduction.", differentiable=True),
        Output("log_prob", T, "LogSoftmax of `scores` over C.", optional=True, differentiable=True),
    ],
    attributes=[
        Attribute("ignore_index", "int", "A class whose losses and weights count as 0; none by default."),
        losses.REDUCTION,
    ],
)
v13 = v12.widen(13, T=BFLOAT16)

CLASSES = 1  # the axis


@v12.infer
def infer(
    scores: TensorType, labels: TensorType, weights: TensorType | None = None, /, *, reduction: str
) -> tuple[TensorType, TensorType]:
    return losses.infer(scores, labels, weights, reduction), TensorType(scores.element, scores.shape)


@v12.evaluate
def evaluate(
    scores: Array, labels: Array, weights: Array | None = None, /, *, ignore_index: int | None, reduction: str
) -> tuple[Array, Array]:
    logs = losses.log_softmax(widened(scores), CLASSES)
    scale = None if weights is None else widened(weights)
    loss = losses.evaluate(logs, labels, scale, ignore_index, reduction)
    return loss.astype(scores.dtype, copy=False), logs.astype(scores.dtype, copy=False)


@v12.lower
def lower(
    scores: Expression, labels: Expression, weights: Expression | None = None, /, *,
    ignore_index: int | None, reduction: str,
) -> tuple[Expression, Expression]:  # fmt: skip
    logs = loss_kernels.log_softmax(scores, CLASSES)
    return loss_kernels.loss(logs, labels, weights, ignore_index, reduction), logs


@v12.body
def body(
    b: Builder,
    scores: Value,
    labels: Value,
    weights: Value | None = None,
    /,
    *,
    ignore_index: int | None,
    reduction: str,
    call: Call,
) -> Value | tuple[Value, Value]:
    logs = losses.emit_log_softmax(b, scores, CLASSES)
    loss = losses.emit(b, logs, labels, weights, ignore_index, reduction)
    return (loss, logs) if call.wants(1) else loss


@v13.gradient
def gradient(
    g: Gradient, scores: Value, labels: Value, weights: Value | None = None, /, *,
    ignore_index: int | None, reduction: str,
) -> tuple[Value, None, None]:  # fmt: skip
    dy, d_logs = (*g.dys, None)[:2]
    logs = g.y(1)
    parts = [] if d_logs is None else [d_logs]
    if dy is not None:
        options: dict[str, Any] = {"ignored": ignore_index, "reduction": reduction}
        parts.append(loss_gradients.gradient(g, dy, logs, labels, weights, **options))
    d = parts[0] if len(parts) == 1 else g.Sum(*parts)
    return g.Sub(d, g.Mul(g.Exp(logs), g.ReduceSum(d, [CLASSES], keepdims=1))), None, None


@softmax_cross_entropy_loss.examples
def examples() -> Iterator[Example]:
    f = np.float32
    scores = np.log(np.array([[[1, 2], [3, 2], [4, 4]], [[3, 1], [0.5, 6], [0.5, 1]]], f))  # sums: 8, 8, 4, 8
    shares = [
        [[1 / 8, 1 / 4], [3 / 8, 1 / 4], [1 / 2, 1 / 2]],
        [[3 / 4, 1 / 8], [1 / 8, 3 / 4], [1 / 8, 1 / 8]],
    ]
    logs = np.log(shares).astype(f)
    labels, weights = np.array([[2, 1], [0, 2]]), [0.25, 0.5, 2]
    plain = -np.log([[1 / 2, 1 / 4], [3 / 4, 1 / 8]]).astype(f)
    scaled = plain * np.array([[2, 0.5], [0.25, 2]], f)
    for opset in (12, 13):
        yield Example(opset, scores, labels, reduction="none", outputs=2, expect=[plain, logs])
        yield Example(opset, scores, labels, weights, reduction="none", expect=[scaled])
        yield Example(opset, scores, labels, outputs=2, expect=[plain.mean(), logs])
        yield Example(opset, scores, labels.astype(np.int32), weights, expect=[f(scaled.sum() / 4.75)])
        yield Example(opset, scores, labels, weights, reduction="sum", expect=[scaled.sum()])
        for ignored in (-1, 1, 7):
            marked = np.where(labels == 1, ignored, labels)
            rest = f((plain.sum() - plain[0, 1]) / 3)
            yield Example(opset, scores, marked, ignore_index=ignored, outputs=2, expect=[rest, logs])
            rest = f((scaled.sum() - scaled[0, 1]) / 4.25)
            yield Example(opset, scores, marked, weights, ignore_index=ignored, expect=[rest])
        far = np.array([[1000, 0], [0, -1000]], np.float64)
        yield Example(opset, far, [1, 1], reduction="none", expect=[[1000.0, 1000.0]])
        many = np.full((1000, 2), 3, np.float16)  # the sum of the losses exceeds float16
        yield Example(opset, many, np.zeros(1000, np.int64), expect=[np.float16(np.log(2))], tolerance=1e-3)
        yield Example(opset, np.zeros((0, 3), f), np.zeros(0, np.int64), reduction="sum", expect=[f(0)])
    brain = ml_dtypes.bfloat16
    yield Example(
        13, scores.astype(brain), labels, reduction="none", tolerance=2e-2, expect=[plain.astype(brain)]
    )
