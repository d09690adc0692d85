"""`sabir reduce`."""

import json
import sys

import pytest

import sabir
from sabir.cli import _reduce
from sabir.cli._reduce import Command

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[8] x) => (float[8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  a = Add (x, w)  b = Exp (a)  c = Tanh (b)  y = Neg (c)
}"""
# fails with exit code 3 where the model has a node Exp; with 4 where it has none, and 0 without nodes to fail
SCRIPT = """import sys
data = open(sys.argv[1], "rb").read()
print("Exp is broken" if b"Exp" in data else "something else")
sys.exit(3 if b"Exp" in data else 4)
"""


@pytest.fixture
def command(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(SCRIPT)
    return f"{sys.executable} {script}"


@pytest.mark.parametrize("place", ["", " {}"])
def test_the_smallest_model_is_written(cli, write, command, tmp_path, place):
    output = tmp_path / "small.onnx"
    code, out, err = cli("reduce", write(MODEL), "--failing", command + place, "-o", output)
    assert (code, err) == (0, "")
    assert [node.op for node in sabir.load(output).graph] == ["Exp"]
    assert "nodes          4   →   1" in out
    assert "initializers   1   →   0" in out
    assert "models tried" in out
    assert f"saved {output}" in out


def test_as_json(cli, write, command, tmp_path):
    output = tmp_path / "small.onnx"
    code, out, _ = cli(
        "reduce", write(MODEL), "--failing", command, "--message", "Exp is", "-o", output, "--json"
    )
    report = json.loads(out)
    assert code == 0
    assert report["old"] == {"nodes": 4, "initializers": 1, "inputs": 1, "outputs": 1}
    assert report["new"] == {"nodes": 1, "initializers": 0, "inputs": 1, "outputs": 1}
    assert report["trials"] > 1
    assert report["interrupted"] is False


def test_an_interrupt_keeps_the_smallest_model(cli, write, command, tmp_path, monkeypatch):
    fails, output = Command.fails, tmp_path / "small.onnx"

    def interrupted(self, path):
        if len(sabir.load(path).graph) == 1:
            raise KeyboardInterrupt
        return fails(self, path)

    monkeypatch.setattr(_reduce.Command, "fails", interrupted)
    code, out, _ = cli("reduce", write(MODEL), "--failing", command, "-o", output)
    assert code == 130
    assert "then interrupted" in out
    ops = [node.op for node in sabir.load(output).graph]
    assert "Exp" in ops
    assert 1 < len(ops) < 4


def test_what_cannot_be_reduced(fails, write, command, tmp_path):
    model, output = write(MODEL), tmp_path / "small.onnx"

    def refused(*options):
        return fails("reduce", model, "-o", output, *options)

    assert "exit code 0 on the whole model" in refused("--failing", f"{sys.executable} -c pass")
    assert "does not print 'no such text'" in refused("--failing", command, "--message", "no such text")
    assert "cannot be started" in refused("--failing", "no-such-program")
    assert "the command is empty" in refused("--failing", "")
    slow = f"{sys.executable} -c 'import time; time.sleep(60)'"
    assert "longer than --timeout" in refused("--failing", slow, "--timeout", "0.2")
    assert "--json writes the report" in fails("reduce", model, "--failing", command, "-o", "-", "--json")
    assert not output.exists()
