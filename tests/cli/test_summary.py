"""`sabir summary`."""

import json

import numpy as np
import pytest

import sabir


@pytest.fixture
def layers(tmp_path):
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 32])
    x = b.MatMul(x, b.initializer("block.0.weight", np.ones((32, 64), np.float32)), name="product")
    b.output(b.Relu(x, name="relu"), "y")
    path = tmp_path / "layers.onnx"
    sabir.save(b.model(), path)
    return path


def test_nodes_with_sizes(cli, layers):
    code, out, err = cli("summary", layers, "--dim", "N=100")
    assert (code, err) == (0, "")
    (product,) = [line.split() for line in out.splitlines() if line.strip().startswith("product")]
    assert product == [
        "product",
        "MatMul",
        "float[100,64]",
        "2.05",
        "K",
        "205",
        "K",
        "25.6",
        "KB",
        "46.6",
        "KB",
        "8.79",
    ]
    assert "2 nodes" in out


def test_polynomials(cli, layers):
    out = cli("summary", layers).out
    assert "2048*N" in out
    assert "256*N B" in out


def test_by_layer(cli, layers):
    lines = cli("summary", layers, "--by-layer", "-d", "N=1").out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["block", "1"], ["0", "1"], ["total", "2"]]


def test_as_json(cli, layers):
    report = json.loads(cli("summary", layers, "--json").out)
    assert report["total"]["multiply_adds"] == "2048*N"
    assert report["total"]["parameters"] == 2048
    assert report["layers"][1]["layer"] == ["block", "0"]
    assert report["nodes"][1]["operator"] == "Relu"
    assert report["unknown"] == []


def test_notes(cli, write):
    path = write("""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (string[2] x, float[2] a) => (string[2] y, float[2] z) { [s] y = Identity (x) z = com.microsoft.QuickGelu (a) }""")
    out = cli("summary", path).out
    assert "the multiply-adds of com.microsoft.QuickGelu (1 node) are not counted" in out
    assert "unknown sizes of 1 node, such as 's', are left out" in out


def test_wrong_dimensions_are_refused(fails, layers):
    assert "write it as NAME=SIZE" in fails("summary", layers, "--dim", "N")
    assert "is it 'N'" in fails("summary", layers, "--dim", "n=3")
