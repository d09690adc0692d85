"""Range: equally spaced numbers from a start to a limit."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.indexing import ranges
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

arange = Operator(
    "Range",
    domain="com.microsoft",
    summary="`start + i * delta` for i from 0 up to `ceil((limit - start) / delta)`, the last excluded.",
    body_opset=18,
)

T = Constraint("T", tensors("double", "float", "int16", "int32", "int64"))

v1 = arange.first(
    1,
    inputs=[
        Input("start", T, "The first number, a scalar."),
        Input("limit", T, "The limit, which is excluded."),
        Input("delta", T, "The step, below 0 to count down, never 0; 1 by default.", optional=True),
    ],
    outputs=[Output("Y", T, "The numbers, 1-D; empty where `delta` has the wrong sign.")],
)


@v1.infer
def infer(start: TensorType, limit: TensorType, delta: TensorType | None = None, /) -> TensorType:
    return ranges.infer(start, limit, TensorType(start.element, (), (1,)) if delta is None else delta)


@v1.evaluate
def evaluate(start: Array, limit: Array, delta: Array | None = None, /) -> Array:
    return ranges.evaluate(start, limit, np.ones((), start.dtype) if delta is None else delta)


@v1.body
def body(b: Builder, start: Value, limit: Value, delta: Value | None = None, /) -> Value:
    step = Numbers.like(b, start)(1) if delta is None else delta
    return b.Range(*(b.Reshape(v, as_input(b, "scalar", [])) for v in (start, limit, step)))


@arange.examples
def examples() -> Iterator[Example]:
    for dtype in (np.int16, np.int32, np.int64, np.float32, np.float64):
        for start, limit, delta, numbers in ((3, 10, 3, [3, 6, 9]), (10, 4, -2, [10, 8, 6]), (5, 1, 2, [])):
            yield Example(1, dtype(start), dtype(limit), dtype(delta), expect=[np.array(numbers, dtype)])
        yield Example(1, dtype(-1), dtype(2), expect=[np.array([-1, 0, 1], dtype)])
    yield Example(1, *(np.array([n], np.float32) for n in (0, 1, 0.5)), expect=[[0, 0.5]])
