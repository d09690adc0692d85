"""Pictures of graphs, tables, charts and progress bars: what notebooks, pages and terminals show."""

from sabir.drawing._bars import Shown, counting_bar, progress_bars
from sabir.drawing._box_text import box_text
from sabir.drawing._charts import chart_text, line_chart
from sabir.drawing._displays import bundle, findings_html
from sabir.drawing._markup import Cell, Number, fragment, heading, note, page, table, titled_table
from sabir.drawing._svg import svg
from sabir.drawing._texts import columns, one_line, seconds_text

__all__ = [
    "Cell",
    "Number",
    "Shown",
    "box_text",
    "bundle",
    "chart_text",
    "columns",
    "counting_bar",
    "findings_html",
    "fragment",
    "heading",
    "line_chart",
    "note",
    "one_line",
    "page",
    "progress_bars",
    "seconds_text",
    "svg",
    "table",
    "titled_table",
]
