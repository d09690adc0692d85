"""OptionalHasElement: whether an optional holds something."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.elements import FLOAT
from sabir.ir import Builder, OptionalType, SequenceType, TensorType, Type, Value
from sabir.opsets.families.options import HELD, HELD_SINCE_28
from sabir.opsets.typing import Array
from sabir.schema import BOOL, Constraint, Example, Input, Operator, Output, Unconvertible, optionals

optional_has_element = Operator(
    "OptionalHasElement",
    summary="True where the input is there and, if it is an optional, holds something.",
)

O = Constraint("O", optionals(HELD))  # ruff: ignore[ambiguous-variable-name]  the standard's name
B = Constraint("B", BOOL)

v15 = optional_has_element.first(
    15,
    inputs=[Input("input", O, "An optional.", presence=True)],
    outputs=[Output("output", B, "A scalar.")],
)
v18 = v15.evolve(
    18,
    "The input may be left out, which gives false, or be a tensor or sequence, which gives true.",
    inputs=[Input("input", O, "An optional, tensor or sequence, or nothing.", optional=True, presence=True)],
    widen={"O": HELD},
)
v28 = v18.widen(28, O=HELD_SINCE_28 | optionals(HELD_SINCE_28))


@v15.infer
def infer(x: Type | None = None, /) -> TensorType:
    told = TensorType(BOOLEAN, ())
    return told if isinstance(x, OptionalType) else told.with_known((x is not None,))


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
        raise Unconvertible("OptionalHasElement-15 needs an optional, and the type of the input is unknown")
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
