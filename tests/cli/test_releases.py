import json
import re
import subprocess
import sys

import sabir


def rows(out):
    return [line.split() for line in out.splitlines()]


def test_every_release_is_listed(cli):
    code, out, err = cli("releases")
    assert (code, err) == (0, "")
    header, *listed = rows(out)
    assert header == [
        "release", "IR", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "ai.onnx.preview",
    ]  # fmt: skip
    assert [row[0] for row in listed] == [r.name for r in sabir.releases()]
    assert listed[0] == ["1.0", "3", "1", "1"]
    assert listed[-1] == ["1.23.0", "14", "28", "5", "1", "1", "1"]


def test_the_releases_that_are_named(cli):
    assert rows(cli("releases", "1.4.1", "1.3").out)[1:] == [["1.4.1", "4", "9", "1"], ["1.3", "3", "8", "1"]]


def test_as_json(cli):
    code, out, err = cli("releases", "1.2", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == [{"name": "1.2", "ir_version": 3, "opsets": {"ai.onnx": 7, "ai.onnx.ml": 1}}]
    assert len(json.loads(cli("releases", "--json").out)) == len(sabir.releases())


def test_an_unknown_release(fails):
    message = fails("releases", "1.24.0")
    assert message.startswith("no release '1.24.0' of ONNX is known; the newest known one is 1.23.0")


def test_the_first_release_of_a_model(cli, relu, softmax):
    code, out, err = cli("releases", "--model", relu, "--model", softmax)
    assert (code, err) == (0, "")
    assert out == f"{relu}: 1.12.0 (IR 8, opset 17)\n{softmax}: 1.12.0 (IR 8, opset 17)\n"
    found = json.loads(cli("releases", "--model", relu, "--json").out)
    assert [(f["path"], f["release"]["name"]) for f in found] == [(str(relu), "1.12.0")]


def test_a_model_on_standard_input(relu):
    done = subprocess.run(
        [sys.executable, "-m", "sabir.cli", "releases", "--model", "-"],
        input=relu.read_bytes(), capture_output=True, check=False,
    )  # fmt: skip
    assert re.fullmatch(rb"standard input: 1\.12\.0 \(IR 8, opset 17\)\r?\n", done.stdout)


def test_a_model_that_no_known_release_has(fails, write):
    path = write('<ir_version: 10, opset_import: ["" : 29]> g (float[N] x) => (float[N] y) { y = Relu (x) }')
    assert "opset 29 of 'ai.onnx' is not known; the newest known one is 28" in fails(
        "releases", "--model", path
    )


def test_wrong_use(fails, relu, tmp_path):
    assert fails("releases", "1.2", "--model", relu) == "name releases, or models with --model, not both"
    assert "there is no such file" in fails("releases", "--model", tmp_path / "none.onnx")
