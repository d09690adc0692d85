"""Graphs as text: whole pictures, and every line followed from its box to its readers."""

import re

import pytest

import sabir
from sabir.drawing import box_text, columns
from sabir.ir import Graph, Node
from support.random_graphs import graph

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
SIDES = {
    "│": "ud", "─": "lr", "┌": "dr", "┐": "dl", "└": "ur", "┘": "ul", "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru",
    "┼": "lrud",
}  # fmt: skip
STEPS = {"u": (-1, 0, "d"), "d": (1, 0, "u"), "l": (0, -1, "r"), "r": (0, 1, "l")}
TITLE = re.compile(r"[│╎] (Op\d+|input\d|v\d+_\d) +[│╎]")


def drawn(text):
    return box_text(sabir.parse(HEADER + text).graph)


def test_initializers_subgraphs_and_constants_are_in_the_box():
    rows = drawn("""g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        k = Constant <value = float[2] {1, 2}> ()
        a = Mul (w, k)
        [choose] y = If (c) < then_branch = t () => (float[2] p) { p = Add (a, x) },
                              else_branch = e () => (float[2] q) { q = Identity (a) } >
    }""")
    assert rows == [
        "╭──────╮  ╭──────────╮  ┌────────────┐",
        "│ c    │  │ x        │  │ Mul        │",
        "│ bool │  │ float[2] │  │ w float[2] │",
        "╰───┬──╯  ╰─────┬────╯  │ Constant   │",
        "    │           │       └──────┬─────┘",
        "    │           │              │",
        "    └──────────┐└┐ ┌───────────┘",
        "      ┌────────▼─▼─▼───────┐",
        "      │ If                 │",
        "      │ choose             │",
        "      │ then_branch 1 node │",
        "      │ else_branch 1 node │",
        "      └──────────┬─────────┘",
        "                 │ float[2]",
        "           ╭─────▼────╮",
        "           │ y        │",
        "           │ float[2] │",
        "           ╰──────────╯",
    ]


def test_a_line_that_crosses_passes_over():
    made = sabir.parse(
        f"{HEADER}g (float a, float b) => (float y, float z, float w) {{ y = Add (a, b)  z = Sub (a, b)  w = Mul (b, a) }}"
    )
    assert any("│─" in row for row in box_text(made.graph))


def boxes(rows):
    """The title, the row of the upper border, that of the lower one and the columns of each box."""
    for number, row in enumerate(rows):
        for match in TITLE.finditer(row):
            left, right = match.start(), match.end() - 1
            bottom = next(n for n in range(number, len(rows)) if rows[n][left] in "└╰")
            yield match[1], number - 1, bottom, range(left, right + 1)


def ends(rows, row, column):
    """The places at which the line arrives that goes down from a place."""
    pending, seen, found = [(row, column, "u")], set(), set()
    while pending:
        place = row, column, came = pending.pop()
        if place in seen:
            continue
        seen.add(place)
        character = rows[row][column]
        if character == "▼":
            found.add((row, column))
            continue
        passes = character == "│" and came in "lr"  # under the line of another value
        sides = "lr" if passes else SIDES[character]
        assert came in sides
        for side in sides:
            down, right, back = STEPS[side]
            if side != came:
                pending.append((row + down, column + right, back))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_every_line_leads_to_its_readers(seed):
    made = graph(seed, 3 + 2 * seed)
    rows = [f"{row:400}" for row in box_text(made)]
    expected, found = {}, {}
    for value in made.defined():
        readers = {value.name if use.user is made else use.user.op for use in value.uses}
        expected.setdefault(value.name if value.is_input else value.node.op, []).append(sorted(readers))
    placed = list(boxes(rows))
    entered = {(top, column): title for title, top, _, inside in placed for column in inside}
    for title, _, bottom, inside in placed:
        for column in inside:
            if rows[bottom][column] == "┬":
                found.setdefault(title, []).append(
                    sorted(entered[end] for end in ends(rows, bottom + 1, column))
                )
    assert {title: sorted(nets) for title, nets in found.items()} == {
        title: sorted(nets) for title, nets in expected.items()
    }
    arrows = sum(row.count("▼") for row in rows)
    assert arrows == sum(len(net) for nets in expected.values() for net in nets)


def test_wide_and_combining_characters_keep_the_frame():
    rows = drawn('g (float[N] "重み e\u0301") => (float[N] y) { y = Relu ("重み e\u0301") }')
    assert len({columns(row) for row in rows[:3]}) == 1


def test_a_picture_that_nobody_can_read_is_refused():
    made = Graph("dense")
    values = [made.append(Node("A", [], 1)).outputs[0] for _ in range(90)]
    for _ in range(90):
        made.append(Node("B", values, 1))
    with pytest.raises(
        sabir.UnsupportedError,
        match=r"at most 500,000 characters, and this one would have [\d,]+ columns and \d+ rows",
    ):
        box_text(made)
