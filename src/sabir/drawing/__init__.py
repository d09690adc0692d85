"""Pictures of graphs, tables and charts: what notebooks, pages and terminals show."""

from sabir.drawing._box_text import box_text
from sabir.drawing._svg import svg

__all__ = ["box_text", "svg"]
