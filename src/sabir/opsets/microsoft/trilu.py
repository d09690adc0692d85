"""Trilu: the triangle of a matrix above or below a diagonal."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.indexing import triangles
from sabir.opsets.families.shapes.axes import as_input
from sabir.schema import (
    BFLOAT16,
    BOOL,
    NUMBERS,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
)

trilu = Operator(
    "Trilu",
    domain="com.microsoft",
    summary="Each matrix of `X` with zeros below (or, with `upper` 0, above) its diagonal `k`.",
    body_opset=18,
)

T = Constraint("T", NUMBERS, BFLOAT16, BOOL)

v1 = trilu.first(
    1,
    inputs=[
        Input("X", T, "Matrices along the last two dimensions.", differentiable=True),
        triangles.DIAGONAL,
    ],
    outputs=[Output("Y", T, "The triangles, zeros outside.", differentiable=True)],
    attributes=[triangles.UPPER],
)

v1.infer(triangles.infer)
v1.evaluate(triangles.evaluate)
v1.lower(triangles.lower)


@v1.body
def body(b: Builder, x: Value, k: Value | None = None, /, *, upper: int) -> Value:
    return b.Trilu(x, None if k is None else b.Reshape(k, as_input(b, "scalar", [])), upper=upper)


@trilu.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    yield Example(1, x, expect=[[[1, 2, 3], [0, 5, 6]]])
    yield Example(1, x, 1, upper=1, expect=[[[0, 2, 3], [0, 0, 6]]])
    yield Example(1, x, [-1], upper=0, expect=[[[0, 0, 0], [4, 0, 0]]])
    yield Example(1, x, -9, expect=[x])
    for kind in (np.float16, np.float64, np.int64, np.uint8, bool, ml_dtypes.bfloat16):
        ones = np.ones((2, 2, 2), kind)
        yield Example(1, ones, upper=0, expect=[np.tril(np.ones((2, 2, 2))).astype(kind)])
    yield Example(1, x[:0], expect=[x[:0]])
