"""HannWindow: one period of a raised cosine."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families import cosine_windows
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    element_types,
    tensors,
)

hann_window = Operator("HannWindow", summary="`(1 - cos(t)) / 2`, t going once around over the window.")

T1 = Constraint("T1", tensors("int32", "int64"))
T2 = Constraint("T2", NUMBERS, BFLOAT16)

v17 = hann_window.first(
    17,
    inputs=[Input("size", T1, "How many elements the window has.", differentiable=False)],
    outputs=[Output("output", T2, "The window, (size).", differentiable=False)],
    attributes=[
        Attribute("periodic", "int", "1: t ends a step before the full turn; 0: with it.", default=1),
        Attribute(
            "output_datatype", "int", "The element type of the output.", default=1, values=element_types("T2")
        ),
    ],
)

TERMS = (0.5, 0.5)


@v17.infer
def infer(size: TensorType, /, *, output_datatype: int) -> TensorType:
    return cosine_windows.infer(size, element(output_datatype))


@v17.evaluate
def evaluate(size: Array, /, *, periodic: int, output_datatype: int) -> Array:
    kind = element(output_datatype)
    return cosine_windows.sampled(size, TERMS, kind, periodic=bool(periodic))


@v17.body
def body(b: Builder, size: Value, /, *, periodic: int, output_datatype: int) -> Value:
    kind = element(output_datatype)
    return cosine_windows.graph(b, size, TERMS, kind, periodic=bool(periodic))


@hann_window.examples
def examples() -> Iterator[Example]:
    """By hand: quarters and sixths of a turn have cosines of 0, 1/2 and 1."""
    four, five = np.array(4), np.array(5, np.int32)
    quarters = [0, 0.5, 1, 0.5]
    yield Example(17, four, expect=[np.array(quarters, np.float32)])
    yield Example(17, five, periodic=0, expect=[np.array([*quarters, quarters[0]], np.float32)])
    for number, kind in ((10, np.float16), (11, np.float64), (16, ml_dtypes.bfloat16)):
        expected = np.array(quarters).astype(kind)
        yield Example(17, four, output_datatype=number, tolerance=1e-7, expect=[expected])
    sixths = [0, 0.25, 0.75, 1, 0.75, 0.25]
    yield Example(17, np.array(6), expect=[np.array(sixths, np.float32)])
    yield Example(17, five - 1, output_datatype=7, expect=[np.array([0, 0, 1, 0])])
    yield Example(17, np.array(0), expect=[np.zeros(0, np.float32)])
    yield Example(17, np.array(1), expect=[np.array(0, np.float32).reshape(1)])
    yield Example(17, np.array(1), periodic=0, expect=[np.array([np.nan], np.float32)])
