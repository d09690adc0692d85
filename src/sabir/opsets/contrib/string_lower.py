"""StringLower: strings in lower case."""

from collections.abc import Iterator

from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

string_lower = Operator(
    "StringLower",
    domain="ai.onnx.contrib",
    summary="Each string with those characters in lower case whose lower case is one character.",
)

v1 = strings.declare(string_lower, "The input's shape.")


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return strings.mapped(x, lambda word: "".join(map(_lower, word)))


def _lower(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


@string_lower.examples
def examples() -> Iterator[Example]:
    yield Example(1, ["AÉ", "İb", ""], expect=[["aé", "İb", ""]])
