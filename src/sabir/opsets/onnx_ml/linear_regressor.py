"""LinearRegressor: targets as linear functions of features."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.loops import Expression
from sabir.opsets.families.classification import classifier_kernels, classifiers
from sabir.opsets.typing import Array, Floats
from sabir.schema import Attribute, Constraint, Example, Operator, Output

linear_regressor = Operator("LinearRegressor", domain="ai.onnx.ml", summary="`X W^T + b`, transformed.")

T = Constraint("T", classifiers.FEATURE_TYPES)

v1 = linear_regressor.first(
    1,
    inputs=[classifiers.features_port(T)],
    outputs=[Output("Y", "tensor(float)", "Shape [N, targets].")],
    attributes=[
        Attribute("targets", "int", "The number of outputs for each row.", default=1),
        Attribute("intercepts", "floats", "b, one per target; 0 if absent."),
        Attribute("coefficients", "floats", "W, row by row: C weights for each target."),
        classifiers.POST_TRANSFORM,
    ],
)


@v1.infer
def infer(x: TensorType, /, *, coefficients: Floats, intercepts: Floats, targets: int) -> TensorType:
    batch, features = classifiers.batch(x), classifiers.feature_count(x)
    _check(classifiers.row_count(len(coefficients or ()), features, "coefficients"), intercepts, targets)
    return TensorType(classifiers.FLOAT, (batch, targets))


def _check(rows: int | None, intercepts: Floats, targets: int) -> None:
    """Raise InferenceError unless there is one row of coefficients, and one intercept, for each target."""
    if rows not in {None, targets} or len(intercepts or ()) not in {0, targets}:
        found = f"{rows} rows of coefficients and {len(intercepts or ())} intercepts"
        raise InferenceError(f"there are {found} for {targets} targets")


@v1.evaluate
def evaluate(
    x: Array, /, *, coefficients: Floats, intercepts: Floats, post_transform: str, targets: int
) -> Array:
    x = classifiers.rows(x)
    weights = classifiers.matrix(coefficients or (), x.shape[1], "coefficients")
    _check(len(weights), intercepts, targets)
    scores = classifiers.products(x, weights)
    if intercepts:
        scores += np.array(intercepts, np.float32)
    return classifiers.transformed(scores, post_transform).astype(np.float32)


@v1.lower
def lower(
    x: Expression, /, *, coefficients: Floats, intercepts: Floats, post_transform: str, targets: int
) -> Expression:
    rows = classifier_kernels.rows(x)
    weights = classifier_kernels.matrix(coefficients or (), rows.shape[1], rows.element)
    _check(len(weights), intercepts, targets)
    scores = classifier_kernels.products(rows, weights)
    scores = classifier_kernels.shifted(scores, np.array(intercepts or (), np.float32))
    return classifier_kernels.transformed(scores, post_transform)


@linear_regressor.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 2], [-3, 1]], f)
    one: dict[str, Any] = {"coefficients": [1.0, 0.5], "intercepts": [0.25]}
    for kind in (np.float32, np.float64, np.int32, np.int64):
        yield Example(1, x.astype(kind), **one, expect=[[[2.25], [-2.25]]])
    two: dict[str, Any] = {"coefficients": [1.0, 0, 0, 1], "targets": 2}
    yield Example(1, x, **two, expect=[x])
    yield Example(1, x[1], **two, expect=[x[1:]])
    softmax = [[0.26894143, 0.7310586], [0.01798621, 0.98201376]]  # onnxruntime
    yield Example(1, x, **two, post_transform="SOFTMAX", expect=[softmax])
    logistic = [[0.9046505], [0.09534946]]  # of 2.25 and -2.25
    yield Example(1, x, **one, post_transform="LOGISTIC", expect=[logistic])
    zero: dict[str, Any] = {
        "coefficients": [0.0, 0, 0, 1, 1, 1],
        "targets": 3,
        "post_transform": "SOFTMAX_ZERO",
    }
    weights = np.exp([[-np.inf, 2, 3], [-np.inf, 1, -2]])  # the score 0 stays 0
    yield Example(1, x, **zero, expect=[(weights / weights.sum(1, keepdims=True)).astype(f)])
    p = np.array([[0.5], [0.975], [0.0], [1.0], [1e-30], [2.0]])  # quantiles from scipy.stats.norm.ppf
    z = [[0.0], [1.959964], [-np.inf], [np.inf], [-11.464025], [np.nan]]
    yield Example(1, p, coefficients=[1.0], post_transform="PROBIT", expect=[z])
    yield Example(1, x[:0], **two, expect=[x[:0]])
