"""BiasSoftmax: Softmax of a tensor and a bias, such as the mask of attention scores."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.normalization import flattening
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.shapes.ranks import check_broadcast, hold
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output

bias_softmax = Operator(
    "BiasSoftmax",
    domain="com.microsoft",
    summary="Exponentials of `data + bias`, normalised to the sum 1 over all dimensions from `axis` on.",
    body_opset=18,
)

T = Constraint("T", FLOATS)

v1 = bias_softmax.first(
    1,
    inputs=[
        Input("data", T, "A tensor of any rank.", differentiable=True),
        Input("bias", T, "A tensor that broadcasts to the data.", differentiable=True),
    ],
    outputs=[Output("output", T, "The shape of the data.", differentiable=True)],
    attributes=[
        Attribute("axis", "int", "The first dimension to normalise over.", default=1),
        Attribute(
            "is_inner_broadcast",
            "int",
            "Which dimensions of the data the bias is repeated along: 1: those before `axis`, 0: the first."
            " The shapes say it too.",
            required=True,
        ),
    ],
)


@v1.infer
def infer(data: TensorType, bias: TensorType, /, *, axis: int) -> TensorType:
    check_broadcast("bias", bias, data.shape)
    return flattening.infer_split(data, axis=axis)


@v1.evaluate
def evaluate(data: Array, bias: Array, /, *, axis: int, is_inner_broadcast: int) -> Array:
    """The shapes say along which dimensions the bias is repeated."""
    hold(infer, data, bias, axis=axis)
    return flattening.over_rows(_softmax, widened(data) + widened(bias), axis).astype(data.dtype, copy=False)


def _softmax(rows: Array, /, *, axis: int) -> Array:
    y = np.exp(rows - rows.max(axis=axis, keepdims=True, initial=-np.inf))
    y /= summed(y, axis, keepdims=True)
    return y


@v1.body
def body(b: Builder, data: Value, bias: Value, /, *, axis: int) -> Value:
    total = b.Add(halves.widened(b, data), halves.widened(b, bias))
    rank = data.type.rank if isinstance(data.type, TensorType) else None
    if axis == -1 or (rank is not None and axis == rank - 1):
        return halves.rounded(b, b.Softmax(total, axis=-1), data)
    rows = b.Softmax(b.Flatten(total, axis=axis), axis=-1)
    return halves.rounded(b, b.Reshape(rows, b.Shape(data), allowzero=1), data)


@bias_softmax.examples
def examples() -> Iterator[Example]:
    x = np.log([[[[1, 2], [3, 6]], [[1, 1], [5, 9]]]])  # (1, 2, 2, 2)
    mask = np.log([[[[1, 2]]]])
    last = np.array([[[[1 / 5, 4 / 5], [3 / 15, 12 / 15]], [[1 / 3, 2 / 3], [5 / 23, 18 / 23]]]])
    for kind, rough in ((np.float32, 1e-6), (np.float64, 1e-12), (np.float16, 2e-3)):
        call, y = (x.astype(kind), mask.astype(kind)), last.astype(kind)
        yield Example(1, *call, axis=3, is_inner_broadcast=1, expect=[y], tolerance=rough)
        yield Example(1, *call, axis=-1, is_inner_broadcast=0, expect=[y], tolerance=rough)
    both = np.array([[[[1, 4], [3, 12]], [[1, 2], [5, 18]]]]) / np.array([[[[20]], [[26]]]])
    yield Example(1, x, mask[0, 0, 0], axis=2, is_inner_broadcast=0, expect=[both])
    total = np.array([1, 4, 3, 12, 1, 2, 5, 18]).reshape(x.shape) / 46
    yield Example(1, x, mask, is_inner_broadcast=1, expect=[total])
    yield Example(1, x, mask, axis=4, is_inner_broadcast=0, expect=[np.ones(x.shape)])
    yield Example(1, np.zeros((0, 3)), np.zeros(3), is_inner_broadcast=0, expect=[np.zeros((0, 3))])
