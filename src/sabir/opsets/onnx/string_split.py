"""StringSplit: strings split at a delimiter."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, tensors

string_split = Operator(
    "StringSplit", summary="The substrings between delimiters, along a new last dimension, and their number."
)

T1 = Constraint("T1", STRING)
T2 = Constraint("T2", STRING)
T3 = Constraint("T3", tensors("int64"))

v20 = string_split.first(
    20,
    inputs=[Input("X", T1, "Strings, of any shape.", differentiable=False)],
    outputs=[
        Output(
            "Y", T2, 'The input\'s shape and one dimension more; short rows end in "".', differentiable=False
        ),
        Output("Z", T3, "The input's shape: the number of substrings of each.", differentiable=False),
    ],
    attributes=[
        Attribute("maxsplit", "int", "The maximum of splits per string, from the left; no limit if absent."),
        Attribute("delimiter", "string", "The delimiter; if absent or empty, any run of white space."),
    ],
)

_LENGTHS = element("int64")

v20.absent("lower", "kernels compute numbers, no texts")
v20.absent("downgrade", "no older operator divides text")


@v20.infer
def infer(x: TensorType, /) -> tuple[TensorType, TensorType]:
    if x.shape is None:
        return TensorType(x.element), TensorType(_LENGTHS)
    width = 0 if x.size == 0 else None
    return TensorType(x.element, (*x.shape, width)), TensorType(_LENGTHS, x.shape)


@v20.evaluate
def evaluate(x: Array, /, *, delimiter: str | None, maxsplit: int | None) -> tuple[Array, Array]:
    limit = -1 if maxsplit is None else maxsplit
    words: list[str] = x.ravel().tolist()
    if delimiter:
        parts = [word.split(delimiter, limit) for word in words]
    else:  # the remainder after the last split loses its trailing white space, too
        parts = [word.strip().split(None, limit) for word in words]
    lengths = np.array([len(p) for p in parts], np.int64)
    longest = max(map(len, parts), default=0)
    rows: Array = np.full(allotted((len(parts), longest), np.dtype(object), sum(map(len, parts))), "", object)
    for row, part in zip(rows, parts, strict=True):
        row[: len(part)] = part
    return rows.reshape(*x.shape, rows.shape[1]), lengths.reshape(x.shape)


@string_split.examples
def examples() -> Iterator[Example]:
    x = ["abc.com", "a.b.", ""]
    y = [["abc", "com", ""], ["a", "b", ""], ["", "", ""]]
    yield Example(20, x, delimiter=".", outputs=2, expect=[y, [2, 3, 1]])
    once = [["abc", "com"], ["a", "b."], ["", ""]]
    yield Example(20, x, delimiter=".", maxsplit=1, outputs=2, expect=[once, [2, 2, 1]])
    spaced = [["  hello   world  ", " "]]
    words = [[["hello", "world"], ["", ""]]]
    for delimiter in (None, ""):
        yield Example(20, spaced, delimiter=delimiter, outputs=2, expect=[words, [[2, 0]]])
    many = " a  b  c "
    yield Example(20, many, maxsplit=1, outputs=2, expect=[["a", "b  c"], 2])
    yield Example(20, many, maxsplit=0, outputs=2, expect=[["a  b  c"], 1])
    doubled = ["o--n", "----"]
    yield Example(20, doubled, delimiter="--", outputs=2, expect=[[["o", "n", ""], ["", "", ""]], [2, 3]])
    none = [np.zeros((0, 2, 0), object), np.zeros((0, 2), np.int64)]
    yield Example(20, np.zeros((0, 2), object), outputs=2, expect=none)
