"""OptionalGetElement: the element of an optional."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import EvaluationError
from sabir.elements import FLOAT
from sabir.ir import Builder, OptionalType, SequenceType, TensorType, Type, Value
from sabir.opsets.families.sequences.options import CONTENT, NEWER_CONTENT, NO_OPTIONALS
from sabir.opsets.typing import Gradient
from sabir.schema import Constraint, Example, Input, Operator, Output, Unconvertible, optionals

optional_get_element = Operator(
    "OptionalGetElement", summary="The element of the optional; a tensor or a sequence is returned unchanged."
)

O = Constraint("O", optionals(CONTENT))  # ruff: ignore[ambiguous-variable-name]  the standard's name
V = Constraint("V", CONTENT)

v15 = optional_get_element.first(
    15,
    inputs=[Input("input", O, "An optional that is not empty, or a tensor or sequence.")],
    outputs=[Output("output", V, "The tensor or sequence.")],
)
v18 = v15.widen(18, O=CONTENT)
v28 = v18.widen(28, O=NEWER_CONTENT | optionals(NEWER_CONTENT), V=NEWER_CONTENT)

v15.absent("lower", "kernels compute tensors, no optional values")
v15.absent("downgrade", NO_OPTIONALS)


@v15.infer
def infer(x: Type, /) -> Type | None:
    return x.item if isinstance(x, OptionalType) else x


@v15.evaluate
def evaluate(x: object, /) -> object:
    if x is None:
        raise EvaluationError("the optional is empty")
    return x


@v18.downgrade
def take_from_optionals_alone(b: Builder, x: Value, /) -> Value:
    if x.type is None:
        raise Unconvertible("OptionalGetElement:15 needs an optional, and the type of the input is unknown")
    return b.OptionalGetElement(x) if isinstance(x.type, OptionalType) else b.Identity(x)


@v18.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Optional(g.dy) if isinstance(x.type, OptionalType) else g.dy


@optional_get_element.examples
def examples() -> Iterator[Example]:
    x = np.array([1, 2], np.float32)
    tensor = TensorType(FLOAT, (2,))
    for opset in (15, 18, 28):
        yield Example(opset, x, types=[OptionalType(tensor)], expect=[x])
        yield Example(opset, [x], types=[OptionalType(SequenceType(tensor))], expect=[[x]])
    for opset in (18, 28):
        yield Example(opset, x, expect=[x])
        yield Example(opset, [x, x], expect=[[x, x]])
    half = np.array([3], ml_dtypes.bfloat16)
    yield Example(28, half, expect=[half])
