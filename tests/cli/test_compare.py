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
