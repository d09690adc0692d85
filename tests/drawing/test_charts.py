"""Curves: where their points are, gaps, and axes."""

import math

import pytest

from sabir.drawing import chart_text, line_chart, page, table
from sabir.drawing._markup import escaped
from support.markup import parsed

NAMESPACE = "{http://www.w3.org/2000/svg}"


def paths(chart):
    return [p.get("d") for p in parsed(chart).iter(f"{NAMESPACE}path") if p.get("stroke-linecap")]


def labels(chart):
    return [text.text for text in parsed(chart).iter(f"{NAMESPACE}text")]


def test_points_are_where_their_numbers_belong():
    """The frame of the curves is from 64 to 624 across, and from 208 up to 40."""
    chart = line_chart("loss", [1, 2, 3], {"loss": [2.0, 1.0, 0.0]})
    assert paths(chart) == ["M64 40L344 124L624 208"]
    assert labels(chart) == ["0", "0.5", "1", "1.5", "2", "1", "1.5", "2", "2.5", "3", "loss"]


def test_numbers_that_are_not_finite_are_gaps():
    chart = line_chart("loss", [0, 1, 2, 3, 4], {"loss": [1.0, math.nan, 0.0, 1.0, math.inf]})
    assert paths(chart) == ["M64 40M344 208L484 40"]
    assert paths(line_chart("", [0, 1, 2], {"a": [-1.7e308, 1.0, 1.7e308]})) == ["M344 124"]


def test_a_constant_and_nothing():
    assert paths(line_chart("", [5], {"a": [3.0], "b": [math.nan]})) == ["M344 124", ""]
    assert paths(line_chart("", [], {})) == []
    assert paths(line_chart("", [1], {"a": [0.0]})) == ["M344 124"]


def test_names_are_escaped_and_colours_repeat():
    chart = line_chart("<b>", [1, 2], {f"<script>{n}": [0, n] for n in range(6)})
    assert "<script" not in chart
    assert len(paths(chart)) == 6
    assert "prefers-color-scheme:dark" in chart


@pytest.mark.parametrize(("low", "high"), [(0.0001, 0.0007), (-3e8, 9e9), (0.2, 0.2000001)])
def test_axes_have_some_round_numbers(low, high):
    chart = line_chart("", [1, 2], {"a": [low, high]})
    up = [t.text for t in parsed(chart).iter(f"{NAMESPACE}text") if t.get("text-anchor") == "end"]
    assert 3 <= len(up) <= 6


def test_curves_as_text():
    found = chart_text([0, 1, 2, 3], {"loss": [3, 0, 0, 3], "other": [0, 0, 3, 3]}, width=22, height=4)
    assert found == [
        "3 ┤●           ○○○○○○○",
        "  │ ●●●     ○○○   ●●●",
        "  │    ●   ○     ●",
        "0 ┤○○○○○○○○●●●●●●",
        "  └───────────────────",
        "   0                 3",
        "   ● loss   ○ other",
    ]
    assert max(map(len, found)) == 22


def test_text_of_gaps_and_of_nothing():
    with_gap = chart_text([0, 1, 2, 3, 4], {"loss": [1, 1, math.nan, 1, 1]}, width=30, height=3)
    assert with_gap[1] == "    │●●●●●●●           ●●●●●●●"
    assert chart_text([1, 2], {"loss": [math.nan, math.inf]}) == []
    assert chart_text([], {}) == []


def test_names_of_a_text_are_printable():
    names = chart_text([1, 2], {"\x1b[31m\n": [0, 1], "n" * 99: [1, 0]})[-1]
    assert names.isprintable()
    assert len(names) < 80


def test_many_names_take_several_rows():
    chart = parsed(line_chart("", [1, 2], {f"a curve with a name {n}": [0, n] for n in range(7)}))
    texts = [t for t in chart.iter(f"{NAMESPACE}text") if t.text.startswith("a curve")]
    placed = [(float(t.get("x")), float(t.get("y"))) for t in texts]
    assert len(set(placed)) == 7
    assert all(x + 6.8 * len(t.text) < 640 for (x, _), t in zip(placed, texts, strict=True))
    top = float(chart.get("viewBox").split()[1])
    assert all(y > top + 8 for _, y in placed)


def test_a_steep_curve_has_no_holes():
    rows = chart_text([0, 1], {"a": [0, 1]}, width=9, height=12)[:12]
    assert all("●" in row for row in rows)


def test_a_page_loads_nothing_and_runs_nothing():
    text = page("<title>", "<p>text</p>")
    assert "default-src 'none'" in text
    assert "&lt;title&gt;" in text
    assert "<script" not in text
    assert "http:" not in text.replace("http://www.w3.org", "")


def test_tables_are_cut():
    shown = table(["n"], ([str(n)] for n in range(60)), most=3)
    assert shown.count("<td>") == 3
    assert "and 57 more" in shown
    assert not table(["n"], [])
    assert escaped("x" * 1000, 10) == "x" * 9 + "…"
