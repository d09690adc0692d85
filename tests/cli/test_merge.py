"""`sabir merge`."""

import json

import sabir

NEG = '<ir_version: 10, opset_import: ["" : 21]> h (float[M,3] x) => (float[M,3] y) { y = Neg (x) }'


def test_two_models_become_one(cli, relu, write, tmp_path):
    second, out = write(NEG), tmp_path / "out.onnx"
    code, printed, err = cli("merge", relu, second, "--connect", "y=x", "-o", out)
    assert (code, err) == (0, "")
    assert "y   →   x" in printed
    assert "the first model converted to opset 21 of ai.onnx" in printed
    assert "value 'y' of the first model is now 'y_1'" in printed
    model = sabir.load(out)
    assert [node.op for node in model.graph] == ["Relu", "Neg"]
    assert str(model.graph.outputs[0]) == "<Value y: float[N,3]>"


def test_options_and_the_report_as_json(cli, relu, write, tmp_path):
    second, out = write(NEG), tmp_path / "out.onnx"
    options = ("--connect", "y=x", "--keep", "y", "--prefix", "a_,", "-o", out, "--json")
    code, printed, _ = cli("merge", relu, second, *options)
    report = json.loads(printed)
    assert code == 0
    assert report["connected"] == [{"output": "y", "input": "x"}]
    assert report["converted"] == [{"ai.onnx": 21}, {}]
    assert {"model": 0, "kind": "value", "old": "x", "new": "a_x"} in report["renamed"]
    assert [v.name for v in sabir.load(out).graph.outputs] == ["a_y", "y"]
    assert cli("merge", relu, second, "--apart", "-o", out).code == 0
    assert len(sabir.load(out).graph.inputs) == 2


def test_many_names_are_counted(cli, tmp_path):
    b = sabir.Builder(21)
    x = b.input("x", "float", [3])
    for _ in range(20):
        x = b.Relu(x)
    b.output(x, "y")
    sabir.save(b.model(), tmp_path / "long.onnx")
    code, printed, _ = cli(
        "merge", tmp_path / "long.onnx", tmp_path / "long.onnx", "--connect", "y=x", "-o", tmp_path / "o.onnx"
    )
    assert code == 0
    assert "other names" in printed


def test_what_is_refused(fails, relu, write, tmp_path):
    out = tmp_path / "out.onnx"
    second = write(NEG)
    assert "is it 'y'?" in fails("merge", relu, second, "--connect", "Y=x", "-o", out)
    assert "write OUT=IN" in fails("merge", relu, second, "--connect", "y", "-o", out)
    assert "write two prefixes" in fails(
        "merge", relu, second, "--prefix", "a", "--connect", "y=x", "-o", out
    )
    assert "pass one of them" in fails("merge", relu, second, "--apart", "--connect", "y=x", "-o", out)
    wide = write(NEG.replace("3", "4"), "wide.onnxtxt")
    message = fails("merge", relu, wide, "--connect", "y=x", "-o", out, code=1)
    assert "contradict each other: 3 and 4" in message
    assert not out.exists()
