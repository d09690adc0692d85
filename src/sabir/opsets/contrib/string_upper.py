"""StringUpper: strings with their ASCII letters in upper case."""

import string
from collections.abc import Iterator

from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

string_upper = Operator(
    "StringUpper", domain="ai.onnx.contrib", summary="Each string with its ASCII letters in upper case."
)

v1 = strings.declare(string_upper, "The input's shape.")

_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return strings.mapped(x, lambda word: word.translate(_UPPER))


@string_upper.examples
def examples() -> Iterator[Example]:
    yield Example(1, [["aé", "ß1"], ["", "Bc"]], expect=[[["Aé", "ß1"], ["", "BC"]]])
