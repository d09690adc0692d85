"""Models, graphs, functions and nodes from the text syntax of the standard."""

from __future__ import annotations

from typing import Any

import sabir.syntax
from sabir.compat.onnx._errors import CompatFailure, raising
from sabir.serial import to_proto


class ParseError(CompatFailure):
    """Text that is invalid in the text syntax; the message has the line, the column and the text."""


def parse_model(model_text: str) -> Any:
    """Return the ModelProto of a text; raises ParseError."""
    with raising(ParseError):
        return to_proto(sabir.syntax.parse(model_text))


def parse_graph(graph_text: str) -> Any:
    """Return the GraphProto of a text; raises ParseError."""
    with raising(ParseError):
        return to_proto(sabir.syntax.parse_graph(graph_text))


def parse_function(function_text: str) -> Any:
    """Return the FunctionProto of a text; raises ParseError."""
    with raising(ParseError):
        return to_proto(sabir.syntax.parse_function(function_text))


def parse_node(node_text: str) -> Any:
    """Return the NodeProto of a text; raises ParseError."""
    with raising(ParseError):
        return to_proto(sabir.syntax.parse_node(node_text))


__all__ = ["ParseError", "parse_function", "parse_graph", "parse_model", "parse_node"]
