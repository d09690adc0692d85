"""CDist: distances between the rows of two matrices."""

from collections.abc import Iterator

import numpy as np

from sabir.base import UnsupportedError
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, one_of, tensors

_METRICS = (
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean",
    "hamming", "jaccard", "jensenshannon", "kulsinski", "mahalanobis", "matching", "minkowski",
    "rogerstanimoto", "russellrao", "seuclidean", "sokalmichener", "sokalsneath", "sqeuclidean",
    "wminkowski", "yule",
)  # fmt: skip

cdist = Operator(
    "CDist",
    domain="com.microsoft",
    summary="The distance of each row of `A` from each row of `B`.",
    body_opset=18,
    lacks=("Metrics other than `euclidean` and `sqeuclidean`; onnxruntime has none of them either.",),
)

T = Constraint("T", tensors("float", "double"))

v1 = cdist.first(
    1,
    inputs=[
        Input("A", T, "[M, N].", differentiable=True),
        Input("B", T, "[K, N].", differentiable=True),
    ],
    outputs=[Output("C", T, "[M, K].", differentiable=True)],
    attributes=[
        Attribute(
            "metric",
            "string",
            "sqeuclidean, the sum of squared differences; euclidean, its square root; or others.",
            default="sqeuclidean",
            values=one_of(*_METRICS),
        )
    ],
)

_BLOCK = 1 << 16  # differences that are computed at a time, so that they stay in the cache


@v1.infer
def infer(a: TensorType, b: TensorType, /, *, metric: str) -> TensorType:
    if metric not in {"euclidean", "sqeuclidean"}:
        raise UnsupportedError(f"CDist computes euclidean and sqeuclidean distances, not {metric}")
    check_rank("A", a, 2)
    check_rank("B", b, 2)
    (m, n), (k, other) = a.shape or (None, None), b.shape or (None, None)
    same_dim([n, other], "the columns of `A` and `B`")
    return TensorType(a.element, (m, k))


@v1.evaluate
def evaluate(a: Array, b: Array, /, *, metric: str) -> Array:
    hold(infer, a, b, metric=metric)
    y = np.empty(allotted((len(a), len(b)), a.dtype, a.size + b.size), a.dtype)
    rows = max(1, _BLOCK // max(1, b.size))
    spend_operations(-(-len(a) // rows), 2 * len(a) * b.nbytes)
    for start in range(0, len(a), rows):
        difference = a[start : start + rows, None] - b
        y[start : start + rows] = np.einsum("mkn,mkn->mk", difference, difference)
    return np.sqrt(y) if metric == "euclidean" else y


@v1.body
def body(b: Builder, x: Value, y: Value, /, *, metric: str) -> Value:
    difference = b.Sub(b.Unsqueeze(x, as_input(b, "axis", [1])), b.Unsqueeze(y, as_input(b, "axis", [0])))
    axis = as_input(b, "axis", [2])
    if metric == "euclidean":
        return b.ReduceL2(difference, axis, keepdims=0)
    return b.ReduceSumSquare(difference, axis, keepdims=0)


@cdist.examples
def examples() -> Iterator[Example]:
    a, b = [[1, 2], [3, 5]], [[0, 0], [1, 2], [7, 1]]
    squares = [[5, 0, 37], [34, 13, 32]]
    for kind in (np.float32, np.float64):
        operands = np.array(a, kind), np.array(b, kind)
        yield Example(1, *operands, expect=[np.array(squares, kind)])
        yield Example(1, *operands, metric="sqeuclidean", expect=[np.array(squares, kind)])
        # onnxruntime computes roots of doubles in the precision of floats
        roots = np.sqrt(squares).astype(kind)
        yield Example(1, *operands, metric="euclidean", tolerance=1e-6, expect=[roots])
        yield Example(1, operands[0][:0], operands[1], expect=[np.zeros((0, 3), kind)])
        yield Example(1, operands[0], operands[1][:0], expect=[np.zeros((2, 0), kind)])
        yield Example(1, operands[0][:, :0], operands[1][:, :0], expect=[np.zeros((2, 3), kind)])
    close = np.array([[1e4, 1e4 + 0.5]], np.float32)
    yield Example(1, close, close - np.float32(0.25), expect=[[[0.125]]])
