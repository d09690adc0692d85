"""MaxUnpool: maxima put back where they were found, zeros elsewhere."""

import math
from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, add, mul, sub
from sabir.opsets.families.ranks import check_alike, check_shape
from sabir.opsets.families.sizes import allotted, sizes_in
from sabir.opsets.families.windows import LEAST_RANK, Window
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    tensors,
)

max_unpool = Operator(
    "MaxUnpool", summary="Zeros with each element of `X` at its place in `I`; a partial inverse of MaxPool."
)

T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", tensors("int64"))

v9 = max_unpool.first(
    9,
    inputs=[
        Input("X", T1, "What MaxPool gave, (N, C, O1, ..., On).", differentiable=True),
        Input(
            "I",
            T2,
            "Where the elements go, shaped as `X`: places in the flattened tensor that was pooled.",
            differentiable=False,
        ),
        Input(
            "output_shape",
            T2,
            "The output's shape, (N, C, D1, ..., Dn), where more than the windows cover; zeros at the ends.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[
        Output(
            "output", T1, "(N, C, D1, ..., Dn), D = stride * (O - 1) + kernel - pads.", differentiable=True
        )
    ],
    attributes=[
        Attribute(
            "pads",
            "ints",
            "The padding that was pooled: all the beginnings, then all the ends; none by default.",
            values=at_least(0),
        ),
        Attribute(
            "strides", "ints", "The step between windows along each axis; 1 by default.", values=at_least(1)
        ),
        Attribute(
            "kernel_shape", "ints", "The window's size along each axis.", required=True, values=at_least(1)
        ),
    ],
)
v11 = v9.restate(11, "States that strides are 1 by default.")
v22 = v11.widen(22, T1=BFLOAT16)


@v9.infer
def infer(
    x: TensorType, places: TensorType, output_shape: TensorType | None = None, /, *,
    kernel_shape: Sequence[int], strides: Sequence[int] | None, pads: Sequence[int] | None,
) -> TensorType:  # fmt: skip
    check_alike(["X", "I"], [x, places])
    covered = _covered(x.shape or places.shape, kernel_shape, strides, pads)
    if output_shape is None:
        return TensorType(x.element, covered)
    given = sizes_in("output_shape", output_shape)
    if given is None or len(given) != len(covered):
        if given is not None:
            raise InferenceError(f"output_shape has {len(given)} sizes, and the output {len(covered)} axes")
        return TensorType(x.element, (*covered[:2], *(None,) * len(kernel_shape)))
    for dim, least in zip(given, covered, strict=True):
        if isinstance(dim, int) and isinstance(least, int) and dim < least:
            raise InferenceError(f"output_shape asks for {dim}, and the windows cover {least}")
    return TensorType(x.element, given)


def _covered(
    shape: Sequence[Dim] | None, kernel_shape: Sequence[int], strides: Sequence[int] | None,
    pads: Sequence[int] | None,
) -> tuple[Dim, ...]:  # fmt: skip
    """Return the shape of the tensor whose windows were pooled."""
    window = Window.of(kernel_shape, strides=strides, pads=pads, auto_pad="")
    shape = shape or (None,) * (len(kernel_shape) + 2)
    if len(shape) < LEAST_RANK or len(shape) != len(kernel_shape) + 2:
        raise InferenceError(
            f"kernel_shape {list(kernel_shape)} does not go with a tensor of rank {len(shape)}"
        )
    sides = zip(shape[2:], kernel_shape, window.strides, window.pads, strict=True)
    return (*shape[:2], *(add(mul(sub(n, 1), step), k - sum(cut)) for n, k, step, cut in sides))


@v9.evaluate
def evaluate(
    x: Array, places: Array, output_shape: Array | None = None, /, *, kernel_shape: Sequence[int],
    strides: Sequence[int] | None, pads: Sequence[int] | None,
) -> Array:  # fmt: skip
    """Places count in what the windows cover, whatever `output_shape` adds, as in the standard's tests."""
    covered = [d for d in _covered(x.shape, kernel_shape, strides, pads) if isinstance(d, int)]
    check_alike(["X", "I"], [x, places])
    if output_shape is not None:
        check_shape("output_shape", output_shape, x.ndim)
    size = math.prod(covered)
    if places.size and not (places.min() >= 0 and places.max() < size):
        raise ValueError(f"I names places outside the {size} of {covered}")
    flat: Array = np.zeros(allotted([size], x.dtype, x.size), x.dtype)
    flat[places.reshape(-1)] = x.reshape(-1)
    y = flat.reshape(covered)
    if output_shape is None or output_shape.tolist() == covered:
        return y
    whole: Array = np.zeros(allotted(output_shape.tolist(), x.dtype, x.size), x.dtype)
    if whole.ndim != x.ndim or any(w < c for w, c in zip(whole.shape, covered, strict=True)):
        raise ValueError(
            f"output_shape {output_shape.tolist()} does not hold the {covered} that windows cover"
        )
    whole[tuple(slice(c) for c in covered)] = y
    return whole


@max_unpool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, places = np.array([[[[5, 6], [7, 8]]]], f), np.array([[[[5, 7], [13, 14]]]])
    y = np.array([[[[0, 0, 0, 0], [0, 5, 0, 6], [0, 0, 0, 0], [0, 7, 8, 0]]]], f)
    for opset in (9, 11, 22):
        yield Example(opset, x, places, kernel_shape=[2, 2], strides=[2, 2], expect=[y])
        wide = np.pad(y, ((0, 0), (0, 0), (0, 1), (0, 2)))
        yield Example(
            opset, x, places, np.array([1, 1, 5, 6]), kernel_shape=[2, 2], strides=[2, 2], expect=[wide]
        )
    # windows of 3 that overlap, over a row padded by 1 at both ends; the second plane starts at 4
    rows, where = np.array([[[2, 9], [3, 3]]], f), np.array([[[1, 2], [4, 7]]])
    yield Example(11, rows, where, kernel_shape=[3], strides=[2], pads=[1, 0],
                  expect=[np.array([[[0, 2, 9, 0], [3, 0, 0, 3]]], f)])  # fmt: skip
    for kind, opset in ((np.float16, 9), (np.float64, 11), (ml_dtypes.bfloat16, 22)):
        yield Example(
            opset, x.astype(kind), places, kernel_shape=[2, 2], strides=[2, 2], expect=[y.astype(kind)]
        )
    yield Example(11, np.array([[[np.nan, -np.inf]]], f), np.array([[[1, 0]]]), kernel_shape=[1],
                  expect=[np.array([[[-np.inf, np.nan]]], f)])  # fmt: skip
    yield Example(11, np.zeros((0, 1, 2), f), np.zeros((0, 1, 2), int), kernel_shape=[2],
                  expect=[np.zeros((0, 1, 3), f)])  # fmt: skip
