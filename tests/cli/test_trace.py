"""`sabir run --trace`, `--stop-at-nan` and `--dump`."""

import json

import numpy as np
import pytest

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y) { [root] r = Sqrt (x)  y = Neg (r) }"""


@pytest.fixture
def negative(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.float32([-1, 4]))
    return f"x={path}"


def test_every_value_is_listed(cli, write, negative):
    code, out, err = cli("run", write(MODEL), "-i", negative, "--trace")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["value", "type", "minimum", "maximum", "mean", "NaN", "infinite", "node"]
    assert rows[1] == ["x", "float[2]", "-1", "4", "1.5"]
    assert rows[2] == ["r", "float[2]", "2", "2", "2", "1", "Sqrt", "'root'"]


def test_the_first_nan_is_named(cli, write, negative):
    code, out, _ = cli("run", write(MODEL), "-i", negative, "--stop-at-nan")
    assert code == 1
    assert "Sqrt 'root' computed the first NaN: r: float[2], 2 to 2, mean 2, 1 NaN" in out
    assert "operand x: float[2], -1 to 4, mean 1.5" in out
    assert "Neg" not in out
    report = json.loads(cli("run", write(MODEL), "-i", negative, "--stop-at-nan", "--json").out)
    assert report["nan"]["value"]["name"] == "r"
    assert report["nan"]["operands"][0]["min"] == -1
    assert [v["name"] for v in report["values"]] == ["x", "r"]


def test_a_run_without_nan_ends_well(cli, relu):
    code, out, _ = cli("run", relu, "--stop-at-nan", "--dim", "N=2")
    assert code == 0
    assert "NaN:" not in out


def test_values_are_saved(cli, write, negative, tmp_path):
    code, out, _ = cli("run", write(MODEL), "-i", negative, "--dump", tmp_path / "values")
    assert code == 0
    assert "saved 3 values in" in out
    assert sorted(p.name for p in (tmp_path / "values").iterdir()) == ["r.npy", "x.npy", "y.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "values" / "y.npy"), np.float32([np.nan, -2]))


def test_values_before_a_failure_are_listed(cli, write):
    model = write("""<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x, int64[1] to) => (float[?] y) { n = Neg (x)  y = Reshape (n, to) }""")
    code, out, err = cli("run", model, "--trace", "--seed", "3")
    assert code == 1
    assert "Reshape" in err
    assert "n       float[2]" in out


def test_a_trace_has_one_engine(fails, relu):
    assert "one run of the interpreter" in fails("run", relu, "--trace", "--engine", "compiled")
    assert "one run of the interpreter" in fails("run", relu, "--trace", "--repeat", "2")
