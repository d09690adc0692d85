import json

import numpy as np
import pytest

import sabir
from sabir.cli._screen import Screen
from sabir.drawing import box_text
from sabir.ir import Node, Value

NESTED = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
outer (bool c, float[2] x) => (float[2] y)
{
   [choose] y = If (c) <
      then_branch = left () => (float[2] a) { a = Relu (x) },
      else_branch = right () => (float[2] b) { b = local.Twice (x) }
   >
}
<domain: "local", opset_import: ["" : 17]>
Twice (v) => (w) { w = Relu (v) }
"""


def test_a_summary(cli, softmax):
    code, out, err = cli("show", softmax)
    assert (code, err) == (0, "")
    assert (
        out
        == f"""softmax.onnx
   graph        tiny
   producer     sabir {sabir.__version__}
   IR           8
   opsets       ai.onnx 17
   file         {softmax.stat().st_size} bytes
   parameters   2 in 1 tensor, 16 bytes

Inputs
   x   float[N,2,3]

Outputs
   y   float[N,6]

Operators  2 nodes
   Reshape   1
   Softmax   1
"""
    )


@pytest.mark.parametrize(
    ("number", "shown", "semver"),
    [
        (0x0001000200000159, "1.2.345 (281483566645593)", "1.2.345"),
        (-1, "65535.65535.4294967295 (-1)", "65535.65535.4294967295"),
        (7, "7", None),
    ],
)
def test_the_version_in_both_forms(cli, write, number, shown, semver):
    path = write(f"<ir_version: 8, model_version: {number}> g (float[2] x) => (float[2] x) {{ }}")
    assert f"   version      {shown}\n" in cli("show", path).out
    (described,) = json.loads(cli("show", path, "--json").out)
    assert (described["version"], described["semver"]) == (number, semver)


def test_no_version(cli, softmax):
    assert "version" not in cli("show", softmax).out
    (described,) = json.loads(cli("show", softmax, "--json").out)
    assert (described["version"], described["semver"]) == (0, None)


def test_nodes(cli, softmax):
    out = cli("show", softmax, "--nodes").out
    assert "   0  Reshape flatten  x: float[N,2,3], shape: int64[2] → reshape_out\n" in out
    assert "   1  Softmax  reshape_out → y: float[N,6]\n" in out


def test_graphs_in_graphs(cli, write):
    path = write(NESTED)
    out = cli("show", path, "--tree", "--nodes").out
    assert "   local.Twice   (v) → (w)   1 node\n" in out
    assert "Operators  3 nodes\n   If            1\n   Relu          1\n   local.Twice   1\n" in out
    assert "   0.then_branch.0    Relu  x: float[2] → a: float[2]\n" in out
    assert out.endswith("""Tree
   graph outer (c, x) → (y)
   └─ If choose  c → y
      ├─ then_branch: left () → (a)
      │  └─ Relu  x → a
      └─ else_branch: right () → (b)
         └─ local.Twice  x → b
   function local.Twice (v) → (w)
   └─ Relu  v → w
""")


def test_old_models_list_their_initializers_as_inputs(cli, tmp_path):
    b = sabir.Builder(7)
    x, w = b.input("x", "float", [2]), b.input("w", "float", [2])
    b.graph.set_initializer(w, sabir.Builder().initializer("w", np.ones(2, np.float32)).constant)
    b.output(b.Add(x, w), "y")
    sabir.save(b.model(ir_version=3), tmp_path / "old.onnx")
    sabir.save(b.model(ir_version=8), tmp_path / "new.onnx")
    assert "Inputs\n   x   float[2]\n   and 1 initializer, which" in cli("show", tmp_path / "old.onnx").out
    assert "   w   float[2]   optional\n" in cli("show", tmp_path / "new.onnx").out


def test_external_data_is_counted_and_not_opened(cli, write):
    path = write("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[4] x) => (float[4] y) <float[4] w = ["location": "gone.bin"]> { y = Add(x, w) }""")
    out = cli("show", path, "--nodes").out
    assert "   parameters   4 in 1 tensor, 16 bytes\n   external     gone.bin: 1 tensor, 16 bytes\n" in out


def test_texts_of_a_model_stay_texts(cli, tmp_path):
    b = sabir.Builder(17, name="[red]g[/red]\x1b[2J")
    x = b.input("x\x1b[31m\u202e\r", "float", [1])
    b.output(b.Relu(x, name="a\nb[bold]"), "y\x07")
    model = b.model(doc="\x1b]0;title\x07", metadata={"k\n": "v\x1b"})
    sabir.save(model, tmp_path / "hostile.onnx")
    for option in ("--nodes", "--tree"):
        out = cli("show", tmp_path / "hostile.onnx", option).out
        assert all(line.isprintable() for line in out.split("\n"))
        assert "[red]g[/red]\\x1b[2J" in out
        assert "x\\x1b[31m\\u202e\\r" in out
        assert "a\\nb[bold]" in out


@pytest.mark.parametrize("option", ["--nodes", "--tree"])
def test_many_nodes_are_no_trouble(cli, tmp_path, option):
    b = sabir.Builder(17)
    x = b.input("x", "float", [1])
    for place in range(20_000):
        x = b.graph.append(Node("Relu", [x], [Value(f"v{place}")])).output
    b.output(x, "y")
    sabir.save(b.model(), tmp_path / "long.onnx")
    assert cli("show", tmp_path / "long.onnx", option).out.count("\n") > 20_000


def test_a_graph_as_a_picture(cli, softmax):
    out = cli("show", softmax, "--graph").out
    assert out.partition("\nGraph\n")[2].splitlines() == box_text(sabir.load(softmax).graph)


def test_a_wide_picture_is_cut_in_a_terminal(cli, softmax, monkeypatch):
    monkeypatch.setattr(Screen, "is_terminal", True)
    monkeypatch.setattr(Screen, "width", 9)
    *picture, sentence = cli("show", softmax, "--graph").out.partition("\nGraph\n")[2].splitlines()
    assert picture[0].endswith("…")
    assert max(map(len, picture)) == 9
    wide = max(map(len, box_text(sabir.load(softmax).graph)))
    assert sentence.startswith(f"the picture has {wide} columns, and the terminal 9: the rest is cut")


def test_a_large_graph_is_refused_before_anything_is_shown(cli, tmp_path):
    b = sabir.Builder(17)
    x = b.input("x", "float", [1])
    for _ in range(300):
        x = b.Relu(x)
    b.output(x, "y")
    sabir.save(b.model(), tmp_path / "long.onnx")
    code, out, err = cli("show", tmp_path / "long.onnx", "--graph")
    assert (code, out) == (2, "")
    assert "at most 300 boxes, and the graph has 302 nodes, inputs and outputs" in err
    assert f"`sabir view {tmp_path / 'long.onnx'} -o page.html` shows it" in err
