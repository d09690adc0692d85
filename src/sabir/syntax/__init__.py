"""The ONNX text syntax: what `onnx.parser` reads and `onnx.printer` writes, over the model objects.

Nothing is lost: `parse(text(model))` is the same model. Where the standard syntax does not suffice, a few
forms extend it: quoted names of attributes, operators, domains and subgraphs, lists of tensors, graphs and
types, sparse tensors, dimension expressions without quotes, 4-bit and 2-bit integers one by one, bytes. All
else is in notes, `@{doc_string: "..."}`, which are comments to other readers where they are on separate
lines. `docs/text.md` has the grammar.
"""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.syntax._read_calls import AliasText, CallText, NameText, parse_calls

if TYPE_CHECKING:
    from sabir.syntax._read_model import parse, parse_function, parse_graph, parse_node
    from sabir.syntax._write_model import LISTED_ELEMENTS, listing, text, text_chunks, write_text

# patterns of rewrite rules, which every session has, need no more than calls
_LATER = {
    "LISTED_ELEMENTS": "_write_model", "listing": "_write_model", "parse": "_read_model",
    "parse_function": "_read_model", "parse_graph": "_read_model", "parse_node": "_read_model",
    "text": "_write_model", "text_chunks": "_write_model", "write_text": "_write_model",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)


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
