"""Tokenizer: strings divided into tokens by regular expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType, is_nonnegative, sub
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.families.text.patterns import Work, as_bytes, compiled
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, at_least

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.opsets.typing import Array, Strings

tokenizer = Operator(
    "Tokenizer",
    domain="com.microsoft",
    summary="The tokens of each string, between matches of `separators` or matched by `tokenexp`.",
)

T = Constraint("T", STRING)

v1 = tokenizer.first(
    1,
    inputs=[Input("X", T, "Strings, [C] or [N, C].")],
    outputs=[
        Output(
            "Y",
            T,
            "The tokens, [C, D] or [N, C, D], where D is the largest number of tokens. "
            "The shape is [0] or [N, 0] if there are no strings, and D is 0 if there are no tokens.",
        )
    ],
    attributes=[
        Attribute("mark", "int", "Not 0: tokens start with U+0002 and end with U+0003.", required=True),
        Attribute(
            "mincharnum",
            "int",
            "Shorter tokens are left out; 1 where tokens are characters.",
            required=True,
            values=at_least(1),
        ),
        Attribute("pad_value", "string", "Fills the rows with fewer tokens.", required=True),
        Attribute(
            "separators",
            "strings",
            'RE2 expressions; each divides what the previous ones left. [""] divides into characters.',
        ),
        Attribute(
            "tokenexp",
            "string",
            'An RE2 expression; tokens are its longest matches. "." divides into characters. '
            "Ignored if there are `separators`.",
        ),
    ],
)

_START, _END = "\x02", "\x03"
_CHARACTERS = re.compile(r"\[(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?)+\]\+")
"""A class of ASCII characters, repeated: RE2 and Python find the same runs."""
_FIRST_OF_CHARACTER = 0xC0  # bytes from 0x80 to 0xBF continue a character in UTF-8
_CONTINUES = 0x80

v1.absent("lower", "kernels compute numbers, no texts")
v1.absent("gradient", "texts have no derivatives")


@v1.infer
def infer(x: TensorType, /, *, mincharnum: int, separators: Strings, tokenexp: str | None) -> TensorType:
    _check(mincharnum, separators, tokenexp)
    check_rank("X", x, 1, 2)
    if x.shape is None:
        return TensorType(x.element)
    if 0 in x.shape:
        return TensorType(x.element, (*x.shape[:-1], 0))
    if all(is_nonnegative(sub(d, 1)) for d in x.shape):
        return TensorType(x.element, (*x.shape, None))
    return TensorType(x.element)  # the rank depends on whether there are strings


def _check(least: int, separators: Strings, pattern: str | None) -> None:
    """Raise InferenceError for attributes that name no division."""
    if not separators and not pattern:
        raise InferenceError("`separators` or `tokenexp` must be given and not be empty")
    if _by_character(separators, pattern) and least > 1:
        raise InferenceError(f"tokens of one character are shorter than `mincharnum`, {least}")


def _by_character(separators: Strings, pattern: str | None) -> bool:
    return list(separators) == [""] if separators else pattern == "."


@v1.evaluate
def evaluate(
    x: Array, /, *, mark: int, mincharnum: int, pad_value: str, separators: Strings, tokenexp: str | None
) -> Array:
    hold(infer, x, mincharnum=mincharnum, separators=separators, tokenexp=tokenexp)
    rows = [as_bytes(word) for word in x.ravel().tolist()]
    if not rows:
        return np.empty((*x.shape[:-1], 0), object)
    if _by_character(separators, tokenexp):
        found = [list(row.decode()) for row in rows]
    elif separators:
        found = _between(rows, separators, mincharnum)
    else:
        found = _matched(rows, tokenexp or "", mincharnum)
    if mark and any(found):
        found = [[_START, *tokens, _END] for tokens in found]
    longest = max(map(len, found))
    shape = allotted((len(found), longest), np.dtype(object), sum(map(len, found)))
    y: Array = np.full(shape, pad_value, object)
    for row, tokens in zip(y, found, strict=True):
        row[: len(tokens)] = tokens
    return y.reshape(*x.shape, longest)


def _between(rows: Sequence[bytes], separators: Sequence[str], least: int) -> list[list[str]]:
    """Return the parts of each row between separators."""
    programs, work = [compiled(s, longest=True) for s in separators], Work()
    found: list[list[str]] = []
    for row in rows:
        parts = [row]
        for program in programs:
            parts = [p for part in parts for p in _split(program, part, work)]
        texts = [part.decode() for part in parts]
        found.append([text for text in texts if len(text) >= least])
    return found


def _split(program: Any, text: bytes, work: Work) -> Iterator[bytes]:
    """Yield the parts of a text; an empty separator removes the character after it."""
    start = 0
    while start < len(text):
        work.count(program, len(text) - start)
        match = program.search(text, start)
        if match is None:
            break
        if match.start() > start:
            yield text[start : match.start()]
        start = match.end() if match.end() > match.start() else _after(text, match.end())
    if start < len(text):
        yield text[start:]


def _matched(rows: Sequence[bytes], pattern: str, least: int) -> list[list[str]]:
    """Return the matches of a pattern in each row; an empty match passes over a character."""
    program, work = compiled(pattern, longest=True), Work()
    found: list[list[str]] = []
    if _CHARACTERS.fullmatch(pattern):
        work.count(program, sum(map(len, rows)))
        runs = re.compile(pattern.encode())  # a search of RE2 takes as long as a row
        return [[token.decode() for token in runs.findall(row) if len(token) >= least] for row in rows]
    for row in rows:
        tokens: list[str] = []
        start = 0
        while start < len(row):
            work.count(program, len(row) - start)
            match = program.search(row, start)
            if match is None:
                break
            token = match.group().decode()
            if len(token) >= least:
                tokens.append(token)
            start = match.end() if token else _after(row, match.end())
        found.append(tokens)
    return found


def _after(text: bytes, place: int) -> int:
    """Return the place after the character at a place."""
    place += 1
    while place < len(text) and _CONTINUES <= text[place] < _FIRST_OF_CHARACTER:
        place += 1
    return place


def _call(x: Any, expect: Any = None, **changed: Any) -> Example:
    """Return a call that divides at spaces, with some attributes changed."""
    attributes: dict[str, Any] = {
        "mark": 0,
        "mincharnum": 1,
        "pad_value": "#",
        "separators": [" "],
        **changed,
    }
    return Example(1, x, expect=None if expect is None else [expect], **attributes)


@tokenizer.examples
def examples() -> Iterator[Example]:
    x = ["Hello World", "I love computer science !"]
    hello, love = ["Hello", "World"], ["I", "love", "computer", "science", "!"]
    yield _call(x, [[*hello, "#", "#", "#"], love])
    yield _call(x, [["\x02", *hello, "\x03", "#", "#", "#"], ["\x02", *love, "\x03"]], mark=1)
    yield _call(x, [hello, ["computer", "science"]], mincharnum=5)
    yield _call([["a b", "c"], ["", "d e"]], [[["a", "b"], ["c", "#"]], [["#", "#"], ["d", "e"]]])
    yield _call([["a b", ""]], mark=1)
    yield _call(["", "  "], np.zeros((2, 0), object), mark=1)
    for shape in ((0,), (2, 0), (0, 2)):
        yield _call(np.zeros(shape, object), np.zeros((*shape[:-1], 0), object))
    for text, separators in (
        ("déf", [""]), ("ab ab", [" ", "^a"]), ("ab ab", ["^a", " "]), ("aXYbXc", ["X", "XY"]),
        ("aXYbXc", ["XY", "X"]), ("aXYbXc", ["a|aX"]), ("aéb", ["x*"]), ("ab cd", [r"\b"]),
        ("a.b,c", ["[.,]"]), ("ab..cd", [r"\.*$"]), ("éaé", ["é"]),
    ):  # fmt: skip
        yield _call([text], separators=separators)
    for text, pattern in (
        ("dé\nf", "."), ("abc12de", "[a-z]+"), ("abc12de", "a|ab"), ("abc12de", "[0-9]*"), ("aaa", "^a"),
        ("éaé", "é|a*"), ("12", "[a-z]"), ("a\nb", "(?s)a.b"), ("abcabc", "(a)(b)"),
    ):  # fmt: skip
        yield _call([text], separators=None, tokenexp=pattern)
    yield _call(["ab"], [["a"]], separators=["b"], tokenexp="b")
