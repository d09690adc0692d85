"""`sabir set-dims`."""

import json

import sabir

BAKED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1,6] x) => (float[1,6] y) <int64[2] shape = {1, 6}> { y = Reshape (x, shape) }"""


def test_dimensions_are_fixed_renamed_and_freed(cli, relu, tmp_path):
    fixed, freed = tmp_path / "fixed.onnx", tmp_path / "freed.onnx"
    code, out, err = cli("set-dims", relu, "N=4", "-o", fixed)
    assert (code, err) == (0, "")
    assert "x   float[N,3]   →   float[4,3]" in out
    assert str(sabir.load(fixed).graph.outputs[0].type) == "float[4,3]"
    assert str(sabir.load(relu).graph.outputs[0].type) == "float[N,3]"
    assert cli("set-dims", fixed, "x[0]=batch", "x[1]=?", "-o", freed).code == 0
    assert str(sabir.load(freed).graph.inputs[0].type) == "float[batch,?]"


def test_sizes_in_constants_end_in_exit_code_1(cli, write, tmp_path):
    model, output = write(BAKED), tmp_path / "out.onnx"
    code, out, _ = cli("set-dims", model, "x[0]=N", "-o", output)
    assert code == 1
    assert "graph/node[0] 'Reshape': " in out
    assert "a run fails unless N = 1" in out
    assert output.exists()
    code, out, _ = cli("set-dims", model, "x[0]=N", "-o", output, "--json")
    report = json.loads(out)
    assert code == 1
    assert report["types"]["x"] == "float[N,6]"
    assert report["problems"][0]["location"] == "graph/node[0] 'Reshape'"


def test_constants_are_mended_on_request(cli, write, tmp_path):
    model, output = write(BAKED), tmp_path / "out.onnx"
    code, out, _ = cli("set-dims", model, "x[0]=N", "--repair", "-o", output)
    assert code == 0
    assert "graph/node[0] 'Reshape': [1, 6] is now [0, 6]" in out
    code, out, _ = cli("set-dims", model, "x[0]=N", "--repair", "-o", output, "--json")
    assert json.loads(out)["mended"] == [
        {"location": "graph/node[0] 'Reshape'", "old": ["1", "6"], "new": ["0", "6"]}
    ]
    assert str(sabir.load(output).graph.outputs[0].type) == "float[N,6]"


def test_invalid_dimensions_are_refused(fails, relu, tmp_path):
    output = tmp_path / "out.onnx"
    assert "write a dimension as NAME=SIZE" in fails("set-dims", relu, "N", "-o", output)
    assert "no dimension variable 'M'; is it" not in fails("set-dims", relu, "M=3", "-o", output)
    assert "is it 'N'?" in fails("set-dims", relu, "n=3", "-o", output)
    assert not output.exists()
    assert "--json writes the report" in fails("set-dims", relu, "N=3", "-o", "-", "--json")
