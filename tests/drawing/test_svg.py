"""Graphs as SVG: well-formed, boxes apart, lines from box to box, and texts that are never markup."""

import itertools
import re

import numpy as np
import pytest

import sabir
from sabir.drawing import svg
from sabir.drawing._picture import picture_of
from sabir.ir import Graph, Node, Value
from support.markup import parsed
from support.random_graphs import graph

NAMESPACE = "{http://www.w3.org/2000/svg}"
HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
HOSTILE = [
    "<script>alert(1)</script>",
    "]]>--><!--",
    "&lt;&#0;",
    "a\"b'c",
    "x" * 10_000,
    "\u202egnp",
    "\ud800",
    "\0\n\x1b[31m",
    "重み",
]


def frames(root):
    """The boxes without the background: left, top, right, bottom."""
    found = [rect.attrib for rect in root.iter(f"{NAMESPACE}rect") if rect.get("class") != "sabir-ground"]
    return [
        (x, y, x + w, y + h)
        for x, y, w, h in ([float(a[k]) for k in ("x", "y", "width", "height")] for a in found)
    ]


def texts(root):
    return ["".join(text.itertext()) for text in root.iter(f"{NAMESPACE}text")]


@pytest.mark.parametrize("seed", range(8))
def test_boxes_are_apart_and_lines_touch_them(seed):
    made = graph(seed, 4 + 4 * seed)
    root = parsed(svg(made))
    boxes = frames(root)
    width, height = float(root.get("width")), float(root.get("height"))
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    assert all(a >= 0 and b >= 0 and c <= width and d <= height for a, b, c, d in boxes)
    picture, expected = picture_of(made), 0
    groups = [g for g in root.iter(f"{NAMESPACE}g") if g.find(f"{NAMESPACE}path") is not None]
    assert len(groups) == len(picture.nets)
    for group, net in zip(groups, picture.nets, strict=True):
        line, arrows = (str(path.get("d")) for path in group.iter(f"{NAMESPACE}path"))
        starts = [tuple(map(float, point)) for point in re.findall(r"M([\d.]+) ([\d.]+)", line)]
        (box,) = {boxes_at(boxes, x, y, 3) for x, y in starts if boxes_at(boxes, x, y, 3) is not None}
        tips = [tuple(map(float, point)) for point in re.findall(r"M([\d.]+) ([\d.]+)L", arrows)]
        ends = {tuple(map(float, point)) for point in re.findall(r"C[^MVC]* ([\d.]+) ([\d.]+)", line)}
        assert set(tips) <= ends, "an arrow is at the end of its line"
        reached = {boxes_at(boxes, x, y, 1) for x, y in tips}
        assert None not in reached
        assert len(tips) == len(reached) == len(net.readers)
        assert box not in reached
        expected += len(tips)
    assert expected


def boxes_at(boxes, x, y, side):
    """The number of the box whose upper (1) or lower (3) border has a place."""
    return next((n for n, b in enumerate(boxes) if b[0] < x < b[2] and b[side] == y), None)


def test_texts_fit_their_boxes():
    made = graph(3, 12)
    for node in made:
        node.name = f"/a/long/scope/{node.op}"
    root = parsed(svg(made))
    for group in root.iter(f"{NAMESPACE}g"):
        rect = group.find(f"{NAMESPACE}rect")
        if rect is not None:
            for text in group.iter(f"{NAMESPACE}text"):
                assert len(text.text) * 0.6 * float(text.get("font-size", 10)) <= float(rect.get("width"))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_never_markup(name):
    made = Graph(name)
    x = made.add_input(name)
    made.append(
        Node(
            name,
            [x, made.add_initializer(name, np.zeros(2, np.float32))],
            1,
            {"text": name},
            domain=name,
            name=name,
        )
    )
    made[0].outputs[0].name = name
    made.outputs = [made[0].outputs[0]]
    text = svg(made)
    root = parsed(text)
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= {
        "svg",
        "title",
        "style",
        "rect",
        "g",
        "path",
        "text",
    }
    assert not any(a.startswith("on") or "href" in a for element in root.iter() for a in element.attrib)
    assert max(map(len, texts(root))) < 80
    assert len(text) < 12_000
    assert text.replace("\n", "").isprintable()


