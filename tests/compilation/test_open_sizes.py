"""Sizes that inference leaves open, plans that fail, and what is said of them."""

import numpy as np
import pytest

import sabir
from sabir.compilation.engine import compiled as _engine
from sabir.compilation.engine import plans as _plans

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
F = np.float32


def compiled(text):
    return sabir.Session(sabir.parse(HEAD + text), engine="compiled")


@pytest.mark.parametrize("scale", [1.601, 0.37, 0.6])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_symbolic_sizes_times_a_fraction_are_sizes_of_kernels(scale, mode):
    text = f"""g (float[1,2,H,W] x) => (float[1,2,?,?] z) <float[4] s = {{1.0, 1.0, {scale}, {scale}}}> {{
        a = Relu (x)  b = Resize <mode = "{mode}"> (a, , s)  c = Neg (b)  y = Resize <mode = "{mode}"> (c, , s)
        z = MaxPool <kernel_shape = [2, 2], pads = [1, 1, 1, 1]> (y) }}"""
    session = compiled(text)
    rng = np.random.default_rng(0)
    for height, width in ((13, 10), (30, 41), (13, 10)):
        x = rng.standard_normal((1, 2, height, width)).astype(F)
        expected = sabir.evaluate(sabir.parse(HEAD + text), {"x": x})["z"]
        np.testing.assert_allclose(session.run({"x": x})["z"], expected, rtol=1e-3, atol=1e-4)
    assert not session.explain().evaluated


def test_a_cropped_region_of_symbolic_sizes_is_evaluated_alone():
    text = """g (float[H,W] x) => (float[?,?] z)
        <float[2] s = {1.601, 1.601}, float[4] part = {0.1, 0.2, 0.8, 0.9}> {
        a = Exp (x)
        b = Resize <coordinate_transformation_mode = "tf_crop_and_resize", mode = "linear"> (a, part, s)
        z = Neg (b) }"""
    session, x = compiled(text), np.arange(63, dtype=F).reshape(7, 9) / 63
    expected = sabir.evaluate(sabir.parse(HEAD + text), {"x": x})["z"]
    np.testing.assert_allclose(session.run({"x": x})["z"], expected, rtol=1e-4)


def test_an_explanation_says_why_there_is_no_plan(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("entry 3 needs s0.2")

    monkeypatch.setenv("SABIR_STRICT_COMPILER", "0")
    monkeypatch.setattr(_plans.Plans, "_planned", refuse)
    session = compiled("g (float[N] x) => (float[N] y) { y = Neg (x) }")
    with pytest.warns(
        sabir.SabirWarning, match="the compiler failed in planning.*please report it: AssertionError"
    ):
        assert session.run({"x": F([1, 2])})["y"].tolist() == [-1, -2]
    with pytest.raises(sabir.UnsupportedError, match="the shapes of the last run.*entry 3 needs s0.2"):
        session.explain()
    with pytest.raises(sabir.UnsupportedError, match="these shapes.*entry 3 needs s0.2"):
        session.explain({"x": [2]})


def test_a_plan_that_fails_is_reported_only_where_the_feeds_are_valid(monkeypatch, recwarn):
    def fail(*_args):
        raise KeyError("the size (s0.2-1)//4+1 is not known")

    monkeypatch.setenv("SABIR_STRICT_COMPILER", "0")
    monkeypatch.setattr(_engine.Compiled, "_run", fail)
    session = compiled("""g (float[1,1,S] x) => (float[1,1,?] y) <float[1,1,5] w = {1.0,1.0,1.0,1.0,1.0}> {
        y = Conv <strides = [4]> (x, w) }""")
    with pytest.raises(sabir.EvaluationError, match="does not fit"):
        session.run({"x": np.ones((1, 1, 0), F)})
    assert not recwarn.list
    with pytest.warns(sabir.SabirWarning, match="please report it: KeyError"):
        assert session.run({"x": np.ones((1, 1, 9), F)})["y"].tolist() == [[[5, 5]]]
