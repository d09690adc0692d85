"""FusedMatMulActivation: FusedMatMul and an activation."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers.fused_activations import OF_PRODUCTS, Activation
from sabir.opsets.families.products.fused_products import (
    ACTIVATION_PARAMETERS,
    TRANSPOSED_BATCHES,
    FusedProduct,
    declare,
    product_of,
)
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator, one_of

fused_mat_mul_activation = Operator(
    "FusedMatMulActivation",
    domain="com.microsoft",
    summary="An activation of `alpha * A' @ B'`; A' and B' are A and B, whose matrices or batches may be "
    "transposed.",
    body_opset=18,
    lacks=("Activations along an axis (Softmax and its like): onnxruntime's CPU provider refuses them too.",),
)

v1 = declare(
    fused_mat_mul_activation,
    *TRANSPOSED_BATCHES,
    Attribute("activation", "string", "The activation.", required=True, values=one_of(*OF_PRODUCTS)),
    *ACTIVATION_PARAMETERS,
    Attribute(
        "activation_axis", "int", "The axis of an activation along an axis; no activation here has one."
    ),
)


def _parts(
    *,
    activation: str,
    activation_alpha: float | None,
    activation_beta: float | None,
    activation_gamma: float | None,
    activation_axis: int | None,
    **rest: Any,
) -> tuple[FusedProduct, Activation]:
    parameters = {"alpha": activation_alpha, "beta": activation_beta, "gamma": activation_gamma}
    return product_of(**rest), Activation.of_attributes(activation, **parameters)


@v1.infer
def infer(a: TensorType, b: TensorType, /, **attributes: Any) -> TensorType:
    product, _ = _parts(**attributes)
    return product.infer(a, b)


@v1.evaluate
def evaluate(a: Array, b: Array, /, **attributes: Any) -> Array:
    product, activation = _parts(**attributes)
    return activation.compute(product.compute(a, b)).astype(a.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, w: Value, /, **attributes: Any) -> Value:
    product, activation = _parts(**attributes)
    return activation.emit(b, product.emit(b, x, w))


@fused_mat_mul_activation.examples
def examples() -> Iterator[Example]:
    a, w = [[1, -2], [0.5, 1]], [[1.5, 0], [-1, 2]]  # products 3.5, -4, -0.25 and 2; all by hand
    for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        call = np.array(a, kind), np.array(w, kind)
        yield Example(1, *call, activation="Relu", expect=[np.array([[3.5, 0], [0, 2]], kind)])
    left, right = np.array(a, np.float32), np.array(w, np.float32)
    leaking: dict[str, Any] = {"activation": "LeakyRelu", "activation_alpha": 0.25}
    yield Example(1, left.T, right, transA=1, alpha=2.0, **leaking, expect=[[[7, -2], [-0.125, 4]]])
    stack = np.stack([right.T, right.T, right.T])
    rows = np.stack([left] * 3).transpose(1, 0, 2)  # transposed batches
    hard: dict[str, Any] = {"activation": "HardSigmoid", "activation_alpha": 0.25, "activation_beta": 0.5}
    y = np.array([[[1, 0], [0.4375, 1]]] * 3, np.float32)
    yield Example(1, rows, stack, transBatchA=1, transB=1, **hard, expect=[y])
