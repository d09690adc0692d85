"""What notebooks show of models, graphs, functions, nodes, findings: tables, pictures of small graphs."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from sabir.base import CheckError, Finding, SchemaError, UnsupportedError, counted, shown_number
from sabir.drawing._markup import Number, fragment, heading, note, table
from sabir.drawing._picture import check_drawable, graph_of, operator_text, type_text
from sabir.drawing._svg import svg
from sabir.ir import Function, Graph, Model, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sabir.drawing._markup import Cell
    from sabir.ir import Attribute, Value

_Item = TypeVar("_Item")
_MOST_BOXES = 60  # of a picture in a notebook; more are no quick look
_MOST_PORTS = 20
_FEW = 3
_FINDING_COLUMNS = ("severity", "rule", "location", "message", "what to do")


def bundle(item: object) -> dict[str, str]:
    """Return what a notebook shows of a model, a graph, a function, a node or findings, by MIME type.

    A graph of at most 60 nodes, inputs and outputs is a picture too, as an image in SVG. No tensor is read,
    and the length is bounded. There is no form of other objects.

    >>> list(bundle(sabir.Builder(21).model().graph)), list(bundle(3))
    (['text/html', 'image/svg+xml'], [])
    """
    if isinstance(item, (Model, Function, Graph)):
        picture, instead = _picture(graph_of(item))
        parts = [*_about(item), picture or instead]
        return {"text/html": fragment(*parts)} | ({"image/svg+xml": picture} if picture else {})
    if isinstance(item, Node):
        return {"text/html": fragment(*_node(item))}
    if isinstance(item, Finding):
        return {"text/html": findings_html([item])}
    if isinstance(item, CheckError):
        return {"text/html": findings_html(item.findings)}
    return {}


def findings_html(findings: Iterable[Finding]) -> str:
    """Return findings as a table, with their number.

    >>> 'no findings' in findings_html([])
    True
    """
    found = list(findings)
    rows = ((f.severity, f.rule, str(f.location), f.message, f.hint) for f in found)
    title = heading(counted(len(found), "finding") if found else "no findings")
    return fragment(title, table(_FINDING_COLUMNS, rows))


def _picture(graph: Graph) -> tuple[str, str]:
    """Return the picture of a graph, or "" and what is shown instead."""
    try:
        check_drawable(graph, _MOST_BOXES)
        return svg(graph), ""
    except (SchemaError, UnsupportedError) as error:
        reason = str(error)
    counts = Counter(map(operator_text, graph)).most_common()
    rows = [(name, Number(f"{count:,}")) for name, count in counts]
    return "", table(["operator", Number("nodes")], rows, _MOST_PORTS) + note(f"no picture: {reason}")


def _about(item: Model | Function | Graph) -> Iterator[str]:
    """Yield the parts that describe an object with a graph."""
    if isinstance(item, Model):
        yield heading(f"Model {item.graph.name}")
        yield table((), _model_rows(item))
    elif isinstance(item, Function):
        yield heading(f"Function {'.'.join(filter(None, (item.domain, item.name)))}")
        rows = [(name, "required" if a is None else _content(a)) for name, a in item.attributes.items()]
        yield table(["attribute", "default"], rows, _MOST_PORTS)
    else:
        yield heading(f"Graph {item.name}: {counted(len(item), 'node')}")
    graph = graph_of(item)
    inputs = (v for v in graph.inputs if v not in graph.initializers)
    yield table(["input", "type"], _first(inputs, _typed), _MOST_PORTS)
    outputs = (v for v in graph.outputs if v is not None)
    yield table(["output", "type"], _first(outputs, _typed), _MOST_PORTS)


def _model_rows(model: Model) -> Iterator[tuple[str, str]]:
    producer = f"{model.producer_name} {model.producer_version}".strip()
    if producer:
        yield "producer", producer
    imports = (f"{d or 'ai.onnx'} {version}" for d, version in islice(model.opsets.items(), _MOST_PORTS))
    yield "format", f"IR {model.ir_version}, opsets {', '.join(imports) or 'none'}"
    contents = [counted(len(model.graph), "node")]
    for count, noun in ((len(model.functions), "function"), (len(model.training), "training step")):
        contents += [counted(count, noun)] if count else []
    yield "contents", ", ".join(contents)
    constants = model.graph.initializers.values()
    elements = sum(math.prod(max(0, size) for size in c.shape) for c in constants)
    if constants:
        yield "parameters", f"{shown_number(elements)} in {counted(len(constants), 'initializer')}"
    if model.path is not None:
        yield "file", str(model.path)
    if model.doc:
        yield "doc", model.doc


def _node(node: Node) -> Iterator[str]:
    """Yield the parts that describe a node: its operands and what computes them, results, attributes."""
    yield heading(f"{operator_text(node)} {node.name}")
    yield table(["input", "type", "from"], _first(node.inputs, _operand), _MOST_PORTS)
    yield table(["output", "type", "read by"], _first(node.outputs, _result), _MOST_PORTS)
    attributes = ((name, a.type, _content(a)) for name, a in node.attributes.items())
    yield table(["attribute", "type", "value"], attributes, _MOST_PORTS)


def _first(items: Iterable[_Item], row: Callable[[_Item], Sequence[Cell]]) -> Iterator[Sequence[Cell]]:
    """Yield the rows of the items that a table shows; the others are only counted."""
    return (row(item) if place < _MOST_PORTS else () for place, item in enumerate(items))


def _typed(value: Value) -> tuple[Cell, ...]:
    return value.name, type_text(value) or "?"


def _operand(value: Value | None) -> tuple[Cell, ...]:
    if value is None:
        return "", "left out", ""
    source = value.node
    origin = "initializer" if value.constant is not None else "input" if value.is_input else "nothing"
    return value.name, type_text(value) or "?", origin if source is None else _called(source)


def _result(value: Value | None) -> tuple[Cell, ...]:
    if value is None:
        return "", "left out", ""
    users = [use.user for use in value.uses]
    first = [_called(user) if isinstance(user, Node) else "output" for user in users[:_FEW]]
    more = [f"{len(users) - _FEW:,} more"] if len(users) > _FEW else []
    return value.name, type_text(value) or "?", ", ".join([*first, *more]) or "nothing"


def _called(node: Node) -> str:
    return f"{operator_text(node)} {node.name}".rstrip()


def _content(attribute: Attribute) -> str:
    """Return the value of an attribute, of a graph its number of nodes; no tensor is read."""
    if attribute.graphs:
        return ", ".join(counted(len(graph), "node") for graph in attribute.graphs[:_FEW])
    return attribute.content


__all__ = ["bundle", "findings_html"]
