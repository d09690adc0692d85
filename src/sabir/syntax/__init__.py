"""The ONNX text syntax: what `onnx.parser` reads and `onnx.printer` writes, over the model objects.

Nothing is lost: `parse(text(model))` is the same model. Where the standard syntax does not suffice, a few
forms extend it: quoted names of attributes, operators, domains and subgraphs, lists of tensors, graphs and
types, sparse tensors, dimension expressions without quotes, 4-bit and 2-bit integers one by one, bytes. All
else is in notes, `@{doc_string: "..."}`, which are comments to other readers where they are on separate
lines. `docs/text.md` has the grammar.
"""

from sabir.syntax._read_calls import AliasText, CallText, NameText, parse_calls
from sabir.syntax._read_model import parse, parse_function, parse_graph, parse_node
from sabir.syntax._write_model import LISTED_ELEMENTS, listing, text, text_chunks, write_text

__all__ = [
    "LISTED_ELEMENTS",
    "AliasText",
    "CallText",
    "NameText",
    "listing",
    "parse",
    "parse_calls",
    "parse_function",
    "parse_graph",
    "parse_node",
    "text",
    "text_chunks",
    "write_text",
]
