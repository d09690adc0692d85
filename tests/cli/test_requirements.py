import json

import pytest

import sabir

MODEL = """
<ir_version: 10, opset_import: ["" : 21, "local" : 1, "org.acme" : 2]>
outer (bool c, float[2] x) => (float[2] y)
{
   [choose] z = If (c) <
      then_branch = left () => (float[2] a) { a = Relu (x) },
      else_branch = right () => (float[2] b) { b = local.Twice (x) }
   >
   y = org.acme.Clip (z)
}
<domain: "local", opset_import: ["" : 17]>
Twice (v) => (w) { w = Relu (v) }
"""
SIX = " ".join(f"v{i + 1} = Gelu (v{i})" for i in range(7))


@pytest.fixture
def model(write):
    return write(MODEL)


def test_requirements(cli, model):
    code, out, err = cli("show", model, "--requirements")
    assert (code, err) == (0, "")
    summary, unknown = out.split("\nUnknown\n")
    assert (
        summary
        == """model.onnxtxt
   IR   10, needs 10 (opset 21 of ai.onnx)

Operator sets
   ai.onnx    21   2 nodes, needs 21
   local       1   1 call of functions
   org.acme    2   1 node, not all known
   ai.onnx    17   1 node, needs 14, in function local.Twice

Operators  3 nodes
   Relu:14   2
   If:21     1

Calls of functions
   local.Twice   1

Features
   functions   IR 8   1
   subgraphs          2

Element types
   float, bool
"""
    )
    assert unknown.startswith(
        "   1 node, graph/node[1] 'Clip': org.acme.Clip is not an operator that Sabir knows"
    )


def test_a_consumer_that_accepts_a_model(cli, relu):
    code, out, err = cli("show", relu, "--for", "onnxruntime-1.20.1")
    assert (code, err) == (0, "")
    assert out.endswith("\nAccepted by onnxruntime-1.20\n")


def test_a_consumer_that_does_not(cli, model):
    code, out, err = cli("show", model, "--for", "onnxruntime-1.17")
    assert (code, err) == (1, "")
    assert out.endswith("""
Not accepted by onnxruntime-1.17
   the model has IR version 10, and onnxruntime-1.17 reads up to 9; it uses no feature of the format that came later: set `ir_version` to 9
      model
   the model imports opset 21 of ai.onnx, and onnxruntime-1.17 has up to 20; 1 node uses a version that opset 20 does not have
      opset_import 'ai.onnx'
   If:21 is newer than opset 20 of ai.onnx, the newest of onnxruntime-1.17, which has If:19
      graph/node[0] 'choose'
   onnxruntime-1.17 has no operators of 'org.acme'; the node calls org.acme.Clip
      graph/node[1] 'Clip'
""")


def test_a_known_consumer_with_more_operators(cli, model):
    code, out, _ = cli("show", model, "--for", "onnxruntime-1.20", "--opset", "org.acme=2")
    assert (code, out.splitlines()[-1]) == (0, "Accepted by onnxruntime-1.20")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--opset", "17"], 0),
        (["--opset", "17", "--ir", "7"], 1),
        (["--opset", "ai.onnx=16", "--ir", "8"], 1),
        (["--ir", "8"], 0),
        (["--ir", "7"], 1),
        (["--opset", "ai.onnx.ml=3"], 1),
        (["--for", "onnx-1.12.0"], 0),
        (["--for", "onnx-1.11.0"], 1),
        (["--for", "onnx-1.12.0", "--ir", "7"], 1),
    ],
)
def test_consumers_that_are_described(cli, relu, options, code):
    """The model has IR 8 and opset 17, the first pair of which came with onnx 1.12."""
    assert cli("show", relu, *options).code == code


def test_many_nodes_are_counted(cli, write):
    path = write(f'<ir_version: 9, opset_import: ["" : 20]> g (float[N] v0) => (float[N] v7) {{ {SIX} }}')
    out = cli("show", path, "--opset", "19").out
    assert out.count("      graph/node[") == 5
    assert out.endswith("      ... and 2 more; --json lists all\n")


