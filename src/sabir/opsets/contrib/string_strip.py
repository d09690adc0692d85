"""StringStrip: strings without white space at their ends."""

from collections.abc import Iterator

from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

string_strip = Operator(
    "StringStrip", domain="ai.onnx.contrib", summary="Each string without ASCII white space at its ends."
)

v1 = strings.declare(string_strip, "The input's shape.")

_SPACE = " \t\n\r\f\v"


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return strings.mapped(x, lambda word: word.strip(_SPACE))


@string_strip.examples
def examples() -> Iterator[Example]:
    yield Example(1, ["  a b \n\t", "\u00a0a", ""], expect=[["a b", "\u00a0a", ""]])
