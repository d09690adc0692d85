"""OptionalHasElement: whether an optional has an element."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.elements import FLOAT
from sabir.ir import Builder, OptionalType, SequenceType, TensorType, Type, Value
from sabir.opsets.families.sequences.options import CONTENT, NEWER_CONTENT, NO_OPTIONALS
from sabir.opsets.typing import Array
from sabir.schema import BOOL, Constraint, Example, Input, Operator, Output, Unconvertible, optionals

optional_has_element = Operator(
    "OptionalHasElement", summary="True if the input is present and is not an empty optional."
)

O = Constraint("O", optionals(CONTENT))  # ruff: ignore[ambiguous-variable-name]  the standard's name
B = Constraint("B", BOOL)

v15 = optional_has_element.first(
    15, inputs=[Input("input", O, "An optional.", presence=True)], outputs=[Output("output", B, "A scalar.")]
)
v18 = v15.evolve(
    18,
    "The input may be absent (false), or be a tensor or sequence (true).",
    inputs=[Input("input", O, "An optional, tensor or sequence, or nothing.", optional=True, presence=True)],
    widen={"O": CONTENT},
)
v28 = v18.widen(28, O=NEWER_CONTENT | optionals(NEWER_CONTENT))

v15.absent("lower", "kernels compute tensors, no optional values")
v15.absent("downgrade", NO_OPTIONALS)


@v15.infer
def infer(x: Type | None = None, /) -> TensorType:
    result = TensorType(BOOLEAN, ())
    return result if isinstance(x, OptionalType) else result.with_known((x is not None,))


@v15.evaluate
def evaluate(x: object = None, /) -> Array:
    return np.array(x is not None)


@v18.upgrade
def same_question(b: Builder, x: Value, /) -> Value:
    return b.OptionalHasElement(x)


@v18.downgrade
def ask_of_an_optional(b: Builder, x: Value | None = None, /) -> Value:
    if x is None:
        return b.Identity(b.initializer("nothing", np.zeros((), np.bool_)))
    if x.type is None:
        raise Unconvertible("OptionalHasElement:15 needs an optional, and the type of the input is unknown")
    return b.OptionalHasElement(x if isinstance(x.type, OptionalType) else b.Optional(x))


@optional_has_element.examples
def examples() -> Iterator[Example]:
    x, yes, no = np.array([1, 2], np.float32), [np.ones((), np.bool_)], [np.zeros((), np.bool_)]
    tensor = TensorType(FLOAT, (2,))
    sequence = SequenceType(tensor)
    for opset in (15, 18, 28):
        yield Example(opset, x, types=[OptionalType(tensor)], expect=yes)
        yield Example(opset, None, types=[OptionalType(tensor)], expect=no)
        yield Example(opset, [x], types=[OptionalType(sequence)], expect=yes)
        yield Example(opset, [], types=[OptionalType(sequence)], expect=yes)
    for opset in (18, 28):
        yield Example(opset, x, expect=yes)
        yield Example(opset, [], types=[sequence], expect=yes)
        yield Example(opset, None, expect=no)
        yield Example(opset, expect=no)
