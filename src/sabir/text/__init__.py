"""The ONNX text syntax: what `onnx.parser` reads and `onnx.printer` writes, over the model objects.

A few things that the standard syntax has no words for are spelled as close to it as possible, and read
back: quoted names of attributes, operators, domains and subgraphs, lists of tensors, graphs and types,
sparse tensors, dimension expressions without quotes, and 4-bit and 2-bit integers one by one.
"""

from __future__ import annotations

from sabir.text._read_model import parse, parse_function, parse_graph, parse_node
from sabir.text._write_model import text

__all__ = ["parse", "parse_function", "parse_graph", "parse_node", "text"]
