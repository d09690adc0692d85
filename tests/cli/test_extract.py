"""`sabir extract`, `split`, `add-outputs`, `inputs` and `outline`."""

import json

import numpy as np
import pytest

import sabir

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x, float[N,2] z) => (float[N,2] y) <float[2] w = {1, 2}> {
    t = Add (x, w)  u = Relu (t)  y = Add (u, z)
}"""


@pytest.fixture
def model(write):
    return write(MODEL)


def ops(path):
    return [node.op for node in sabir.load(path).graph]


def test_extract(cli, model, tmp_path):
    output = tmp_path / "part.onnx"
    code, out, err = cli("extract", model, "--from", "t", "--to", "u", "-o", output)
    assert (code, err) == (0, "")
    assert out.startswith("1 node of 3\n   input    t   float[N,2]\n   output   u   float[N,2]\nsaved ")
    assert ops(output) == ["Relu"]
    report = json.loads(cli("extract", model, "--to", "u", "-o", output, "--json").out)
    assert report == {
        "nodes": 2, "nodes_before": 3, "functions": [], "training": 0,
        "inputs": {"x": "float[N,2]"}, "outputs": {"u": "float[N,2]"},
    }  # fmt: skip


def test_extract_names_the_path_around_and_writes_nothing(fails, model, tmp_path):
    output = tmp_path / "part.onnx"
    message = fails("extract", model, "--from", "u", "-o", output)
    assert message.startswith("the outputs depend on the input 'z', which is not listed: y <- z; ")
    assert "no value 'w1'; is it 'w'?" in fails("extract", model, "--from", "w1", "-o", output)
    assert not output.exists()
    assert "--json writes the report" in fails("extract", model, "-o", "-", "--json")


def test_split(cli, model, tmp_path):
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    code, out, err = cli("split", model, "--at", "t", "-o", first, second)
    assert (code, err) == (0, "")
    assert out.count("saved ") == 2
    assert (ops(first), ops(second)) == (["Add"], ["Relu", "Add"])
    report = json.loads(cli("split", model, "--at", "u", "-o", first, second, "--json").out)
    assert [part["inputs"] for part in report] == [
        {"x": "float[N,2]"},
        {"u": "float[N,2]", "z": "float[N,2]"},
    ]


def test_split_needs_two_files(fails, model, tmp_path):
    first = tmp_path / "first.onnx"
    assert "name two files" in fails("split", model, "--at", "t", "-o", first, "-")
    assert "need different files" in fails("split", model, "--at", "t", "-o", first, first)
    assert "no node computes 'x'" in fails("split", model, "--at", "x", "-o", first, tmp_path / "second.onnx")
    assert not first.exists()


def test_add_outputs(cli, fails, model, tmp_path):
    output = tmp_path / "out.onnx"
    assert cli("add-outputs", model, "u", "-o", output).code == 0
    assert [value.name for value in sabir.load(output).graph.outputs] == ["y", "u"]
    report = json.loads(cli("add-outputs", model, "--all", "-o", output, "--json").out)
    assert list(report["outputs"]) == ["y", "t", "u"]
    assert "name values, or use --all" in fails("add-outputs", model, "-o", output)
    assert "name values, or use --all" in fails("add-outputs", model, "u", "--all", "-o", output)


def test_inputs(cli, fails, model, tmp_path):
    output, data = tmp_path / "out.onnx", tmp_path / "z.npy"
    np.save(data, np.ones((3, 2), np.float32))
    report = json.loads(
        cli(
            "inputs",
            model,
            "--from-initializer",
            "w",
            "--to-initializer",
            f"z={data}",
            "-o",
            output,
            "--json",
        ).out
    )
    assert report["inputs"] == {"x": "float[3,2]", "w": "float[2]"}
    assert [value.name for value in sabir.load(output).graph.initializers] == ["z"]
    assert cli("inputs", model, "--from-initializer", "all", "--keep-defaults", "-o", output).code == 0
    assert [value.name for value in sabir.load(output).graph.initializers] == ["w"]
    assert "nothing to change" in fails("inputs", model, "-o", output)
    assert "write an input and its file" in fails("inputs", model, "--to-initializer", "z", "-o", output)
    assert "no input 'zz'; is it 'z'?" in fails(
        "inputs", model, "--to-initializer", f"zz={data}", "-o", output
    )


def test_outline(cli, fails, model, tmp_path):
    output, flat = tmp_path / "out.onnx", tmp_path / "flat.onnx"
    report = json.loads(cli("outline", model, "t", "u", "--name", "Block", "-o", output, "--json").out)
    assert (report["nodes"], report["functions"]) == (2, ["Block"])
    assert ops(output) == ["Block", "Add"]
    assert cli("inline", output, "-o", flat).code == 0
    assert sabir.compare(sabir.load(model), sabir.load(flat)).changes == ()
    assert "no node 'T'; is it 't'?" in fails("outline", model, "T", "--name", "Block", "-o", output)
