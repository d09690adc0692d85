"""CategoryMapper: strings to integers, or back."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import UNDEFINED, Builder, TensorType, Value
from sabir.opsets.families.indexing.lookups import mapped
from sabir.opsets.families.text.places import values_of
from sabir.opsets.typing import Array, Ints, Strings
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, tensors

category_mapper = Operator(
    "CategoryMapper",
    domain="ai.onnx.ml",
    summary="Each string replaced by its integer in a table, or each integer by its string.",
)

T1 = Constraint("T1", STRING, tensors("int64"))
T2 = Constraint("T2", STRING, tensors("int64"))

v1 = category_mapper.first(
    1,
    inputs=[Input("X", T1, "Strings or integers, of any shape.")],
    outputs=[Output("Y", T2, "The input's shape, of the other type.")],
    attributes=[
        Attribute("default_int64", "int", "The result for a string that is not in the table.", default=-1),
        Attribute("default_string", "string", "The same for an integer.", default="_Unused"),
        Attribute("cats_int64s", "ints", "The table's integers."),
        Attribute("cats_strings", "strings", "The table's strings, one for each integer."),
    ],
)

_OTHER = {"string": element("int64"), "int64": element("string")}


v1.absent("lower", "one side of each pair is a text")


@v1.infer
def infer(x: TensorType, /, *, cats_int64s: Ints, cats_strings: Strings) -> TensorType:
    if cats_int64s is None or cats_strings is None:
        raise InferenceError("needs both columns of the table, `cats_int64s` and `cats_strings`")
    if len(cats_int64s) != len(cats_strings):
        raise InferenceError("`cats_int64s` and `cats_strings` differ in length")
    return TensorType(_OTHER.get(x.element.name, UNDEFINED), x.shape)


@v1.evaluate
def evaluate(
    x: Array, /, *, cats_int64s: Ints, cats_strings: Strings, default_int64: int, default_string: str
) -> Array:
    integers, strings = np.array(cats_int64s or (), np.int64), np.array(cats_strings or (), object)
    if len(integers) != len(strings):
        raise ValueError("`cats_int64s` and `cats_strings` differ in length")
    if x.dtype.kind == "O":
        return mapped(x, strings, integers, default_int64)
    return mapped(x, integers, strings, default_string)


@v1.parts
def parts(b: Builder, x: Value, /, *, cats_int64s: Ints, cats_strings: Strings, default_int64: int) -> Value:
    """Find the texts in the table, and take their integers."""
    return values_of(b, x, cats_strings or (), np.array(cats_int64s or (), np.int64), default_int64)


@category_mapper.examples
def examples() -> Iterator[Example]:
    table: dict[str, Any] = {"cats_strings": ["a", "b", "a"], "cats_int64s": [10, 20, 30]}
    x = [["b", "a"], ["z", ""]]
    yield Example(1, x, **table, expect=[[[20, 30], [-1, -1]]])
    yield Example(1, x, **table, default_int64=7, expect=[[[20, 30], [7, 7]]])
    y = [20, 30, 10, 11]
    yield Example(1, y, **table, expect=[["b", "a", "a", "_Unused"]])
    yield Example(1, 20, **table, default_string="?", expect=["b"])
    yield Example(1, np.zeros((0, 3), np.int64), **table, expect=[np.zeros((0, 3), object)])
