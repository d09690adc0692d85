"""SVMRegressor: a value by support vectors."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Dim, TensorType
from sabir.loops import Expression
from sabir.opsets.families.classification import classifier_kernels, classifiers, support_kernels, supports
from sabir.opsets.families.classification.classifier_kernels import known_size
from sabir.opsets.typing import Array, Floats
from sabir.schema import Attribute, Constraint, Example, Operator, Output, at_least

svm_regressor = Operator(
    "SVMRegressor",
    domain="ai.onnx.ml",
    summary="`sum(coefficients * kernel(X, support_vectors)) + rho`, or with `one_class` its sign.",
)

T = Constraint("T", classifiers.FEATURE_TYPES)

v1 = svm_regressor.first(
    1,
    inputs=[classifiers.features_port(T)],
    outputs=[Output("Y", "tensor(float)", "Shape [N, 1].")],
    attributes=[
        Attribute("rho", "floats", "What is added."),
        Attribute("coefficients", "floats", "One weight per support vector, or else per feature."),
        Attribute("n_supports", "int", "Support vectors; 0: linear.", default=0, values=at_least(0)),
        Attribute("one_class", "int", "1: the output is 1 where the value is positive, else -1.", default=0),
        Attribute("support_vectors", "floats", "[n_supports, C], row by row."),
        classifiers.POST_TRANSFORM,
        *supports.KERNEL_ATTRIBUTES,
    ],
)


@v1.infer
def infer(x: TensorType, /, *, coefficients: Floats, n_supports: int, support_vectors: Floats) -> TensorType:
    batch = classifiers.batch(x)
    _check(classifiers.feature_count(x), len(coefficients or ()), n_supports, len(support_vectors or ()))
    return TensorType(classifiers.FLOAT, (batch, 1))


def _check(features: Dim, coefficients: int, supports: int, numbers: int) -> None:
    """Raise InferenceError for a wrong number of support vectors or coefficients."""
    needed = supports or features
    if isinstance(needed, int) and coefficients != needed:
        raise InferenceError(f"there are {coefficients} coefficients, and must be {needed}")
    if supports:
        vectors = classifiers.row_count(numbers, features, "support_vectors")
        if vectors not in {None, supports}:
            raise InferenceError(f"there are {vectors} support vectors, and n_supports is {supports}")


@v1.evaluate
def evaluate(
    x: Array, /, *, coefficients: Floats, n_supports: int, post_transform: str, rho: Floats, **others: Any
) -> Array:
    x, weights = classifiers.rows(x), np.array(coefficients or (), np.float32)
    flat = others["support_vectors"] or ()
    _check(x.shape[1], len(weights), n_supports, len(flat))
    if n_supports:
        vectors = classifiers.matrix(flat, x.shape[1], "support_vectors")
        kernel, parameters = others["kernel_type"], others["kernel_params"]
        values = supports.combined(x, vectors, weights[:, None], kernel, parameters)
    else:
        values = (x @ weights)[:, None]
    values += np.float32((rho or [0.0])[0])
    if others["one_class"]:
        return np.where(values > 0, np.float32(1), np.float32(-1))
    return classifiers.transformed(values, post_transform).astype(np.float32)


@v1.lower
def lower(
    x: Expression,
    /,
    *,
    coefficients: Floats,
    n_supports: int,
    post_transform: str,
    rho: Floats,
    **others: Any,
) -> Expression:
    rows, flat = classifier_kernels.rows(x), others["support_vectors"] or ()
    width = known_size(rows.shape[1])
    _check(width, len(coefficients or ()), n_supports, len(flat))
    if n_supports:
        vectors = classifier_kernels.matrix(flat, rows.shape[1], "double")
        rows = support_kernels.kernel(rows, vectors, others["kernel_type"], others["kernel_params"])
    weights = classifier_kernels.matrix(coefficients or (), rows.shape[1], rows.element)
    values = classifier_kernels.products(rows, weights)
    values = loops.apply("add", values, float(np.float32((rho or [0.0])[0])))
    if others["one_class"]:
        return loops.where(loops.apply("gt", values, 0), loops.number("float", 1), -1)
    return classifier_kernels.transformed(values, post_transform)


@svm_regressor.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 2], [3, -1]], f)
    model: dict[str, Any] = {
        "coefficients": [1.0, -1],
        "rho": [0.25],
        "support_vectors": [1.0, 0, 0, 1],
        "n_supports": 2,
        "kernel_params": [0.5, 1, 3.0],
    }
    kernels = {  # results from onnxruntime
        "LINEAR": [-0.75, 4.25],
        "POLY": [-4.375, 15.75],
        "RBF": [0.01745583, 0.33058155],
        "SIGMOID": [0.19112062, 0.77449715],
    }
    for kernel, values in kernels.items():
        yield Example(1, x, **model, kernel_type=kernel, expect=[np.array(values, f)[:, None]])
    yield Example(1, x, **model, one_class=1, expect=[[[-1], [1]]])
    yield Example(1, x[1].astype(np.int64), **model, expect=[[[4.25]]])
    logistic = 1 / (1 + np.exp([[0.75], [-4.25]]))
    yield Example(1, x.astype(float), **model, post_transform="LOGISTIC", expect=[logistic.astype(f)])
    yield Example(1, x, coefficients=[1.0, 0.5], rho=[0.5], expect=[[[2.5], [3]]])
    yield Example(1, x[:0], **model, expect=[np.zeros((0, 1), f)])
