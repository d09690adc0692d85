"""Expand: a tensor repeated to a larger shape."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import TensorType, Value
from sabir.opsets.families import contents
from sabir.opsets.families.ranks import as_list
from sabir.opsets.families.shapes import broadcast
from sabir.opsets.families.sizes import allotted, sizes_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output

expand = Operator("Expand", summary="`input` broadcast against `shape`, as numpy does, in both directions.")

T = Constraint("T", CLASSIC)

v8 = expand.first(
    8,
    inputs=[
        Input("input", T, "A tensor of any shape.", differentiable=True),
        Input("shape", "tensor(int64)", "Aligned with `input` at the last dimension.", differentiable=False),
    ],
    outputs=[
        Output("output", T, "The broadcast shape, which may be larger than `shape`.", differentiable=True)
    ],
)
v13 = v8.widen(13, T=BFLOAT16)


@v8.infer
def infer(x: TensorType, shape: TensorType, /) -> TensorType:
    dims = broadcast(x.shape, sizes_in("shape", shape))
    sizes = [d for d in dims or () if isinstance(d, int)]
    return contents.moved(TensorType(x.element, dims), lambda known: np.broadcast_to(known, sizes), x)


@v8.evaluate
def evaluate(x: Array, shape: Array, /) -> Array:
    """Return a view, so that repetition takes no memory."""
    dims = np.broadcast_shapes(x.shape, as_list("shape", shape))
    return np.broadcast_to(x, allotted(dims, x.dtype, x.size))


@v13.gradient
def gradient(g: Gradient, x: Value, shape: Value, /) -> tuple[Value, None]:
    return g.fit(g.dy, x), None


@expand.examples
def examples() -> Iterator[Example]:
    x = np.array([[1], [2], [3]], np.float32)
    wide = [[[1, 1], [2, 2], [3, 3]]] * 2
    for opset in (8, 13):
        yield Example(opset, x, [2, 1, 2], expect=[wide])
        yield Example(opset, x, [1], expect=[x])
    yield Example(8, "a", [2], expect=[["a", "a"]])
    yield Example(8, 5, [], expect=[5])
    yield Example(8, x, [3, 0], expect=[np.zeros((3, 0), np.float32)])
    yield Example(8, [4, 5], [2, 2], expect=[[[4, 5], [4, 5]]])
