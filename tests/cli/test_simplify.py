"""`sabir simplify`."""

import json

import pytest

import sabir

CHAIN = """<ir_version: 10, opset_import: ["" : 21]>
main (float[N,4] x) => (float[N,2,2] y) {
  i = Identity (x)  s = Shape (i)  z = Constant <value = int64[1] {0}> ()  n = Gather (s, z)
  r = Constant <value = int64[2] {2, 2}> ()  t = Concat <axis = 0> (n, r)  a = Reshape (i, t)  y = Relu (a) }"""


def test_the_command(cli, fails, write, tmp_path):
    model, out = write(CHAIN), tmp_path / "out.onnx"
    code, printed, err = cli("simplify", model, "-o", out, "--report")
    assert (code, err) == (0, "")
    lines = [line.split() for line in printed.splitlines()]
    assert ["nodes", "8", "→", "2"] in lines
    assert ["Identity", "1", "→", "0"] in lines
    assert "largest difference on 3 lists of random inputs: 0" in printed
    assert [n.op for n in sabir.load(out).graph] == ["Reshape", "Relu"]
    assert "is it 'x'?" in fails("simplify", model, "-o", out, "--keep", "xx")


@pytest.mark.parametrize("options", [(), ("--no-fuse", "--no-verify")])
def test_the_report_as_json(cli, write, tmp_path, options):
    code, printed, _ = cli(
        "simplify", write(CHAIN), "-o", tmp_path / "out.onnx", "--json", "--keep", "a", *options
    )
    found = json.loads(printed)
    assert code == 0
    assert found["after"]["operators"] == {"Reshape": 1, "Relu": 1}
    assert (found["verification"] is None) == bool(options)
