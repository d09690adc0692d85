"""A graph as SVG: boxes with texts, lines with the types of their values, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.drawing._layout import laid_out
from sabir.drawing._markup import FONT, escaped
from sabir.drawing._nets import Spacing
from sabir.drawing._picture import Picture, graph_of, operator_text, picture_of, type_text
from sabir.drawing._texts import columns, one_line
from sabir.ir import Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.drawing._layout import Layout, Leg, Place
    from sabir.drawing._picture import Box
    from sabir.ir import Function, Graph, Model, Value

_SPACING = Spacing(boxes=24, lines=14, pins=14, label=5)
_CHARACTER = 7.3  # pixels of a character of the title, whose font has 12
_SMALL = 6.2  # of the other texts, whose font has 10
_LINE, _PADDING = 14, 8
_MARGIN = 12
_LABEL = 16  # the height of the labels below a layer
_GAP, _STEEPEST, _MOST_GAP = 26, 8, 90  # the height of curves: more where they go far to the side
_ARROW = 4
_TITLE_COLUMNS, _NAME_COLUMNS, _MARK_COLUMNS, _LABEL_COLUMNS = 32, 34, 24, 28
_MOST_HINTS = 12  # lines of a tooltip
_COLOURS = {  # background and border of a box in light and in dark
    "node": ("#eef3fb", "#6d8fc4", "#1f2a3a", "#5b7db3"),
    "input": ("#e9f6ec", "#5a9e6b", "#1b3022", "#4d8a5d"),
    "output": ("#fdf1e3", "#c98a3c", "#38290f", "#a8752f"),
    "outer": ("#f4f4f4", "#999999", "#2b2b2b", "#777777"),
}
_DARK = "".join(
    f".sabir-graph .sabir-{kind}{{fill:{fill};stroke:{line}}}"
    for kind, (_, _, fill, line) in _COLOURS.items()
)
_STYLE = (
    "<style>.sabir-graph{max-width:100%;height:auto}"
    "@media (prefers-color-scheme:dark){"
    ".sabir-graph .sabir-ground{fill:#16191d}.sabir-graph .sabir-line{stroke:#7d8590}"
    ".sabir-graph .sabir-arrow{fill:#7d8590}.sabir-graph text{fill:#e6e6e6}"
    f".sabir-graph .sabir-dim{{fill:#a0a8b0}}{_DARK}}}</style>"
)


def svg(graph: Graph | Model | Function) -> str:
    """Return a picture of a graph, the main one of a model, as one SVG element for a page or a file.

    Each node is a box with its operator and name, and with the initializers that it reads and its subgraphs
    as small marks; inputs and outputs are round boxes; a dashed box is a value of an enclosing graph. Lines
    have the declared types of their values: `sabir.infer` adds those that a file does not have. No tensor is
    read, all texts are escaped, and the colours follow the reader's choice of light or dark.

    Raises UnsupportedError for a graph of more than 300 nodes, inputs and outputs, and SchemaError for nodes
    that read each other in a cycle.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> picture = svg(model)
    >>> picture.startswith('<svg'), picture.count('<rect'), '>Relu<' in picture
    (True, 4, True)
    """
    picture = picture_of(graph)
    layout = laid_out(picture.frames(_measured, _label_width), picture.nets, _SPACING)
    return _Svg(graph_of(graph).name, picture, layout).text()


def _measured(box: Box) -> tuple[int, int]:
    """Return the width and height of a box in pixels."""
    widths = [_CHARACTER * columns(_title(box)), *(_SMALL * columns(line) for line in _lines(box))]
    return round(max(widths)) + 2 * _PADDING, _LINE * len(widths) + _PADDING


def _title(box: Box) -> str:
    return one_line(box.title or "?", _TITLE_COLUMNS, end=True)


def _lines(box: Box) -> list[str]:
    """Return the small lines of a box: its name, then its marks."""
    name = [one_line(box.name, _NAME_COLUMNS, end=box.kind == "node")] if box.name else []
    return name + [
        f"{'▪ ' if mark.name else ''}{one_line(mark.name, _MARK_COLUMNS, end=True)}"
        f" {one_line(mark.text, _LABEL_COLUMNS)}".rstrip()
        for mark in box.marks
    ]


def _label_width(label: str) -> int:
    return round(_SMALL * columns(one_line(label, _LABEL_COLUMNS)))


class _Svg:
    """One picture: rows of layers and the curves between them."""

    def __init__(self, name: str, picture: Picture, layout: Layout) -> None:
        self._name, self._picture, self._layout = name, picture, layout
        self._heights = [_measured(box)[1] for box in picture.boxes]
        self._layers = {p.box: number for number, places in enumerate(layout.layers) for p in places}
        self._tops: list[int] = []
        self._ends: list[int] = []  # the lowest rows of layers
        y = _MARGIN
        for number, layer in enumerate(layout.layers):
            self._tops.append(y)
            y += max((self._heights[p.box] for p in layer if p.box is not None), default=0)
            self._ends.append(y)
            y += _LABEL + _gap(layout.legs[number]) if number < len(layout.legs) else 0
        self._bottom = y + _MARGIN

    def text(self) -> str:
        """Return the element."""
        width, height = self._layout.width + 2 * _MARGIN, self._bottom
        title = escaped(f"Graph {self._name}".rstrip())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="sabir-graph" role="img" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" fill="none" '
            f'font-family="{FONT}" font-size="10"><title>{title}</title>{_STYLE}'
            f'<rect class="sabir-ground" width="{width}" height="{height}" rx="6" fill="#ffffff"/>'
            f"{''.join(self._nets())}{''.join(self._boxes())}</svg>"
        )

    def _nets(self) -> Iterator[str]:
        """Yield the line of each value with its arrows and its label."""
        paths: list[list[str]] = [[] for _ in self._picture.nets]
        arrows: list[list[str]] = [[] for _ in self._picture.nets]
        boxes = self._entered()
        for number, legs in enumerate(self._layout.legs):
            for leg in legs:
                for bottom in leg.bottoms:
                    paths[leg.net].append(self._curve(number, leg, bottom))
                    if (number + 1, leg.net, bottom) in boxes:
                        arrows[leg.net].append(_arrow(bottom + _MARGIN, self._tops[number + 1]))
        for number, layer in enumerate(self._layout.layers):
            for place in layer:
                if place.net is not None:
                    x = place.x + _MARGIN
                    paths[place.net].append(f"M{x} {self._tops[number]}V{self._ends[number]}")
        for number, value in enumerate(self._picture.values):
            yield f'<g><path class="sabir-line" stroke="#8a929c" d="{"".join(paths[number])}"/>'
            yield f'<path class="sabir-arrow" fill="#8a929c" d="{"".join(arrows[number])}"/>'
            hint = escaped(f"{value.name}: {type_text(value) or '?'}")
            yield f"<title>{hint}</title>{self._net_label(number)}</g>"

    def _entered(self) -> set[tuple[int, int, int]]:
        """Return the layer, the net and the column of each end of a line that is no bend."""
        found = {
            (number + 1, leg.net, bottom)
            for number, legs in enumerate(self._layout.legs)
            for leg in legs
            for bottom in leg.bottoms
        }
        bends = {
            (number, place.net, place.x)
            for number, layer in enumerate(self._layout.layers)
            for place in layer
            if place.net is not None
        }
        return found - bends

    def _curve(self, number: int, leg: Leg, bottom: int) -> str:
        """Return a leg as a path: down beside the labels, then a curve to the next layer."""
        start, end = self._start(number, leg), self._tops[number + 1]
        bent = self._ends[number] + _LABEL
        top, bottom = leg.top + _MARGIN, bottom + _MARGIN
        middle = (bent + end) // 2
        return f"M{top} {start}V{bent}C{top} {middle} {bottom} {middle} {bottom} {end}"

    def _start(self, number: int, leg: Leg) -> int:
        """Return the row in which a leg begins: below its source, or below the layer of its bend."""
        source = self._picture.nets[leg.net].source
        return self._end(source) if self._layers[source] == number else self._ends[number]

    def _end(self, box: int) -> int:
        """Return the lowest row of a box."""
        return self._tops[self._layers[box]] + self._heights[box]

    def _net_label(self, number: int) -> str:
        text = one_line(self._picture.labels[number], _LABEL_COLUMNS)
        if not text:
            return ""
        x = self._layout.exits[number] + _MARGIN + _SPACING.label
        y = self._end(self._picture.nets[number].source) + _LABEL - 4
        return f'<text class="sabir-dim" x="{x}" y="{y}" fill="#57606a">{escaped(text)}</text>'

    def _boxes(self) -> Iterator[str]:
        for number, layer in enumerate(self._layout.layers):
            for place in layer:
                if place.box is not None:
                    yield from self._box(self._picture.boxes[place.box], place, self._tops[number])

    def _box(self, box: Box, place: Place, top: int) -> Iterator[str]:
        fill, line, _, _ = _COLOURS[box.kind]
        height, left, middle = self._heights[place.box or 0], place.left + _MARGIN, place.x + _MARGIN
        dashes = ' stroke-dasharray="4 3"' if box.kind == "outer" else ""
        radius = 4 if box.kind == "node" else (_LINE + _PADDING) // 2
        yield f"<g><title>{_hint(box)}</title>"
        yield (
            f'<rect class="sabir-{box.kind}" x="{left}" y="{top}" width="{place.width}" height="{height}" '
            f'rx="{radius}" fill="{fill}" stroke="{line}"{dashes}/>'
        )
        yield (
            f'<text x="{middle}" y="{top + _LINE + 1}" text-anchor="middle" font-size="12" font-weight="600" '
            f'fill="#1f2328">{escaped(_title(box))}</text>'
        )
        for row, text in enumerate(_lines(box), 2):
            yield (
                f'<text class="sabir-dim" x="{middle}" y="{top + row * _LINE}" text-anchor="middle" '
                f'fill="#57606a">{escaped(text)}</text>'
            )
        yield "</g>"


def _gap(legs: Sequence[Leg]) -> int:
    """Return the height of the curves below a layer."""
    farthest = max((abs(bottom - leg.top) for leg in legs for bottom in leg.bottoms), default=0)
    return min(_MOST_GAP, _GAP + farthest // _STEEPEST)


def _arrow(x: int, y: int) -> str:
    return f"M{x} {y}L{x - _ARROW} {y - 2 * _ARROW}L{x + _ARROW} {y - 2 * _ARROW}Z"


def _hint(box: Box) -> str:
    """Return the tooltip of a box, escaped."""
    subject = box.subject
    lines = list(_node_hint(subject)) if isinstance(subject, Node) else [f"{box.kind} {box.title}", box.name]
    more = [f"and {len(lines) - _MOST_HINTS} more"] if len(lines) > _MOST_HINTS else []
    return "\n".join(map(escaped, [*filter(None, lines[:_MOST_HINTS]), *more]))


def _node_hint(node: Node) -> Iterator[str]:
    yield operator_text(node)
    yield node.name
    yield from _ports("input", node.inputs)
    yield from _ports("output", node.outputs)
    yield from map(repr, node.attributes.values())


def _ports(what: str, values: Iterable[Value | None]) -> Iterator[str]:
    for value in values:
        if value is not None:
            yield f"{what} {value.name}: {type_text(value) or '?'}"


__all__ = ["svg"]
