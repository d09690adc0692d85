"""`sabir rename`."""

import json

import sabir


def test_names_of_several_kinds(cli, relu, tmp_path):
    out = tmp_path / "out.onnx"
    code, printed, err = cli("rename", relu, "x=image", "N=batch", "node:clamp=act", "-o", out)
    assert (code, err) == (0, "")
    assert "dimension   N            →   batch" in printed or "dimension" in printed
    model = sabir.load(out)
    assert (str(model.graph.inputs[0]), model.graph[0].name) == ("<Value image: float[batch,3]>", "act")
    code, printed, _ = cli("rename", relu, "x=image", "-o", out, "--json")
    assert json.loads(printed) == {"renamed": [{"kind": "value", "old": "x", "new": "image"}]}


def test_what_is_refused(fails, relu, tmp_path):
    out = tmp_path / "out.onnx"
    assert "is it 'clamp'?" in fails("rename", relu, "clam=act", "-o", out)
    assert "write OLD=NEW, such as input.1=image" in fails("rename", relu, "x", "-o", out)
    assert "the model has a value of that name" in fails("rename", relu, "x=y", "-o", out, code=1)
    assert "--json writes the report" in fails("rename", relu, "x=z", "-o", "-", "--json")
    assert not out.exists()
