"""A graph as text: boxes and lines of box-drawing characters."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError
from sabir.drawing._layout import laid_out
from sabir.drawing._nets import Spacing
from sabir.drawing._picture import picture_of
from sabir.drawing._texts import columns, one_line
from sabir.drawing._tracks import tracks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.drawing._layout import Layout, Leg, Place
    from sabir.drawing._picture import Box, Picture
    from sabir.drawing._tracks import Tracks
    from sabir.ir import Function, Graph, Model

_SPACING = Spacing(boxes=2, lines=2, pins=2, label=1)
_TITLE_COLUMNS, _NAME_COLUMNS, _MARK_COLUMNS, _TYPE_COLUMNS = 28, 28, 20, 24
_MOST_CELLS = 500_000
_FRAME = 2  # the rows of the borders of a box, and the columns between a border and the text on both sides
_BORDERS = {"node": "┌─┐│└┘", "input": "╭─╮│╰╯", "output": "╭─╮│╰╯", "outer": "┌╌┐╎└┘"}
# the sides to which a line goes from a cell
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_VERTICAL = _UP | _DOWN
_LINES = dict(enumerate(" │││─┘┐┤─└┌├─┴┬┼"))  # by the sides that a cell is joined to


def box_text(graph: Graph | Model | Function) -> list[str]:
    r"""Return a picture of a graph, the main one of a model, as lines of box-drawing characters.

    Each node is a box with its operator and name, the initializers that it reads and its subgraphs; inputs
    and outputs have round corners, values of an enclosing graph dashed borders. Below a box stand the
    declared types of its values. No tensor is read.

    Raises UnsupportedError for a graph of more than 300 nodes, inputs and outputs or a picture of more than
    500,000 characters, and SchemaError for nodes that read each other in a cycle.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> print(*box_text(model), sep='\n')
    ╭──────────╮
    │ x        │
    │ float[N] │
    ╰─────┬────╯
          │
      ┌───▼──┐
      │ Relu │
      └───┬──┘
          │ float[N]
    ╭─────▼────╮
    │ y        │
    │ float[N] │
    ╰──────────╯
    """
    picture = picture_of(graph)
    layout = laid_out(picture.frames(_measured, _label_width), picture.nets, _SPACING)
    return _Text(picture, layout).lines()


def _measured(box: Box) -> tuple[int, int]:
    lines = _lines(box)
    return max(map(columns, lines)) + 2 * _FRAME, len(lines) + _FRAME


def _lines(box: Box) -> list[str]:
    """Return the lines in a box: what it is, its name, its marks."""
    name = [one_line(box.name, _NAME_COLUMNS, end=box.kind == "node")] if box.name else []
    return [one_line(box.title or "?", _TITLE_COLUMNS, end=True), *name] + [
        f"{one_line(mark.name, _MARK_COLUMNS, end=True)} {one_line(mark.text, _TYPE_COLUMNS)}".strip()
        for mark in box.marks
    ]


def _label_width(label: str) -> int:
    return columns(one_line(label, _TYPE_COLUMNS))


class _Text:
    """A grid of cells: texts, and the sides to which the lines of each cell go."""

    def __init__(self, picture: Picture, layout: Layout) -> None:
        self._picture, self._layout = picture, layout
        self._gaps = [tracks_of(legs) for legs in layout.legs]
        self._cells: dict[tuple[int, int], str] = {}
        self._sides: dict[tuple[int, int], dict[int, int]] = {}
        self._heights = [_measured(box)[1] for box in picture.boxes]
        self._tops: list[int] = []
        self._ends: list[int] = []  # the row after each layer
        row = 0
        for number, layer in enumerate(layout.layers):
            self._tops.append(row)
            row += max((self._heights[p.box] for p in layer if p.box is not None), default=0)
            self._ends.append(row)
            row += 1 + self._gaps[number].height if number < len(self._gaps) else 0
        self._rows = row
        if self._rows * layout.width > _MOST_CELLS:
            size = f"{layout.width:,} columns and {row:,} rows"
            raise UnsupportedError(
                f"a picture has at most {_MOST_CELLS:,} characters, and this one would have {size}"
            )

    def lines(self) -> list[str]:
        """Return the lines of the picture."""
        written: list[list[int]] = [[] for _ in self._picture.boxes]
        for number, net in enumerate(self._picture.nets):
            written[net.source].append(number)
        for number, layer in enumerate(self._layout.layers):
            for place in layer:
                if place.net is not None:
                    self._down(place.net, place.x, self._tops[number], self._ends[number])
                elif place.box is not None:
                    self._box(place, self._tops[number])
                    self._exits(written[place.box], self._tops[number] + self._heights[place.box], number)
        for number, (legs, gap) in enumerate(zip(self._layout.legs, self._gaps, strict=True)):
            self._legs(number, legs, gap)
        return list(self._joined())

    def _exits(self, nets: list[int], row: int, layer: int) -> None:
        """Draw what leaves a box: in its border, below it with the label, down to the end of the layer."""
        for net in nets:
            column = self._layout.exits[net]
            self._cells[row - 1, column] = "┬"
            self._down(net, column, row, self._ends[layer])
            self._write(row, column + 1 + _SPACING.label, one_line(self._picture.labels[net], _TYPE_COLUMNS))

    def _box(self, place: Place, top: int) -> None:
        box = self._picture.boxes[place.box or 0]
        left, right = place.left, place.left + place.width - 1
        corner, edge, other, side, low, last = _BORDERS[box.kind]
        lines = _lines(box)
        for row, ends in ((top, (corner, other)), (top + len(lines) + 1, (low, last))):
            for column in range(left + 1, right):
                self._cells[row, column] = edge
            self._cells[row, left], self._cells[row, right] = ends
        for row, line in enumerate(lines, top + 1):
            self._cells[row, left] = self._cells[row, right] = side
            self._write(row, left + _FRAME, line)

    def _write(self, row: int, column: int, text: str) -> None:
        """Write a text; a wide character takes two cells, one that combines is added to the one before."""
        at = column
        for place, character in enumerate(text):
            if place and unicodedata.combining(character):
                self._cells[row, at] += character
            else:
                at = column + columns(text[:place])
                self._cells[row, at] = character

    def _legs(self, number: int, legs: tuple[Leg, ...], gap: Tracks) -> None:
        """Draw the lines between a layer and the next one."""
        first, end = self._ends[number], self._tops[number + 1]
        for leg in legs:
            self._join(leg.net, first, leg.top, _VERTICAL)
            if leg.bottoms == (leg.top,):
                self._down(leg.net, leg.top, first, end)
            for bottom in leg.bottoms:
                if (end, bottom) in self._cells:
                    self._cells[end, bottom] = "▼"
        parts = {run.after for run in gap.runs}
        for place, run in enumerate(gap.runs):
            row = first + 1 + gap.tracks[place]
            start = first + 1 if run.after is None else first + 2 + gap.tracks[run.after]
            self._down(run.net, run.top, start, row)
            self._join(run.net, row, run.top, _UP)
            left, right = run.ends
            for column in range(left, right + 1):
                sides = (_LEFT if column > left else 0) | (_RIGHT if column < right else 0)
                self._join(run.net, row, column, sides)
            for bottom in run.bottoms:
                self._join(run.net, row, bottom, _DOWN)
                if place not in parts:
                    self._down(run.net, bottom, row + 1, end)

    def _down(self, net: int, column: int, start: int, end: int) -> None:
        """Draw a vertical line from one row to before another one."""
        for row in range(start, end):
            self._join(net, row, column, _VERTICAL)

    def _join(self, net: int, row: int, column: int, sides: int) -> None:
        found = self._sides.setdefault((row, column), {})
        found[net] = found.get(net, 0) | sides

    def _joined(self) -> Iterator[str]:
        """Yield the rows; where two lines cross, the vertical one is whole."""
        for cell, nets in self._sides.items():
            sides = next(iter(nets.values())) if len(nets) == 1 else _VERTICAL
            self._cells.setdefault(cell, _LINES[sides])
        rows: list[dict[int, str]] = [{} for _ in range(self._rows)]
        for (row, column), text in self._cells.items():
            rows[row][column] = text
        for cells in rows:
            yield "".join(_filled(cells)).rstrip()


def _filled(cells: dict[int, str]) -> Iterator[str]:
    """Yield the texts of a row in order, and spaces between them."""
    column = 0
    for start in sorted(cells):
        yield " " * (start - column)
        yield cells[start]
        column = start + columns(cells[start])


__all__ = ["box_text"]
