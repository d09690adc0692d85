"""EyeLike: a matrix with ones on one diagonal."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.extents import indices, shape_of, sizes, unsqueezed
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    BOOL,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    element_types,
)

eye_like = Operator(
    "EyeLike", summary="Ones on the diagonal `k` and zeros elsewhere, in the shape of `input`: numpy's `eye`."
)

T1 = Constraint("T1", NUMBERS, BOOL)
T2 = Constraint("T2", NUMBERS, BOOL)

v9 = eye_like.first(
    9,
    inputs=[Input("input", T1, "A matrix, for its shape and its element type.")],
    outputs=[Output("output", T2, "`output[i, i + k]` is 1.")],
    attributes=[
        Attribute(
            "dtype",
            "int",
            "The element type of the output; by default that of `input`.",
            values=element_types("T2"),
        ),
        Attribute("k", "int", "The diagonal: 0 the main one, above it if positive.", default=0),
    ],
)
v22 = v9.widen(22, T1=BFLOAT16, T2=BFLOAT16)


@v9.infer
def infer(x: TensorType, /, *, dtype: int | None, k: int) -> TensorType:
    if x.shape is not None and len(x.shape) != 2:  # ruff: ignore[magic-value-comparison]  the rank of a matrix
        raise InferenceError(f"`input` must be a matrix, and has rank {len(x.shape)}")
    return TensorType(x.element if dtype is None else element(dtype), x.shape or (None, None))


@v9.evaluate
def evaluate(x: Array, /, *, dtype: int | None, k: int) -> Array:
    kind = element(x.dtype if dtype is None else dtype)
    rows, columns = x.shape
    diagonal = min(max(k, -rows), columns)
    return np.eye(rows, columns, diagonal, dtype=bool).astype(kind.dtype)


@v9.lower
def lower(x: Expression, /, *, dtype: int | None, k: int) -> Expression:
    rows, columns = x.shape
    ones = loops.apply("eq", loops.count((1, columns), 1), loops.apply("add", loops.count((rows, 1), 0), k))
    return loops.cast(ones, x.element if dtype is None else element(dtype).name)


@v9.downgrade
def compare(b: Builder, x: Value, /, *, dtype: int | None, k: int) -> Value:
    """Compare the index of each column with that of each row."""
    rows, columns = (indices(b, sizes(b, x, [axis])) for axis, _ in enumerate(shape_of("input", x)))
    diagonal = b.Equal(columns, b.Add(unsqueezed(b, rows, [1]), k))
    return b.Cast(diagonal, to=element_of(x).number if dtype is None else dtype)


@v9.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    """Zero, as only the shape is read."""
    return g.zeros(x)


@eye_like.examples
def examples() -> Iterator[Example]:
    x = np.zeros((2, 3), np.int32)
    for opset in (9, 22):
        yield Example(opset, x, expect=[np.array([[1, 0, 0], [0, 1, 0]], np.int32)])
        yield Example(opset, x, dtype=1, k=1, expect=[[[0.0, 1, 0], [0, 0, 1]]])
        yield Example(opset, x, dtype=9, k=-1, expect=[np.array([[0, 0, 0], [1, 0, 0]], bool)])
    yield Example(9, x, k=-(2**63), expect=[x])
    yield Example(22, x, dtype=16, k=2, expect=[np.array([[0, 0, 1], [0, 0, 0]], element(16).dtype)])
    yield Example(22, np.zeros((0, 3)), expect=[np.zeros((0, 3))])
