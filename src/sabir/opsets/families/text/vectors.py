"""Tables of strings and vectors of integers, as attributes write them."""

from __future__ import annotations

from sabir.base import InferenceError
from sabir.opsets.families.text.strings import table_of as strings_of
from sabir.schema import Attribute

TABLE = Attribute(
    "map", "string", "Lines of a string, a tabulator and integers with spaces between them.", required=True
)


def table_of(text: str) -> dict[str, tuple[int, ...]]:
    """Return the vectors of strings; raises InferenceError for a text that is no table of integers."""
    return {word: numbers_of(numbers) for word, numbers in strings_of(text).items()}


def numbers_of(text: str) -> tuple[int, ...]:
    """Return integers with spaces between them; raises InferenceError for other text."""
    try:
        return tuple(map(int, text.split()))
    except ValueError as error:
        raise InferenceError(f"{text!r} is no list of integers") from error


def size_of(table: dict[str, tuple[int, ...]]) -> int:
    """Return the size of the vectors; raises InferenceError for different sizes and an empty table."""
    sizes = {len(numbers) for numbers in table.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise InferenceError(f"the vectors of `map` must have one size above 0, and have {sorted(sizes)}")
    return sizes.pop()
