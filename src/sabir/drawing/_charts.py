"""Curves over steps or epochs: as SVG, and as text for a terminal."""

from __future__ import annotations

import math
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.drawing._markup import FONT, escaped
from sabir.drawing._texts import columns, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 32  # the margins around the curves
_LINE, _CHARACTER = 16, 6.8  # of the names
_TICKS = 5
_NAME_COLUMNS = 24
_COLOURS = (("#2563c9", "#7aa7f0"), ("#c2571a", "#f0a06a"), ("#2f8f4e", "#78cf95"), ("#8a4fc4", "#c39be8"))
_STYLE = (
    "<style>.sabir-chart{max-width:100%;height:auto}@media (prefers-color-scheme:dark){"
    ".sabir-chart .sabir-ground{fill:#16191d}.sabir-chart text{fill:#c9d1d9}"
    ".sabir-chart .sabir-grid{stroke:#343b44}"
    + "".join(
        f".sabir-chart .sabir-curve{place}{{stroke:{dark}}}" for place, (_, dark) in enumerate(_COLOURS)
    )
    + "}</style>"
)
_MARKS = "●○◆◇"  # of the curves of a text, in turn


class _Range(NamedTuple):
    """The numbers that an axis shows."""

    low: float
    high: float

    def place(self, number: float, length: float) -> float:
        """Return how far from the lower end a number is, on an axis of a length."""
        return length * (number - self.low) / (self.high - self.low)


_LARGEST = 1e300  # so that no difference of two numbers overflows
_NOTHING = _Range(0.0, 1.0)


def line_chart(title: str, x: Sequence[float], curves: Mapping[str, Sequence[float]]) -> str:
    """Return curves as one SVG element, with axes, a grid and their names; there is no script in it.

    Each curve has a number for each `x`, which ascend. A number that is not finite is a gap.

    >>> chart = line_chart('loss', [1, 2, 3], {'loss': [2.0, 1.0, 0.5]})
    >>> chart.startswith('<svg'), 'M64 ' in chart
    (True, True)
    """
    across, up = _range(x) or _NOTHING, _range(_all(curves)) or _NOTHING
    legend, rows = _legend(list(curves))
    height = _HEIGHT + rows * _LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sabir-chart" role="img" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 {-rows * _LINE} {_WIDTH} {height}" fill="none" font-family="{FONT}" '
        f'font-size="11"><title>{escaped(title)}</title>{_STYLE}<rect class="sabir-ground" '
        f'y="{-rows * _LINE}" width="{_WIDTH}" height="{height}" rx="6" fill="#ffffff"/>'
        f"{''.join(_axes(across, up))}{''.join(_curves(x, curves, across, up))}{legend}</svg>"
    )


def chart_text(
    x: Sequence[float], curves: Mapping[str, Sequence[float]], width: int = 72, height: int = 12
) -> list[str]:
    r"""Return curves as lines of text: a frame of `width` columns, `height` rows of curves, and their names.

    Each curve has a number for each `x`, which ascend; between two of them a curve is straight. A number that
    is not finite is a gap. Where no number is finite there are no lines.

    >>> print(*chart_text([1, 2, 3], {'loss': [2.0, 1.0, 0.0]}, width=20, height=3), sep='\n')
    2 ┤●●●●●
      │     ●●●●●●●
    0 ┤            ●●●●●
      └─────────────────
       1               3
       ● loss
    """
    across, up = _range(x), _range(_all(curves))
    if up is None or across is None:
        return []
    labels = [f"{up.high:.4g}", f"{up.low:.4g}"]
    margin = max(map(len, labels))
    inner = max(2, width - margin - 2)
    rows = [[" "] * inner for _ in range(height)]
    names: list[str] = []
    for mark, (name, curve) in zip(cycle(_MARKS), curves.items(), strict=False):
        _draw(rows, np.interp(np.linspace(*across, inner), x, curve).tolist(), up, mark)
        names.append(f"{mark} {one_line(name, _NAME_COLUMNS)}")
    edges = {0: f"{labels[0]:>{margin}} ┤", height - 1: f"{labels[1]:>{margin}} ┤"}
    first, last = (f"{number:g}" for number in across)
    return [
        *(edges.get(n, f"{'':{margin}} │") + "".join(row).rstrip() for n, row in enumerate(rows)),
        f"{'':{margin}} └{'─' * inner}",
        f"{'':{margin}}  {first}{last:>{inner - len(first)}}",
        f"{'':{margin}}  {'   '.join(names)}",
    ]


