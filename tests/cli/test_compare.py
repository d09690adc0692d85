"""`sabir compare`: the results of two models or two engines."""

import json

import numpy as np
import pytest

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


@pytest.fixture
def models(write):
    return (
        write(HEADER + "g (float[N] x) => (float[N] y) { y = Relu (x) }", "a.onnxtxt"),
        write(HEADER + "g (float[N] x) => (float[N] z) { z = Abs (x) }", "b.onnxtxt"),
    )


def test_two_engines_run_one_model(cli, models):
    code, out, err = cli("compare", models[0], "--dim", "N=8")
    assert (code, err) == (0, "")
    assert out.startswith("a.onnxtxt on compiled and a.onnxtxt on reference\n")
    assert "y" in out
    assert out.rstrip().endswith("equal")


def test_two_models_run_on_the_same_inputs(cli, models, tmp_path):
    np.save(tmp_path / "x.npy", np.float32([-1, 2]))
    code, out, _ = cli("compare", *models, "-i", f"x={tmp_path / 'x.npy'}", "--json")
    assert code == 1
    (output,) = json.loads(out)["outputs"]
    assert output["largest"] == 1
    assert "1 of 2 elements differ" in output["problem"]
    assert cli("compare", *models, "-i", f"x={tmp_path / 'x.npy'}", "--atol", "1").code == 0
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    assert cli("compare", *models, "-i", f"x={tmp_path / 'x.npy'}", "--engines", "reference,auto").code == 0


def test_a_missing_output_is_a_difference(cli, models, write):
    two = write(HEADER + "g (float[N] x) => (float[N] y, float[N] z) { y = Relu (x)  z = Abs (x) }")
    code, out, _ = cli("compare", two, models[0])
    assert code == 1
    assert "the second model has no such output" in out
    assert "the first model has no such output" in cli("compare", models[0], two).out


def test_wrong_usage(fails, models, write):
    other = write(HEADER + "g (float[N] w) => (float[N] y) { y = Relu (w) }")
    assert "the second model has the input 'w', and the first has none" in fails("compare", models[0], other)
    assert "there is no engine 'refernce'; is it 'reference'?" in fails(
        "compare", models[0], "--engines", "refernce,auto"
    )
    assert "name two engines, as in auto,reference" in fails("compare", models[0], "--engines", "auto")


def test_the_first_value_that_differs(cli, write):
    body = "g (float[N] x) => (float[N] y) { a = Neg (x)  [clamp] b = Relu (a)  c = Exp (b)  y = Sin (c) }"
    one = write(HEADER + body, "a.onnxtxt")
    other = write(HEADER + body.replace("Relu", "Abs"), "b.onnxtxt")
    code, out, _ = cli("compare", one, other, "--dim", "N=20", "--bisect")
    assert code == 1
    assert "The first value that differs  of 4 values compared" in out
    assert "first run    b   Relu 'clamp'" in out
    assert "second run   b   Abs 'clamp'" in out
    assert "Its operands" in out
    report = json.loads(cli("compare", one, other, "--dim", "N=20", "--bisect", "--json").out)
    assert report["parting"]["names"] == ["b", "b"]
    assert report["parting"]["operands"][0]["name"] == "a"
    assert report["compared"] == 4
    code, out, _ = cli("compare", one, "--dim", "N=20", "--bisect")
    assert code == 0
    assert "No value parts  4 values compared" in out


def test_precisions_of_each_run(cli, fails, models):
    assert cli("compare", models[0], "--engines", "auto,auto", "--precision", "exact,fast").code == 0
    assert cli("compare", models[0], "--precision", "fast").code == 0
    assert "there is no precision 'quick'" in fails("compare", models[0], "--precision", "quick")
