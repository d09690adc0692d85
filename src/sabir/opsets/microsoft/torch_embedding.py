"""TorchEmbedding: rows of a matrix, as PyTorch's `embedding`."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.indexing.move_gradients import as_numbers, as_tuples, zeros_of
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.shapes.ranks import check_one, check_rank, hold
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, NUMBERS, Constraint, Example, Input, Operator, Output

torch_embedding = Operator(
    "TorchEmbedding",
    domain="com.microsoft",
    summary="The rows of `weight` at `indices`.",
    body_opset=18,
)

T = Constraint("T", NUMBERS, BFLOAT16)

v1 = torch_embedding.first(
    1,
    inputs=[
        Input("weight", T, "The vectors, [N, M].", differentiable=True),
        Input("indices", "tensor(int64)", "From 0 to N - 1, of any shape.", differentiable=False),
        Input(
            "padding_idx",
            "tensor(int64)",
            "An index, a scalar; no gradient passes to its row.",
            optional=True,
            differentiable=False,
        ),
        Input(
            "scale_grad_by_freq",
            "tensor(bool)",
            "A scalar: whether the gradient of a row is divided by the number of its uses.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[Output("Y", T, "The shape of `indices`, then M.", differentiable=True)],
)


@v1.infer
def infer(
    weight: TensorType,
    indices: TensorType,
    padding: TensorType | None = None,
    scaled: TensorType | None = None,
    /,
) -> TensorType:
    check_rank("weight", weight, 2)
    check_one("padding_idx", padding)
    check_one("scale_grad_by_freq", scaled)
    if indices.shape is None:
        return TensorType(weight.element)
    return TensorType(weight.element, (*indices.shape, weight.shape[1] if weight.shape else None))


@v1.evaluate
def evaluate(
    weight: Array, indices: Array, padding: Array | None = None, scaled: Array | None = None, /
) -> Array:
    hold(infer, weight, indices, padding, scaled)
    outside = (indices < 0) | (indices >= len(weight))
    if outside.any():
        raise ValueError(f"the index {indices[outside][0]} is outside [0, {len(weight) - 1}]")
    return weight[indices]


@v1.body
def body(
    b: Builder,
    weight: Value,
    indices: Value,
    padding: Value | None = None,
    scaled: Value | None = None,
    /,
) -> Value:
    return b.Gather(weight, indices)


@v1.gradient
def gradient(
    g: Gradient,
    weight: Value,
    indices: Value,
    padding: Value | None = None,
    scaled: Value | None = None,
    /,
) -> tuple[Value | None, ...]:
    dy, zeros, places = halves.widened(g, g.dy), halves.widened(g, g.zeros(weight)), as_tuples(g, indices)
    if padding is not None:
        used = g.Not(g.Equal(indices, g.Reshape(padding, g.Shape(indices, start=0, end=0), allowzero=1)))
        dy = g.Mul(dy, g.Unsqueeze(as_numbers(g, used, dy), [-1]))
    d = g.ScatterND(zeros, places, dy, reduction="add")
    if scaled is not None:
        ones = as_numbers(g, g.Equal(indices, indices), dy)
        counts = g.ScatterND(zeros_of(g, g.Shape(weight, start=0, end=1), dy), places, ones, reduction="add")
        divisor = g.Unsqueeze(g.Max(counts, 1.0), [-1])
        d = g.Where(g.Reshape(scaled, g.Shape(scaled, start=0, end=0)), g.Div(d, divisor), d)
    return halves.rounded(g, d, weight), *(None for x in (indices, padding, scaled) if x is not None)


@torch_embedding.examples
def examples() -> Iterator[Example]:
    table = [[1, 2], [3, 4], [5, 6]]
    y = [[[5, 6], [1, 2]], [[5, 6], [3, 4]]]
    for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64, np.int32):
        yield Example(1, np.array(table, kind), [[2, 0], [2, 1]], expect=[np.array(y, kind)])
    weight = np.array(table, np.float32)
    yield Example(1, weight, [[2, 0], [2, 1]], 2, expect=[np.array(y, np.float32)])
    yield Example(1, weight, [2, 0, 2], None, np.array([True]), expect=[weight[[2, 0, 2]]])
    yield Example(1, weight, [0, 2, 2], 0, np.array(True), expect=[weight[[0, 2, 2]]])  # ruff: ignore[boolean-positional-value-in-call]  a value
    yield Example(1, weight, 1, expect=[weight[1]])
    yield Example(1, weight, np.zeros((0, 2), np.int64), expect=[np.zeros((0, 2, 2), np.float32)])
