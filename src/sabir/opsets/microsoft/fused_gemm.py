"""FusedGemm: Gemm and an activation."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import UnsupportedError
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS, widened
from sabir.opsets.families.numbers.fused_activations import OF_PRODUCTS, Activation
from sabir.opsets.families.products import scaled_products
from sabir.opsets.families.products.fused_products import ACTIVATION_PARAMETERS
from sabir.opsets.typing import Array
from sabir.schema import (
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
)

_FLOATS_ONLY = "an activation of integers is not supported"

fused_gemm = Operator(
    "FusedGemm",
    domain="com.microsoft",
    summary="An activation of `alpha * A' @ B' + beta * C`; A' and B' are A and B, transposed if `transA`, "
    "`transB`.",
    body_opset=18,
    lacks=("An activation of integers: onnxruntime's CPU provider refuses it too.",),
)

T = Constraint("T", FLOATS, LARGE_INTEGERS)

v1 = fused_gemm.first(
    1,
    inputs=[
        Input("A", T, "Shape (M, K), or (K, M) with `transA`.", differentiable=True),
        Input("B", T, "Shape (K, N), or (N, K) with `transB`.", differentiable=True),
        Input(
            "C", T, "The summand, of a shape that broadcasts to (M, N).", optional=True, differentiable=True
        ),
    ],
    outputs=[Output("Y", T, "Shape (M, N).", differentiable=True)],
    attributes=[
        Attribute("transA", "int", "1: A is transposed first.", default=0),
        Attribute("transB", "int", "1: B is transposed first.", default=0),
        Attribute("alpha", "float", "The factor of the product.", default=1.0),
        Attribute("beta", "float", "The factor of C; with 0, C is not read.", default=1.0),
        Attribute(
            "activation", "string", "The activation; without it there is none.", values=one_of(*OF_PRODUCTS)
        ),
        *ACTIVATION_PARAMETERS,
    ],
)


def _activation(
    *,
    activation: str | None,
    activation_alpha: float | None,
    activation_beta: float | None,
    activation_gamma: float | None,
    **rest: Any,
) -> tuple[Activation, dict[str, Any]]:
    """Return the activation, and the attributes of the product."""
    found = Activation.of_attributes(
        activation, alpha=activation_alpha, beta=activation_beta, gamma=activation_gamma
    )
    return found, rest


@v1.infer
def infer(a: TensorType, b: TensorType, c: TensorType | None = None, /, **attributes: Any) -> TensorType:
    _, product = _activation(**attributes)
    return scaled_products.infer(a, b, c, transA=product["transA"], transB=product["transB"])


@v1.evaluate
def evaluate(a: Array, b: Array, c: Array | None = None, /, **attributes: Any) -> Array:
    activation, product = _activation(**attributes)
    if a.dtype.kind not in "iu":
        y = scaled_products.evaluate(widened(a), widened(b), None if c is None else widened(c), **product)
        return activation.compute(y).astype(a.dtype, copy=False)
    if activation.name:
        raise UnsupportedError(_FLOATS_ONLY)
    return scaled_products.evaluate(a, b, c, **product)


@v1.body
def body(b: Builder, x: Value, w: Value, c: Value | None = None, /, **attributes: Any) -> Value:
    activation, product = _activation(**attributes)
    kinds = [v.type.element for v in (x, w) if isinstance(v.type, TensorType) and v.type.element.number]
    if activation.name and not any(kind.is_float for kind in kinds):
        raise Unconvertible("the element type is unknown, or integers: " + _FLOATS_ONLY)
    return activation.emit(b, b.Gemm(x, w, c, **product))


@fused_gemm.examples
def examples() -> Iterator[Example]:
    a, b, c = [[1.0, -2.0, 0.5]], [[1.0, 0.5, -1.0], [2.0, 0.0, 1.0], [4.0, -1.0, 1.0]], [0.5, 0.0, 0.25]
    for kind in (np.float32, np.float64, np.float16):  # A @ B = [-1, 0, -2.5], by hand
        call = np.array(a, kind), np.array(b, kind), np.array(c, kind)
        yield Example(1, *call, activation="Relu", expect=[np.zeros((1, 3), kind)])
        leaking = np.array([[-0.25, 0, -1.125]], kind)
        yield Example(
            1, *call, activation="LeakyRelu", activation_alpha=0.5, expect=[leaking], tolerance=2e-3
        )
    call = np.array(a, np.float32), np.array(b, np.float32)
    for name in OF_PRODUCTS:
        parameters: dict[str, Any] = {
            "activation_alpha": 0.75,
            "activation_beta": 0.375,
            "activation_gamma": 1.25,
        }
        yield Example(1, *call, np.array(c, np.float32), activation=name, beta=-2.0, **parameters)
    yield Example(1, *call, expect=[[[-1, 0, -2.5]]])
    yield Example(1, call[0].T, call[1].T, transA=1, transB=1, alpha=-1.0, activation="Relu")
    yield Example(1, *call, np.float32(2), activation="Tanh")
    yield Example(1, *call, np.array([[1]], np.float32), activation="Sigmoid", beta=0.5)
    yield Example(1, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), activation="Softplus")
    yield Example(1, np.array([[2, -3]], np.int32), [[1], [2]], [[1]], expect=[[[-3]]])
    yield Example(1, np.array([[2, 3]], np.uint64), [[1], [2]], expect=[[[8]]])
