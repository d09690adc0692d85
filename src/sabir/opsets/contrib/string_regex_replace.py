"""StringRegexReplace: strings with the matches of a regular expression replaced."""

from collections.abc import Iterator
from typing import Any

from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.families.text import strings
from sabir.opsets.families.text.patterns import Work, compiled
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

string_regex_replace = Operator(
    "StringRegexReplace",
    domain="ai.onnx.contrib",
    summary="Each string with the matches of an expression in RE2's syntax replaced.",
)

v1 = strings.without_kernels(
    string_regex_replace.first(
        1,
        inputs=[
            Input("text", strings.TEXT, "Strings, of any shape."),
            Input("pattern", strings.TEXT, "The expression, a tensor of one element."),
            Input(
                "rewrite",
                strings.TEXT,
                r"What replaces a match, a tensor of one element; \1 is the first group, \0 the match.",
            ),
        ],
        outputs=[Output("output", strings.TEXT, "The shape of `text`.")],
        attributes=[
            Attribute("global_replace", "int", "0: only the first match is replaced.", default=1),
        ],
    )
)


@v1.infer
def infer(text: TensorType, pattern: TensorType, rewrite: TensorType, /) -> TensorType:
    check_one("pattern", pattern)
    check_one("rewrite", rewrite)
    return TensorType(text.element, text.shape)


@v1.evaluate
def evaluate(text: Array, pattern: Array, rewrite: Array, /, *, global_replace: int) -> Array:
    program = compiled(strings.as_str(as_number("pattern", pattern)), groups=True)
    parts, work = _parts(strings.as_str(as_number("rewrite", rewrite)), program.groups), Work()

    def rewritten(match: Any) -> str:
        return "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)

    def replaced(word: str) -> str:
        work.count(program, len(word))
        return program.sub(rewritten, word, 0 if global_replace else 1)

    return strings.mapped(text, replaced)


def _parts(rewrite: str, groups: int) -> list[str | int]:
    """Return the texts and the numbers of groups that replace a match."""
    parts: list[str | int] = []
    place = 0
    while place < len(rewrite):
        character, following = rewrite[place], rewrite[place + 1 : place + 2]
        place += 1 if character != "\\" else 2
        if character != "\\":
            parts.append(character)
        elif following == "\\":
            parts.append(following)
        elif following.isdecimal() and int(following) <= groups:
            parts.append(int(following))
        else:
            raise ValueError(f"`rewrite` has \\{following}, and the pattern has {groups} groups")
    return parts


@string_regex_replace.examples
def examples() -> Iterator[Example]:
    x = ["abc aab", "xé"]
    yield Example(1, x, ["a+"], [r"<\0>"], expect=[["<a>bc <aa>b", "xé"]])
    yield Example(1, x, ["a+"], ["Z"], global_replace=0, expect=[["Zbc aab", "xé"]])
    yield Example(1, [["abc"]], "(b)(c)", r"\2\1", expect=[[["acb"]]])
    yield Example(1, ["abc"], "b|(z)", r"[\1\\]", expect=[["a[\\]c"]])
    yield Example(1, ["abc"], ["x*"], ["-"], expect=[["-a-b-c-"]])
