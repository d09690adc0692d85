"""Optional: an optional value."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, OptionalType, SequenceType, TensorType, Type, Value
from sabir.opsets.families.sequences.options import CONTENT, NEWER_CONTENT, NO_OPTIONALS
from sabir.opsets.typing import Gradient
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, Unconvertible, optionals

optional = Operator("Optional", summary="An optional with the input as its element, or an empty one.")

V = Constraint("V", CONTENT)
O = Constraint("O", optionals(CONTENT))  # ruff: ignore[ambiguous-variable-name]  the standard's name

v15 = optional.first(
    15,
    inputs=[Input("input", V, "The element; absent for an empty optional.", optional=True)],
    outputs=[Output("output", O, "The optional.")],
    attributes=[Attribute("type", "type", "The element type of an empty optional, in place of the input.")],
)
v28 = v15.widen(28, V=NEWER_CONTENT, O=optionals(NEWER_CONTENT))

v15.absent("lower", "kernels compute tensors, no optional values")
v15.absent("downgrade", NO_OPTIONALS)


@v15.infer
def infer(x: Type | None = None, /, *, type: Type | None) -> OptionalType:  # ruff: ignore[builtin-argument-shadowing]  the attribute's own name
    if x is None and type is None:
        raise InferenceError("an empty optional needs the attribute `type`")
    return OptionalType(x or type)


@v15.evaluate
def evaluate(x: object = None, /, *, type: Type | None) -> object:  # ruff: ignore[builtin-argument-shadowing]  the attribute's own name
    return x


@v28.downgrade
def of_an_older_type(b: Builder, x: Value | None = None, /, *, type: Type | None) -> Value:  # ruff: ignore[builtin-argument-shadowing]  the attribute's own name
    item = type if x is None else x.type
    if item is not None and item.signature not in CONTENT:
        raise Unconvertible(f"Optional:15 does not admit {item}")
    return b.Optional(x, type=type) if x is None else b.Optional(x)


@v15.gradient
def gradient(g: Gradient, x: Value | None = None, /, *, type: Type | None) -> Value | None:  # ruff: ignore[builtin-argument-shadowing]  the attribute's own name
    return None if x is None else g.OptionalGetElement(g.dy)


@optional.examples
def examples() -> Iterator[Example]:
    x = np.array([1, 2], np.float32)
    for opset in (15, 28):
        yield Example(opset, x, expect=[x])
        yield Example(opset, [x, x[:1]], expect=[[x, x[:1]]])
        yield Example(opset, type=TensorType(FLOAT, (2,)), expect=[None])
        yield Example(opset, None, type=SequenceType(TensorType(FLOAT)), expect=[None])