def test_the_picture_follows_light_and_dark_and_runs_no_script():
    text = svg(sabir.parse(f"{HEADER}g (float[N] x) => (float[N] y) {{ y = Relu (x) }}").graph)
    assert "prefers-color-scheme:dark" in text
    assert "<script" not in text
    assert parsed(text).get("role") == "img"


def test_what_a_box_and_a_line_show():
    model = sabir.parse(f"""{HEADER}g (float[2] x) => (float[2] y) <float[2] w = {{1, 2}}> {{
        ["/block/add"] h = Add (x, w)  y = Relu (h) }}""")
    root = parsed(svg(sabir.infer(model).graph))
    assert texts(root) == [
        "float[2]",
        "float[2]",
        "x",
        "float[2]",
        "Add",
        "/block/add",
        "▪ w float[2]",
        "Relu",
        "y",
        "float[2]",
    ]
    hints = [title.text for title in root.iter(f"{NAMESPACE}title")]
    assert "Add\n/block/add\ninput x: float[2]\ninput w: float[2]\noutput h: float[2]" in hints


def test_outer_values_defaults_and_constants_that_are_outputs():
    outer = sabir.parse(f"""{HEADER}g (bool c, float[2] x) => (float[2] y) {{
        y = If (c) < then_branch = t () => (float[2] p) {{ p = Relu (x) }}, else_branch = e () => (float[2] q) {{ q = Abs (x) }} > }}""")
    picture = picture_of(outer.graph[0].graphs[0])
    assert [(box.kind, box.title) for box in picture.boxes] == [
        ("outer", "x"),
        ("node", "Relu"),
        ("output", "p"),
    ]
    assert 'stroke-dasharray="4 3"' in svg(outer.graph[0].graphs[0])
    constant = sabir.parse(
        f"{HEADER}g (float[2] x) => (float[2] w, float[2] x) <float[2] w = {{1, 2}}, float[2] x = {{1, 2}}> {{ }}"
    )
    assert [(box.title, box.marks and box.marks[0].name) for box in picture_of(constant.graph).boxes] == [
        ("w", "initializer"), ("x", "initializer"),
    ]  # fmt: skip


def test_values_that_nothing_defines_are_drawn():
    made = Graph("loose")
    node = made.append(Node("Relu", [Value("nowhere"), None], 1))
    made.outputs = [node.outputs[0], None]
    assert [box.kind for box in picture_of(made).boxes] == ["outer", "node", "output"]


def test_many_marks_are_counted():
    made = Graph("many")
    made.append(Node("Sum", [made.add_initializer(f"w{n}", np.zeros(1)) for n in range(9)], 1))
    assert [mark.text for mark in picture_of(made).boxes[0].marks] == ["double[1]"] * 3 + ["and 6 more"]


def test_what_cannot_be_drawn():
    with pytest.raises(
        sabir.UnsupportedError, match="at most 300 boxes, and the graph has 301 nodes, inputs and outputs"
    ):
        svg(graph_of(300))
    made = Graph("circle")
    a, b = (made.append(Node("Relu", [None], 1)) for _ in range(2))
    a.inputs[0], b.inputs[0] = b.outputs[0], a.outputs[0]
    with pytest.raises(sabir.SchemaError, match="cycle"):
        svg(made)


def graph_of(count):
    made = Graph("chain")
    value = made.add_input("x")
    for _ in range(count):
        value = made.append(Node("Relu", [value], 1)).outputs[0]
    return made


def test_an_empty_graph_and_the_largest_one():
    assert frames(parsed(svg(Graph()))) == []
    assert len(frames(parsed(svg(graph_of(299))))) == 300
