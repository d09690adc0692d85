"""MaxUnpool: maxima at the positions where MaxPool found them, zeros elsewhere."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, Value, add, mul, product, sub
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.ranks import check_alike, check_shape
from sabir.opsets.families.shapes.size_vectors import combined, sizes_of
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.families.windows.pooling_gradients import of_positions
from sabir.opsets.families.windows.windows import KERNEL_SHAPE, LEAST_RANK, PADS, STRIDES, Window
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output, tensors

max_unpool = Operator(
    "MaxUnpool", summary="Zeros, with each element of `X` at its index in `I`; a partial inverse of MaxPool."
)

T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", tensors("int64"))

v9 = max_unpool.first(
    9,
    inputs=[
        Input("X", T1, "The output of MaxPool, (N, C, O1, ..., On).", differentiable=True),
        Input(
            "I",
            T2,
            "The shape of `X`: the index of each element in the flattened tensor that was pooled.",
            differentiable=False,
        ),
        Input(
            "output_shape",
            T2,
            "The output's shape, (N, C, D1, ..., Dn), if larger than the windows cover; zeros at the ends.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[
        Output(
            "output", T1, "(N, C, D1, ..., Dn), D = stride * (O - 1) + kernel - pads.", differentiable=True
        )
    ],
    attributes=[PADS, STRIDES, KERNEL_SHAPE],
)
v11 = v9.restate(11, "States that strides are 1 by default.")
v22 = v11.widen(22, T1=BFLOAT16)

v9.absent("downgrade", "no older operator writes at indices")


@v9.infer
def infer(
    x: TensorType, indices: TensorType, output_shape: TensorType | None = None, /, **window: Any
) -> TensorType:
    check_alike(["X", "I"], [x, indices])
    covered = _covered(x.shape or indices.shape, **window)
    if output_shape is None:
        return TensorType(x.element, covered)
    sizes = sizes_in("output_shape", output_shape)
    if sizes is None or len(sizes) != len(covered):
        if sizes is not None:
            raise InferenceError(f"output_shape has {len(sizes)} sizes, and the output {len(covered)} axes")
        return TensorType(x.element, (*covered[:2], *(None,) * (len(covered) - 2)))
    for dim, least in zip(sizes, covered, strict=True):
        if isinstance(dim, int) and isinstance(least, int) and dim < least:
            raise InferenceError(f"output_shape has a size of {dim}, and the windows cover {least}")
    return TensorType(x.element, sizes)


def _covered(shape: Sequence[Dim] | None, **attributes: Any) -> tuple[Dim, ...]:
    """Return the shape of the tensor that MaxPool reads to produce `shape`."""
    window = Window.of(**attributes)
    shape = shape or (None,) * (len(window.kernel) + 2)
    if len(shape) < LEAST_RANK or len(shape) != len(window.kernel) + 2:
        raise InferenceError(
            f"kernel_shape {list(window.kernel)} does not match a tensor of rank {len(shape)}"
        )
    sides = zip(shape[2:], window.kernel, window.strides, window.pads, strict=True)
    return (*shape[:2], *(add(mul(sub(n, 1), step), sub(k, sum(cut))) for n, k, step, cut in sides))


@v9.evaluate
def evaluate(x: Array, indices: Array, output_shape: Array | None = None, /, **window: Any) -> Array:
    """Indices refer to the shape that the windows cover, whatever `output_shape` is, as in onnx's tests."""
    covered = [d for d in _covered(x.shape, **window) if isinstance(d, int)]
    check_alike(["X", "I"], [x, indices])
    if output_shape is not None:
        check_shape("output_shape", output_shape, x.ndim)
    size = math.prod(covered)
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise ValueError(f"I has indices outside the {size} elements of {covered}")
    flat: Array = np.zeros(allotted([size], x.dtype, x.size), x.dtype)
    flat[indices.reshape(-1)] = x.reshape(-1)
    y = flat.reshape(covered)
    if output_shape is None or output_shape.tolist() == covered:
        return y
    whole: Array = np.zeros(allotted(output_shape.tolist(), x.dtype, x.size), x.dtype)
    if whole.ndim != x.ndim or any(w < c for w, c in zip(whole.shape, covered, strict=True)):
        raise ValueError(
            f"output_shape {output_shape.tolist()} is smaller than the {covered} that the windows cover"
        )
    whole[tuple(slice(c) for c in covered)] = y
    return whole


