"""The ONNX text syntax: what `onnx.parser` reads and `onnx.printer` writes, over the model objects.

Nothing is lost: `parse(text(model))` says all that the model says. A few things that the standard syntax has
no words for are spelled as close to it as possible: quoted names of attributes, operators, domains and
subgraphs, lists of tensors, graphs and types, sparse tensors, dimension expressions without quotes, 4-bit and
2-bit integers one by one, bytes. All the rest stands in notes, `@{doc_string: "..."}`, which are comments to
other readers where they have lines of their own. `docs/text.md` has the grammar.
"""

from __future__ import annotations

from sabir.syntax._read_model import parse, parse_function, parse_graph, parse_node
from sabir.syntax._write_model import LISTED_ELEMENTS, listing, text, text_chunks, write_text

__all__ = [
    "LISTED_ELEMENTS",
    "listing",
    "parse",
    "parse_function",
    "parse_graph",
    "parse_node",
    "text",
    "text_chunks",
    "write_text",
]