def test_as_json(cli, model):
    code, out, err = cli("show", model, "--for", "onnxruntime-1.17", "--json")
    assert (code, err) == (1, "")
    (data,) = json.loads(out)
    assert data["nodes"] == 4  # what `show` reports without --requirements
    found = data["requirements"]
    assert found["imports"][3] == {
        "domain": "ai.onnx", "version": 17, "least": 14, "nodes": 1, "function_calls": 0, "function": "local.Twice",
    }  # fmt: skip
    assert found["operators"] == {"Relu:14": 2, "If:21": 1}
    assert found["functions"] == {"local.Twice": 1}
    assert found["features"][0] == {
        "name": "functions", "since": 8, "uses": 1, "location": "function[0] 'Twice'",
    }  # fmt: skip
    assert found["element_types"] == ["float", "bool"]
    assert found["consumer"]["opsets"]["ai.onnx"] == 20
    assert [o["kind"] for o in found["obstacles"]] == ["ir_version", "import", "operator", "domain"]
    assert found["obstacles"][2]["location"] == "graph/node[0] 'choose'"
    assert found["obstacles"][2]["node"] == "choose"
    (data,) = json.loads(cli("show", model, "--requirements", "--json").out)
    assert "obstacles" not in data["requirements"]


def test_the_exit_code_of_several_models(cli, relu, model):
    assert cli("show", relu, model, "--for", "onnxruntime-1.17").code == 1
    assert cli("show", relu, relu, "--for", "onnxruntime-1.17").code == 0


def test_custom_operators(cli, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acme_clip.py").write_text(
        "from sabir.schema import FLOATS, Constraint, Input, Operator, Output\n"
        "T = Constraint('T', FLOATS)\n"
        "clip = Operator('Clip', 'org.acme', summary='Clip.')\n"
        "clip.first(1, inputs=[Input('x', T)], outputs=[Output('y', T)])\n",
        encoding="utf-8",
    )
    out = cli("show", model, "--requirements", "--operators", "acme_clip:clip").out
    assert "   org.acme.Clip:1   1\n" in out
    assert "Unknown" not in out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--for", "onnxrutime-1.20"],
            "no consumer 'onnxrutime-1.20' is known; known are onnxruntime-1.0 to",
        ),
        (["--for", "onnxrutime-1.20"], "is it 'onnxruntime-1.20'?"),
        (["--opset", "x"], "--opset 'x': write it as 17, or ai.onnx.ml=3"),
        (["--opset", "9" * 5000], "write it as 17"),
        (["--opset", "ai.onnx.ml="], "write it as 17"),
        (["--opset", "99"], "opset 99 of 'ai.onnx' is not known; the newest known one is 28"),
        (["--ir", "15"], "no release of ONNX with IR version 15 is known; the known ones have 3 to 14"),
        (["--ir", "0"], "'--ir'"),
        (["--opset", "17", "--ir", "15"], "IR version 15 is not known; the newest known one is 14"),
    ],
)
def test_wrong_use(fails, relu, options, expected):
    assert expected in fails("show", relu, *options)


def test_texts_of_a_model_stay_texts(cli, tmp_path):
    b = sabir.Builder(17)
    y = b.op("F\x1b[2J", b.Relu(b.input("x", "float", [1]), name="n\n"), domain="a\x1b[2J")
    b.output(y, "y", "float", [1])
    model = b.model()
    model.opsets["a\x1b[2J"] = 1
    sabir.save(model, tmp_path / "hostile.onnx")
    out = cli("show", tmp_path / "hostile.onnx", "--opset", "13").out
    assert all(line.isprintable() for line in out.split("\n"))
    assert "a\\x1b[2J.F\\x1b[2J" in out
    assert "'n\\n'" in out
