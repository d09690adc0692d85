"""HTML and SVG: escaped texts, tables, and the colours for light and dark screens."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, NamedTuple

from sabir.drawing._texts import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FONT = "ui-monospace,Menlo,Consolas,monospace"
_LONGEST = 300  # characters of a text of a model
_MOST_ROWS = 50

# Light is what elements have as attributes, so a reader that removes style sheets shows it. A page has one
# scheme for all of its pictures, so equal rules of several outputs do no harm.
STYLE = (
    "<style>"
    f".sabir-table{{border-collapse:collapse;font:12px/1.5 {FONT};margin:4px 0}}"
    ".sabir-table th,.sabir-table td{border:0;border-bottom:1px solid #8884;padding:1px 12px 1px 0;"
    "text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".sabir-table td.sabir-number,.sabir-table th.sabir-number{text-align:right;white-space:nowrap}"
    f".sabir-note{{font:12px/1.5 {FONT};margin:4px 0}}"
    "</style>"
)


class Number(NamedTuple):
    """A cell of a table whose text is aligned to the right."""

    text: str


Cell = str | Number


def escaped(text: object, width: int = _LONGEST) -> str:
    """Return a text of a model as markup shows it: printable, cut where it is long, and never markup.

    >>> escaped('<script>')
    '&lt;script&gt;'
    """
    return html.escape(one_line(text, width))


def note(text: object) -> str:
    """Return a paragraph.

    >>> note('1 < 2')
    '<div class="sabir-note">1 &lt; 2</div>'
    """
    return f'<div class="sabir-note">{escaped(text, 2000)}</div>'


def heading(text: object) -> str:
    """Return a paragraph in bold.

    >>> heading('Nodes')
    '<div class="sabir-note"><b>Nodes</b></div>'
    """
    return f'<div class="sabir-note"><b>{escaped(text)}</b></div>'


def table(columns: Sequence[Cell], rows: Iterable[Sequence[Cell]], most: int = _MOST_ROWS) -> str:
    """Return a table of at most so many rows, then how many more there are; without rows nothing.

    A column or a cell that is a `Number` is aligned to the right. Every text is escaped.

    >>> print(table(['node'], [['<b>']]))
    <table class="sabir-table"><tr><th>node</th></tr><tr><td>&lt;b&gt;</td></tr></table>
    """
    shown: list[Sequence[Cell]] = []
    count = 0
    for row in rows:
        count += 1
        if count <= most:
            shown.append(row)
    if not count:
        return ""
    header = _row("th", columns) if any(columns) else ""
    body = "".join(_row("td", row) for row in shown)
    rest = note(f"and {count - most:,} more") if count > most else ""
    return f'<table class="sabir-table">{header}{body}</table>{rest}'


def fragment(*parts: str) -> str:
    """Return parts as what a notebook shows: with their style sheet, in one element.

    >>> fragment(note('1 node')).endswith('<div class="sabir-note">1 node</div></div>')
    True
    """
    return f"<div>{STYLE}{''.join(parts)}</div>"


def page(title: str, *parts: str) -> str:
    """Return parts as a whole page: it loads nothing, runs no script, and follows the reader's colours.

    >>> page('Training', note('1 epoch')).startswith('<!DOCTYPE html>')
    True
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escaped(title)}</title></head>'
        f'<body style="margin:24px auto;max-width:960px;padding:0 12px">{fragment(*parts)}</body></html>\n'
    )


def titled_table(title: str, columns: Sequence[Cell], rows: Iterable[Sequence[Cell]], *more: str) -> str:
    """Return a heading and a table as what a notebook shows, and more parts below them.

    >>> '<b>1 node</b>' in titled_table('1 node', ['node'], [['relu']])
    True
    """
    return fragment(heading(title), table(columns, rows), *more)


def _row(tag: str, cells: Sequence[Cell]) -> str:
    return f"<tr>{''.join(_cell(tag, cell) for cell in cells)}</tr>"


def _cell(tag: str, cell: Cell) -> str:
    if isinstance(cell, Number):
        return f'<{tag} class="sabir-number">{escaped(cell.text)}</{tag}>'
    return f"<{tag}>{escaped(cell)}</{tag}>"


__all__ = [
    "FONT",
    "STYLE",
    "Cell",
    "Number",
    "escaped",
    "fragment",
    "heading",
    "note",
    "page",
    "table",
    "titled_table",
]
