"""RegexFullMatch: which strings a regular expression describes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import re2  # pyright: ignore[reportMissingTypeStubs] - it has none

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.typing import Array
from sabir.schema import BOOL, STRING, Attribute, Constraint, Example, Input, Operator, Output

regex_full_match = Operator(
    "RegexFullMatch", summary="Whether a regular expression of RE2's syntax matches the whole of each string."
)

T1 = Constraint("T1", STRING)
T2 = Constraint("T2", BOOL)

v20 = regex_full_match.first(
    20,
    inputs=[Input("X", T1, "Strings, of any shape.", differentiable=False)],
    outputs=[Output("Y", T2, "The input's shape.", differentiable=False)],
    attributes=[Attribute("pattern", "string", "The expression, matched in time linear in the string.")],
)

_BOOLEAN = element("bool")


@v20.infer
def infer(x: TensorType, /) -> TensorType:
    return TensorType(_BOOLEAN, x.shape)


@v20.evaluate
def evaluate(x: Array, /, *, pattern: str | None) -> Array:
    if pattern is None:
        raise ValueError("needs a `pattern`")
    matches = _compiled(pattern).fullmatch
    found = [matches(word) is not None for word in x.ravel().tolist()]
    return np.array(found, np.bool_).reshape(x.shape)


def _compiled(pattern: str) -> Any:
    library: Any = re2
    options = library.Options()
    options.log_errors = False  # the error says it, and standard error is not ours
    try:
        return library.compile(pattern, options)  # it remembers the last ones
    except library.error as error:
        told = error.args[0] if error.args else error
        reason = told.decode(errors="replace") if isinstance(told, bytes) else told
        raise ValueError(f"the pattern is not RE2's syntax: {reason}") from error


@regex_full_match.examples
def examples() -> Iterator[Example]:
    x = np.array(["www.google.com", "www.facebook.com", "www.bbc.co.uk"], object)
    pattern = r"www\.[\w.-]+\.\bcom\b"  # the standard's own example
    yield Example(20, x, pattern=pattern, expect=[np.array([True, True, False])])
    yield Example(20, np.array([["a", ""], ["ab", "ba"]], object), pattern="a|ab", expect=[
        np.array([[True, False], [True, False]])])  # fmt: skip
    yield Example(20, np.array("é", object), pattern=".", expect=[np.array(True)])  # ruff: ignore[boolean-positional-value-in-call]  a value
    words = np.array(["Σ", "\u0663", "_", "\n"], object)  # \d and \w are ASCII, . is no line feed, in RE2
    yield Example(20, words, pattern=r"\w", expect=[np.array([False, False, True, False])])
    yield Example(20, words, pattern=r".|\pN", expect=[np.array([True, True, True, False])])
    yield Example(20, words, pattern="(?s).", expect=[np.ones(4, bool)])
    long = np.array(["a" * 40 + "!"], object)  # a backtracking engine would not come back
    yield Example(20, long, pattern="(a|a)*", expect=[np.array([False])])
    yield Example(20, np.zeros((2, 0), object), pattern="", expect=[np.zeros((2, 0), bool)])
