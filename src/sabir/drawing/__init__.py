"""Pictures of graphs, tables and charts: what notebooks, pages and terminals show."""

from sabir.drawing._box_text import box_text
from sabir.drawing._displays import bundle, findings_html
from sabir.drawing._markup import Cell, Number, escaped, fragment, heading, note, table, titled_table
from sabir.drawing._svg import svg
from sabir.drawing._texts import columns, one_line, seconds_text

__all__ = [
    "Cell",
    "Number",
    "box_text",
    "bundle",
    "columns",
    "escaped",
    "findings_html",
    "fragment",
    "heading",
    "note",
    "one_line",
    "seconds_text",
    "svg",
    "table",
    "titled_table",
]
