"""RegexFullMatch: which strings a regular expression matches completely."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.text.patterns import Work, as_bytes, compiled
from sabir.opsets.typing import Array
from sabir.schema import BOOL, STRING, Attribute, Constraint, Example, Input, Operator, Output

regex_full_match = Operator(
    "RegexFullMatch", summary="Whether a regular expression in RE2's syntax matches each whole string."
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

v20.absent("lower", "kernels compute numbers, no texts")
v20.absent("downgrade", "no older operator compares text with a pattern")


@v20.infer
def infer(x: TensorType, /) -> TensorType:
    return TensorType(_BOOLEAN, x.shape)


@v20.evaluate
def evaluate(x: Array, /, *, pattern: str | None) -> Array:
    if pattern is None:
        raise ValueError("needs a `pattern`")
    program, work = compiled(pattern), Work()
    found: Array = np.empty(x.size, np.bool_)
    for place, word in enumerate(x.ravel().tolist()):
        text = as_bytes(word)
        work.count(program, len(text))
        found[place] = program.fullmatch(text) is not None
    return found.reshape(x.shape)


@regex_full_match.examples
def examples() -> Iterator[Example]:
    x = ["www.google.com", "www.facebook.com", "www.bbc.co.uk"]
    pattern = r"www\.[\w.-]+\.\bcom\b"  # the standard's own example
    yield Example(20, x, pattern=pattern, expect=[[True, True, False]])
    yield Example(20, [["a", ""], ["ab", "ba"]], pattern="a|ab", expect=[[[True, False], [True, False]]])
    yield Example(20, "é", pattern=".", expect=[np.array(True)])  # ruff: ignore[boolean-positional-value-in-call]  a value
    words = ["Σ", "\u0663", "_", "\n"]  # \d and \w are ASCII, . is no line feed, in RE2
    yield Example(20, words, pattern=r"\w", expect=[[False, False, True, False]])
    yield Example(20, words, pattern=r".|\pN", expect=[[True, True, True, False]])
    yield Example(20, words, pattern="(?s).", expect=[np.ones(4, bool)])
    long = ["a" * 40 + "!"]  # a backtracking engine would not return
    yield Example(20, long, pattern="(a|a)*", expect=[[False]])
    yield Example(20, np.zeros((2, 0), object), pattern="", expect=[np.zeros((2, 0), bool)])
