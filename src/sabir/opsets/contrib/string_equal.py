"""StringEqual: which strings of two tensors are equal."""

from collections.abc import Iterator

from sabir.elements import BOOL
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.shapes.shapes import broadcast
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

string_equal = Operator(
    "StringEqual",
    domain="ai.onnx.contrib",
    summary="Whether strings are equal, elementwise.",
    body_opset=19,
)

v1 = strings.without_kernels(
    string_equal.first(
        1,
        inputs=[
            Input("x", strings.TEXT, "Strings, of any shape."),
            Input("y", strings.TEXT, "Strings, broadcast with `x`."),
        ],
        outputs=[Output("z", "tensor(bool)", "The shape to which the inputs broadcast.")],
    )
)


@v1.infer
def infer(x: TensorType, y: TensorType, /) -> TensorType:
    return TensorType(BOOL, broadcast(x.shape, y.shape))


@v1.evaluate
def evaluate(x: Array, y: Array, /) -> Array:
    return (x == y).astype(bool)


@v1.body
def body(b: Builder, x: Value, y: Value, /) -> Value:
    return b.Equal(x, y)


@string_equal.examples
def examples() -> Iterator[Example]:
    yield Example(1, ["a", "b"], ["a", "c"], expect=[[True, False]])
    yield Example(1, [["a"], ["b"]], ["a", "b"], expect=[[[True, False], [False, True]]])
