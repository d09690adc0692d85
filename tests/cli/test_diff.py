import io
import json
import sys

import pytest

import sabir

MODEL = """<ir_version: 10, opset_import: ["" : 21], model_version: {version}>
g ({inputs}) => (float[2] y) <float[2] w = {{1, {number}}}> {{ y = Add (x, w) }}"""


@pytest.fixture
def made(write):
    def save(name, version=1, inputs="float[2] x", number=2):
        return write(MODEL.format(version=version, inputs=inputs, number=number), f"{name}.onnxtxt")

    return save


def test_no_change(cli, made):
    code, out, err = cli("diff", made("old"), made("new"))
    assert (code, err) == (0, "")
    assert out == "no change; nothing requires another version (declared: 1, then 1)\n"


def test_a_version_that_is_too_small(cli, made):
    code, out, err = cli("diff", made("old"), made("new", number=3))
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "patch  graph/initializer 'w': the initializer 'w' has other contents (float[2])",
        "the version must increase PATCH, and does not: 1, then 1; declare 2 or later",
    ]


def test_a_version_that_is_enough(cli, made):
    code, out, _ = cli("diff", made("old"), made("new", version=2, number=3))
    assert code == 0
    assert out.endswith("the version must increase PATCH, and does: 1, then 2\n")


def test_verbose_lists_all(cli, made):
    inputs = ", ".join(["float[2] x", *(f"float z{i}" for i in range(9))])
    paths = made("old"), made("new", version=2, inputs=inputs)
    assert "major  4 more changes of this kind" in cli("diff", *paths).out
    assert len(cli("diff", *paths, "--verbose").out.splitlines()) == 10


def test_json(cli, made):
    code, out, _ = cli("diff", made("old", version=1 << 48), made("new", version=1 << 48, number=3), "--json")
    assert code == 1
    report = json.loads(out)
    assert list(report) == ["old", "new", "declared", "required", "enough", "changes"]
    assert report["declared"] == {"old": "1.0.0", "new": "1.0.0"}
    assert (report["required"], report["enough"]) == ("patch", False)
    (change,) = report["changes"]
    assert change["kind"] == "weights-changed"
    assert change["bump"] == "patch"
    assert change["old"] == change["new"] == "graph/initializer 'w'"
    assert change["reason"].startswith("The standard:")


def test_a_stream(cli, made, monkeypatch, fails):
    old = made("old")
    data = sabir.dumps(sabir.load(old))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
    assert cli("diff", old, "-").code == 0
    assert fails("diff", "-", "-") == "only one of the two models can be standard input"


def test_what_cannot_be_read(fails, made, write, tmp_path):
    old = made("old")
    assert "there is no such file" in fails("diff", old, tmp_path / "none.onnx")
    assert "there is no such file" in fails("diff", tmp_path / "none.onnx", old)
    cyclic = '<ir_version: 10, opset_import: ["" : 21]> g () => (float y) { y = Neg (z) z = Neg (y) }'
    assert "in a cycle" in fails("diff", old, write(cyclic, "cyclic.onnxtxt"))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\xff\xff")
    assert fails("diff", old, broken)


def test_missing_data(fails, made, tmp_path):
    old = made("old")
    sabir.save(sabir.load(old), tmp_path / "new.onnx", external="w.data", threshold=0)
    (tmp_path / "w.data").unlink()
    assert "w.data" in fails("diff", old, tmp_path / "new.onnx")
