"""GatedRMSNorm: groups of elements divided by their root mean square, scaled, and multiplied by a gate."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.normalization.normalization import normalized_by_squares
from sabir.opsets.families.normalization.normalization_graphs import by_root_mean_square
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.shapes.ranks import check_alike, check_least_rank, check_rank, hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Attribute, Constraint, Example, Input, Operator, Output, one_of, tensors

gated_rms_norm = Operator(
    "GatedRMSNorm",
    domain="com.microsoft",
    summary="`X / sqrt(mean(X ** 2) + epsilon) * scale * activation(gate)`, over each group of elements.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))

v1 = gated_rms_norm.first(
    1,
    inputs=[
        Input(
            "X", T, "A tensor of rank 1 or more, its last dimension one or more groups.", differentiable=True
        ),
        Input("scale", T, "One factor for each element of a group.", differentiable=True),
        Input("gate", T, "The gate before its activation, in the shape of X.", differentiable=True),
    ],
    outputs=[Output("Y", T, "The shape of X.", differentiable=True)],
    attributes=[
        Attribute(
            "activation",
            "string",
            "'silu' or 'swish': `g * sigmoid(g)`; 'sigmoid': `sigmoid(g)`.",
            default="silu",
            values=one_of("silu", "swish", "sigmoid"),
        ),
        Attribute("epsilon", "float", "Added to the mean square, so that it is not 0.", default=1e-5),
    ],
)


@v1.infer
def infer(x: TensorType, scale: TensorType, gate: TensorType, /) -> TensorType:
    check_least_rank("X", x, 1)
    check_rank("scale", scale, 1)
    check_alike(["X", "gate"], [x, gate])
    size, group = (t.shape[-1] if t.shape else None for t in (x, scale))
    if isinstance(size, int) and isinstance(group, int) and (not group or size % group):
        raise InferenceError(f"{size} elements cannot be divided into groups of {group}, the size of `scale`")
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, scale: Array, gate: Array, /, *, activation: str, epsilon: float) -> Array:
    hold(infer, x, scale, gate)
    rows = normalized_by_squares(widened(x).reshape(x.size // scale.size, scale.size), epsilon).rows
    rows *= widened(scale)
    wide = widened(gate)
    with np.errstate(over="ignore"):
        factor = sigmoid(wide)
    if activation != "sigmoid":
        factor *= wide
    return (rows.reshape(x.shape) * factor).astype(x.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, scale: Value, gate: Value, /, *, activation: str, epsilon: float) -> Value:
    """The last dimension is split into groups, where it is not known to be one."""
    wide, factor, opening = (halves.widened(b, v) for v in (x, scale, gate))
    normal = by_root_mean_square(b, _in_groups(b, wide, scale), [-1], epsilon)
    y = b.Mul(normal.y, factor)
    y = y if _is_one_group(x, scale) else b.Reshape(y, b.Shape(x), allowzero=1)
    opened = b.Sigmoid(opening)
    if activation != "sigmoid":
        opened = b.Mul(opening, opened)
    return halves.rounded(b, b.Mul(y, opened), x)


def _in_groups(b: Builder, x: Value, scale: Value) -> Value:
    if _is_one_group(x, scale):
        return x
    group = b.Shape(scale)
    count = b.Div(b.Shape(x, start=-1), group)
    return b.Reshape(x, b.Concat(b.Shape(x, end=-1), count, group, axis=0), allowzero=1)


def _is_one_group(x: Value, scale: Value) -> bool:
    shapes = [v.type.shape if isinstance(v.type, TensorType) else None for v in (x, scale)]
    size, group = (shape[-1] if shape else None for shape in shapes)
    return size is not None and size == group


@gated_rms_norm.examples
def examples() -> Iterator[Example]:
    log3 = np.log(3)  # its logistic function is 3/4
    x, scale = np.array([[1, 7, 3, -4], [6, 8, 0, 0]]), np.array([2, 10])
    gate = np.full((2, 4), log3)
    y = np.array([
        [0.4, 14, 6 / np.sqrt(12.5), -40 / np.sqrt(12.5)],
        [12 / np.sqrt(50), 80 / np.sqrt(50), 0, 0],
    ])
    for kind, rough in ((np.float32, 1e-5), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
        inputs = [a.astype(kind) for a in (x, scale, gate)]
        for activation, factor in (("silu", 0.75 * log3), ("swish", 0.75 * log3), ("sigmoid", 0.75)):
            results: dict[str, Any] = {"expect": [(y * factor).astype(kind)], "tolerance": rough}
            yield Example(1, *inputs, activation=activation, epsilon=1e-6, **results)
    f = np.float32
    yield Example(
        1,
        np.array([[3, 4]], f),
        np.array([1, 1], f),
        np.array([[0, 0]], f),
        activation="sigmoid",
        epsilon=12.5,
        expect=[[[0.3, 0.4]]],
    )
    yield Example(1, np.array([3, 4], f), np.array([1, 1], f), np.array([1, 2], f))
    yield Example(1, np.array([3, 4], f), np.array([2], f), np.array([-200, 2], f))
    empty = np.zeros((0, 4), f)
    yield Example(1, empty, np.array([1, 2], f), empty, expect=[empty])
