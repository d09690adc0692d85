"""RegexFullMatch: which strings a regular expression matches completely."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import re2  # pyright: ignore[reportMissingTypeStubs] - it has none

from sabir.base import check_time, spend_work
from sabir.elements import element
from sabir.ir import TensorType
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
_MEMORY = 8 << 20  # bytes that RE2 may use for one pattern: its program and the cached states
_CACHED = 16  # patterns
_WORK = 8  # bytes that numpy writes in the time of one RE2 instruction on one byte
_UNCOUNTED = 1 << 22

v20.absent("lower", "kernels compute numbers, no texts")
v20.absent("downgrade", "no older operator compares text with a pattern")


@v20.infer
def infer(x: TensorType, /) -> TensorType:
    return TensorType(_BOOLEAN, x.shape)


@v20.evaluate
def evaluate(x: Array, /, *, pattern: str | None) -> Array:
    if pattern is None:
        raise ValueError("needs a `pattern`")
    program = _compiled(pattern)
    found: Array = np.empty(x.size, np.bool_)
    pending, price = 0, _WORK * program.programsize
    for place, word in enumerate(x.ravel().tolist()):
        text = word if isinstance(word, bytes) else word.encode()
        pending += price * (len(text) + 1)
        if pending > _UNCOUNTED:
            check_time()
            spend_work(pending)
            pending = 0
        found[place] = program.fullmatch(text) is not None
    return found.reshape(x.shape)


@functools.lru_cache(_CACHED)
def _compiled(pattern: str) -> Any:
    """Return the program of a pattern; raises ValueError for an invalid or too large one."""
    library: Any = re2
    options = library.Options()
    options.log_errors = False  # the exception reports it; standard error belongs to the caller
    options.never_capture = True  # the memory for groups grows with the square of their number
    options.max_mem = _MEMORY
    try:
        program = library.compile(pattern, options)
    except library.error as error:
        message = error.args[0] if error.args else error
        reason = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        if "too large" in reason:
            reason = f"a pattern of {len(pattern):,} characters takes more than the {_MEMORY >> 20} MiB that"
            raise ValueError(f"{reason} RE2 may use; write it with fewer or smaller repetitions") from error
        raise ValueError(f"the pattern is not RE2's syntax: {reason}") from error
    library.purge()  # its cache would keep 128 programs, each with up to the maximum of memory
    return program


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
