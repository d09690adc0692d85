"""Standard output or standard error: coloured and folded on a terminal, plain and unfolded elsewhere.

Texts of a model go through `plain`, so none can move the cursor, recolour the terminal or break a line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

_ANY_WIDTH = 100_000  # columns: output that is not a terminal is not folded
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP = 1024


class Screen:
    """Standard output, or standard error, as the commands write to it."""

    def __init__(self, *, error: bool = False) -> None:
        self._console = Console(markup=False, highlight=False, emoji=False, stderr=error)
        self._is_terminal = self._console.is_terminal
        self._coloured = self._console.color_system is not None
        if not self._is_terminal:
            self._console.width = _ANY_WIDTH

    @property
    def is_terminal(self) -> bool:
        """Whether the output goes to a terminal."""
        return self._is_terminal

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self._console.width

    def can_show(self, text: str) -> bool:
        """Return whether the output's encoding can represent these characters."""
        try:
            text.encode(self._console.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def paint(self, text: str, **style: Any) -> str:
        """Return a text in a style of `typer.style`, where there are colours."""
        return typer.style(text, **style) if self._coloured else text

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines unchanged; the terminal folds them. This is fast for many lines."""
        out = self._console.file
        out.writelines(f"{line}\n" for line in lines)

    def chunks(self, chunks: Iterable[str]) -> None:
        """Write the chunks of a long text; a terminal gets the lines in them as `plain` returns them."""
        if self.is_terminal:
            chunks = ("\n".join(map(plain, chunk.split("\n"))) for chunk in chunks)
        self._console.file.writelines(chunks)

    def line(self, line: str = "") -> None:
        """Write one line unchanged."""
        self.lines([line])

    def markdown(self, text: str) -> None:
        """Write a page of ours: rendered on a terminal, its source elsewhere."""
        if self._is_terminal:
            self._console.print(Markdown(text))
        else:
            self.lines(text.splitlines())

    def heading(self, title: str, note: str = "") -> None:
        """Write the title of a section."""
        self.line()
        self.line(self.paint(title, bold=True) + (self.paint(f"  {note}", dim=True) if note else ""))

    def table(self, rows: Iterable[Sequence[str]], *styles: str) -> None:
        """Write rows in aligned columns, indented; a style may be `right`, or one of rich's."""
        table = Table.grid(padding=(0, 3, 0, 0))
        for style in ("", *styles):
            right = style == "right"
            table.add_column(
                justify="right" if right else "left", style="" if right else style, overflow="fold"
            )
        for row in rows:
            table.add_row("", *map(Text, row))
        self.render(table)

    def render(self, renderable: RenderableType, width: int | None = None) -> None:
        """Write a renderable of rich without trailing spaces; `width` applies where there is no terminal."""
        with self._console.capture() as capture:
            self._console.print(renderable, width=None if self._is_terminal else width)
        self._console.file.write(re.sub(r"[ ]+$", "", capture.get(), flags=re.MULTILINE))


def plain(text: object) -> str:
    """Return a text as one line of printable characters; others are written as escapes."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def cut(text: object, width: int = 100) -> str:
    """Return a text as `plain` does, cut when long."""
    shown = plain(text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def bytes_text(count: int) -> str:
    """Return a number of bytes as a person reads it: `97.8 MiB`."""
    size, unit = float(count), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:,.1f} {_UNITS[unit]}" if unit else f"{count} {'byte' if count == 1 else 'bytes'}"


def exact_bytes_text(count: int) -> str:
    """Return a number of bytes as `bytes_text` does, and the exact number where that rounds it."""
    short = bytes_text(count)
    return short if "byte" in short else f"{short} ({count:,} bytes)"