@v9.lower
def lower(
    x: Expression, indices: Expression, output_shape: Expression | None = None, /, *, call: Lowering,
    **window: Any,
) -> Expression:  # fmt: skip
    covered = tuple(d for d in _covered(x.shape, **window) if d is not None)
    size, count = product(covered), product(x.shape)
    if len(covered) < x.rank or size is None or count is None or not loops.same_shape(x.shape, indices.shape):
        raise NotLowered("whether each element has an index is known at run time only")
    places = loops.reshape(indices, (count,))
    places = loops.where(loops.apply("lt", places, 0), loops.sized("int64", size), places)  # no index
    zeros = kernels.filled(x.element, 0, (size,))
    y = zeros if count == 0 else loops.scatter(zeros, places, loops.reshape(x, (count,)), 0)
    y = loops.reshape(y, covered)
    if output_shape is None:
        return y
    kernels.sizes_of(output_shape, "`output_shape`")
    return loops.pad(y, (0,) * y.rank, [a - b for a, b in zip(call.shape(), covered, strict=True)], 0)


@v11.gradient
def gradient(
    g: Gradient,
    x: Value,
    indices: Value,
    output_shape: Value | None = None,
    /,
    *,
    kernel_shape: Sequence[int],
    strides: Ints,
    pads: Ints,
) -> tuple[Value, None, None]:
    """Of equal indices each has the gradient, as in PyTorch."""
    if output_shape is None:
        return of_positions(g, indices, None), None, None
    rank = len(kernel_shape)
    steps = combined(g, "Mul", combined(g, "Sub", sizes_of(g, x), 1), tuple(strides or (1,) * rank))
    edges = tuple(pads or (0,) * 2 * rank)
    reach = tuple(k - b - e for k, b, e in zip(kernel_shape, edges[:rank], edges[rank:], strict=True))
    return of_positions(g, indices, combined(g, "Add", steps, reach)), None, None


@max_unpool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, indices = np.array([[[[5, 6], [7, 8]]]], f), [[[[5, 7], [13, 14]]]]
    y = np.array([[[[0, 0, 0, 0], [0, 5, 0, 6], [0, 0, 0, 0], [0, 7, 8, 0]]]], f)
    wide = np.pad(y, ((0, 0), (0, 0), (0, 1), (0, 2)))
    square: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    for opset in (9, 11, 22):
        yield Example(opset, x, indices, **square, expect=[y])
        yield Example(opset, x, indices, [1, 1, 5, 6], **square, expect=[wide])
    # windows of 3 that overlap, over a row padded by 1 at the beginning; the second plane starts at index 4
    rows, where, expected = (
        np.array([[[2, 9], [3, 3]]], f),
        [[[1, 2], [4, 7]]],
        [[[0, 2, 9, 0], [3, 0, 0, 3]]],
    )
    yield Example(11, rows, where, kernel_shape=[3], strides=[2], pads=[1, 0], expect=[expected])
    for dtype, opset in ((np.float16, 9), (np.float64, 11), (ml_dtypes.bfloat16, 22)):
        yield Example(opset, x.astype(dtype), indices, **square, expect=[y.astype(dtype)])
    yield Example(11, [[[np.nan, -np.inf]]], [[[1, 0]]], kernel_shape=[1], expect=[[[[-np.inf, np.nan]]]])
    empty = np.zeros((0, 1, 2), f)
    yield Example(11, empty, empty.astype(int), kernel_shape=[2], expect=[np.zeros((0, 1, 3), f)])
