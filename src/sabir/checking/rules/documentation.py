"""Documentation strings, wherever the format has one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.base import Location, quote
from sabir.checking._examples import RELU, X, Y, in_graph, in_model
from sabir.checking._rule import Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import GraphSite, Survey

# HTML elements that occur in documentation; names that Python prints in angle brackets (<input>, <module>,
# <object ...>) are excluded, since exporters write stack traces into documentation
_PAIRED = [
    "a", "abbr", "b", "big", "blockquote", "body", "center", "dd", "del", "div", "dl", "dt", "em",
    "font", "h1", "h2", "h3", "h4", "h5", "h6", "head", "html", "i", "ins", "kbd", "li", "ol", "p",
    "pre", "q", "s", "script", "small", "span", "strike", "strong", "style", "sub", "sup", "table",
    "tbody", "td", "th", "thead", "title", "tr", "tt", "u", "ul",
]  # fmt: skip
_LONE = ["br", "hr", "img", "wbr"]
_ATTRIBUTE = r"""\s+[A-Za-z][\w:-]*\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=]+)"""
_TAG = re.compile(rf"<({'|'.join((*_PAIRED, *_LONE))})((?:{_ATTRIBUTE})*)\s*/?>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--|<!doctype\b", re.IGNORECASE)
_CODE = re.compile(r"```.*?(?:```|\Z)|(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def html_in(text: str) -> str:
    """Return the first HTML tag in a text, or ""; code in Markdown is not HTML."""
    if "<" not in text:
        return ""
    plain = _CODE.sub(" ", text)
    comment = _COMMENT.search(plain)
    if comment:
        return comment[0]
    lower = plain.lower()
    for tag in _TAG.finditer(plain):
        name = tag[1].lower()
        if tag[2] or name in _LONE or f"</{name}>" in lower:  # `<b>` alone may be a placeholder
            return tag[0]
    return ""


_HTML = 'doc_string: "The <b>positive</b> part.<br/>"'


@rule(
    "META003",
    "HTML and other text-markup languages MAY NOT be used in documentation strings.",
    source="ir.txt",
    over="model",
    severity="warning",
    group="style",
    note="it affects no result, and many viewers of Markdown show HTML",
    bad=(
        in_graph(f'{RELU} name: "g" {X} {Y} {_HTML}'),
        in_model(f'{_HTML} graph {{ {RELU} name: "g" {X} {Y} }}'),
        in_graph(f'node {{ op_type: "Relu" input: "x" output: "y" {_HTML} }} name: "g" {X} {Y}'),
        in_graph(f'{RELU} name: "g" {X} {Y.removesuffix("}")} {_HTML} }}'),
    ),
    good=(
        in_graph(
            f'{RELU} name: "g" doc_string: "Of **x** the part > 0, as in `<b>`; <x> is at least 0." {X} {Y}'
        ),
        in_graph(f'{RELU} name: "g" doc_string: "File \\"<stdin>\\"(1): <module>" {X} {Y}'),
    ),
)
def plain_documentation(survey: Survey) -> Iterator[Problem]:
    """Doc strings of models, graphs, nodes, values, functions, attributes and tensors have no HTML."""
    for text, where in _documentation(survey):
        found = html_in(text)
        if found:
            yield Problem(f"the documentation has HTML: {quote(found)}", where, "write Markdown without HTML")


def _documentation(survey: Survey) -> Iterator[tuple[str, Location]]:
    yield survey.model.doc, Location()
    for site in survey.graphs:
        yield from _in_graph(site)
    for alike in survey.attributes:
        if alike[0].attribute.doc:
            yield from ((site.attribute.doc, site.where) for site in alike)
    for tensor in survey.tensors:
        text = tensor.proto.doc_string if tensor.proto is not None else ""
        if type(text) is str and text:
            yield text, tensor.where


def _in_graph(site: GraphSite) -> Iterator[tuple[str, Location]]:
    graph = site.graph
    yield graph.doc, site.where
    for index, node in enumerate(site.nodes):
        if node.doc:
            yield node.doc, site.at_node(index)
    for value in site.values:
        if value.doc:
            yield value.doc, site.at_value(value)
    for value in graph.orphan_value_info:
        yield value.doc, site.where.at("value_info", index=value.value_info_index, name=value.name)
    for index, (value, described) in graph.output_infos.items():
        yield described.doc, site.where.at("output", index=index, name=value.name)
