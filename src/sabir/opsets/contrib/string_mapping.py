"""StringMapping: strings replaced by others that a table has."""

from collections.abc import Iterator

from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator

string_mapping = Operator(
    "StringMapping",
    domain="ai.onnx.contrib",
    summary="The value that a table has of each string, or the string itself.",
)

v1 = strings.declare(
    string_mapping,
    "The input's shape.",
    [Attribute("map", "string", "Lines of a string, a tabulator and its value.", required=True)],
)


@v1.evaluate
def evaluate(x: Array, /, *, map: str) -> Array:  # ruff: ignore[builtin-argument-shadowing]  the published name
    table = strings.table_of(map)
    return strings.mapped(x, lambda word: table.get(word, word))


@string_mapping.examples
def examples() -> Iterator[Example]:
    yield Example(1, [["a", "x"]], map="a\tb\nc\td", expect=[[["b", "x"]]])
