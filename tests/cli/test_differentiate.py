import numpy as np
import pytest

import sabir

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] x) => (float loss) <float[2] w = {1.0, 2.0}, float[2] v = {0.5, 0.5}> {
    a = Mul (x, w)  b = Mul (a, v)  loss = ReduceSum <keepdims = 0> (b) }"""
X = np.float32([[1, 2], [3, 4]])


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.onnx"
    sabir.save(sabir.parse(TEXT), path)
    return path


def test_gradients_of_a_loss(cli, model, tmp_path):
    out = tmp_path / "g.onnx"
    code, stdout, err = cli("differentiate", model, "--of", "loss", "--wrt", "w,x", "-o", out)
    assert (code, err) == (0, "")
    assert stdout.splitlines()[0].startswith("3 nodes → ")
    assert [line.split() for line in stdout.splitlines()[1:3]] == [
        ["grad_w", "float[2]"],
        ["grad_x", "float[N,2]"],
    ]
    assert f"saved {out}" in stdout
    found = sabir.load(out)
    assert found.opset() == 18
    assert sabir.evaluate(found, {"x": X})["grad_w"].tolist() == [2, 3]


def test_a_seed_and_the_original_operator_set(cli, model, tmp_path):
    out = tmp_path / "g.onnx"
    code, *_ = cli(
        "differentiate",
        model,
        "--of",
        "a",
        "--wrt",
        "w",
        "--wrt",
        "x",
        "--seed",
        "da",
        "--opset",
        "17",
        "-o",
        out,
    )
    found = sabir.load(out)
    assert (code, found.opset()) == (0, 17)
    assert sabir.evaluate(found, {"x": X, "da": X})["grad_w"].tolist() == [10, 20]


def test_recomputation(cli, tmp_path):
    source, out = tmp_path / "named.onnx", tmp_path / "g.onnx"
    named = sabir.parse(TEXT)
    named.graph[0].name, named.graph[1].name = "block1", "block2"
    sabir.save(named, source)
    words = ("differentiate", source, "--of", "loss", "--wrt", "v", "-o", out)
    assert cli(*words, "--recompute", "blo.*").code == 0
    assert [n.op for n in sabir.load(out).graph].count("Sub") == 1
    assert "no node has a name that matches 'z'" in cli(*words, "--recompute", "z").err


def test_strict(cli, tmp_path):
    source, out = tmp_path / "steps.onnx", tmp_path / "g.onnx"
    steps = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { i = Cast<to = 7>(x)  y = Cast<to = 1>(i) }'
    sabir.save(sabir.parse(steps), source)
    words = ("differentiate", source, "--of", "y", "--wrt", "x", "-o", out)
    refused = cli(*words, "--strict")
    assert (refused.code, out.exists()) == (2, False)
    assert "no gradient of 'y' reaches 'x': it ends at <Node Cast>" in refused.err
    assert cli(*words).code == 0
    assert sabir.evaluate(sabir.load(out), {"x": np.float32([1.5, 2])})["grad_x"].tolist() == [0, 0]


def test_the_extension_names_the_format(cli, model, tmp_path):
    out = tmp_path / "g.onnxtxt"
    assert cli("differentiate", model, "--of", "loss", "--wrt", "w", "-o", out).code == 0
    assert "grad_w" in out.read_text()


def test_what_is_refused(cli, model, tmp_path):
    out = tmp_path / "g.onnx"
    for words, code, message in [
        (("--of", "los", "--wrt", "w"), 2, "no value named 'los'"),
        (("--of", "loss", "--wrt", ","), 2, "--wrt names no value"),
        (("--of", "loss", "--wrt", "w", "--seed", "x"), 1, "the model has a value named 'x'"),
        (("--of", "loss"), 2, "--wrt"),
        (("--of", "loss", "--wrt", "w", "--opset", "1"), 1, "no equivalent"),
    ]:
        found = cli("differentiate", model, *words, "-o", out)
        assert (found.code, message in found.err) == (code, True), found
        assert not out.exists()


def test_a_name_with_a_comma(cli, tmp_path):
    path, out = tmp_path / "m.onnx", tmp_path / "g.onnx"
    model = sabir.parse(TEXT)
    model.graph.value("w").name = "w,1"
    sabir.save(model, path)
    assert cli("differentiate", path, "--of", "loss", "--wrt", "w,1", "-o", out).code == 0
    assert [o.name for o in sabir.load(out).graph.outputs] == ["loss", "grad_w,1"]