def _draw(rows: list[list[str]], values: Sequence[float], up: _Range, mark: str) -> None:
    """Draw a curve with a number for each column; rows between those of neighbours are filled."""
    before: int | None = None
    for column, value in enumerate(values):
        row = len(rows) - 1 - round(up.place(value, len(rows) - 1)) if _is_drawn(value) else None
        if row is not None:
            joined = _next(before, row)
            for filled in range(min(row, joined), max(row, joined) + 1):
                rows[filled][column] = mark
        before = row


def _is_drawn(number: float) -> bool:
    return abs(number) < _LARGEST  # also false for NaN


def _all(curves: Mapping[str, Sequence[float]]) -> list[float]:
    return [number for curve in curves.values() for number in curve]


def _range(numbers: Sequence[float]) -> _Range | None:
    """Return the least and the greatest number that is drawn, apart where they are equal, or None."""
    drawn = [number for number in numbers if _is_drawn(number)]
    if not drawn:
        return None
    low, high = min(drawn), max(drawn)
    apart = 0.0 if low < high else abs(low) / 2 or 0.5
    return _Range(low - apart, high + apart)


def _ticks(shown: _Range) -> list[float]:
    """Return some round numbers in a range: multiples of 1, 2 or 5 times a power of 10."""
    rough = (shown.high - shown.low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(shown.low / step), math.floor(shown.high / step)
    return [n * step for n in range(first, last + 1)]


def _axes(across: _Range, up: _Range) -> Iterator[str]:
    """Yield the grid with its numbers."""
    for number in _ticks(up):
        y = _y(number, up)
        yield f'<path class="sabir-grid" stroke="#dfe3e8" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y}" dy="4" text-anchor="end" fill="#3b434c">{number:.4g}</text>'
    for number in _ticks(across):
        x, y = _x(number, across), _HEIGHT - _BOTTOM + 18
        yield f'<text x="{x}" y="{y}" text-anchor="middle" fill="#3b434c">{number:.6g}</text>'


def _curves(
    x: Sequence[float], curves: Mapping[str, Sequence[float]], across: _Range, up: _Range
) -> Iterator[str]:
    """Yield the curves; each begins anew after a number that is not finite."""
    for place, curve in enumerate(curves.values()):
        steps: list[str] = []
        is_new = True
        for here, value in zip(x, curve, strict=True):
            if _is_drawn(value):
                steps.append(f"{'M' if is_new else 'L'}{_x(here, across)} {_y(value, up)}")
            is_new = not _is_drawn(value)
        yield f'<path {_stroke(place)} stroke-width="2" stroke-linecap="round" d="{"".join(steps)}"/>'


def _legend(names: Sequence[str]) -> tuple[str, int]:
    """Return the names of the curves with their colours, and how many rows they take above the first one."""
    rows: list[list[tuple[float, int]]] = [[]]
    at = float(_LEFT)
    for place, name in enumerate(names):
        width = 44 + _CHARACTER * columns(one_line(name, _NAME_COLUMNS))
        if at + width > _WIDTH and rows[-1]:
            rows.append([])
            at = float(_LEFT)
        rows[-1].append((at, place))
        at += width
    parts = [
        f'<path {_stroke(place)} stroke-width="3" d="M{at:g} {y}h18"/>'
        f'<text x="{at + 24:g}" y="{y}" dy="4" fill="#3b434c">{escaped(names[place], _NAME_COLUMNS)}</text>'
        for y, row in zip(range(20 - _LINE * (len(rows) - 1), 21, _LINE), rows, strict=True)
        for at, place in row
    ]
    return "".join(parts), len(rows) - 1


def _stroke(place: int) -> str:
    number = place % len(_COLOURS)
    return f'class="sabir-curve{number}" stroke="{_COLOURS[number][0]}"'


def _x(number: float, across: _Range) -> str:
    return f"{_LEFT + across.place(number, _WIDTH - _LEFT - _RIGHT):.5g}"


def _y(number: float, up: _Range) -> str:
    return f"{_HEIGHT - _BOTTOM - up.place(number, _HEIGHT - _TOP - _BOTTOM):.5g}"


def _next(before: int | None, row: int) -> int:
    """Return the row where a curve goes on that was in another row in the column before."""
    if before is None or before == row:
        return row
    return before + 1 if before < row else before - 1


__all__ = ["chart_text", "line_chart"]
