"""Constants that contain an old size of an input, and the ones that replace them."""

import numpy as np
import pytest

import sabir
from sabir.inference import change_model_dims
from sabir.ir import verify

HEADER = '<ir_version: 11, opset_import: ["" : 21]>\n'


def mended(text, dims):
    model = sabir.parse(HEADER + text)
    before = sabir.text(model)
    changed = change_model_dims(model, dims, repair=True)
    assert sabir.text(model) == before
    verify(changed.model)
    sabir.check(changed.model)
    return model, changed


@pytest.mark.parametrize(
    ("text", "dims", "entries", "result"),
    [
        (
            "g (float[1,3,8] x) => (float[1,24] y) <int64[2] s = {1, 24}> { y = Reshape (x, s) }",
            {"x[0]": "N"},
            [("0", "24")],
            "float[N,24]",
        ),
        (
            "g (float[1,3,8] x) => (float[1,24] y) <int64[2] s = {1, 24}> { y = Reshape (x, s) }",
            {"x[0]": 4},
            [("4", "24")],
            "float[4,24]",
        ),
        (
            "g (float[1,3,8] x) => (float[1,24] y) <int64[2] s = {1, -1}> { y = Reshape <allowzero = 1> (x, s) }",
            {"x[0]": "N"},
            [("0", "-1")],
            "float[N,24]",
        ),
        (
            "g (float[2,6,4] x) => (float[12,4] y) <int64[2] s = {12, 4}> { y = Reshape (x, s) }",
            {"x[0]": "N"},
            [("-1", "4")],
            "float[6*N,4]",
        ),
        (
            "g (float[2,6] x) => (float[12,1] y) <int64[2] s = {12, -1}> { y = Reshape (x, s) }",
            {"x[0]": "N"},
            [("6*x[0]", "-1")],
            "float[6*N,1]",
        ),
        (
            """g (float[2,6] x) => (float[2,6] y) <int64[2] s = {2, 6}, float one = {1}> {
    e = Expand (one, s)  y = Add (x, e)
}""",
            {"x[0]": "N"},
            [("x[0]", "6")],
            "float[N,6]",
        ),
        (
            """g (float[1,8,12] x) => (float[1,8,12] y) <int64[4] s = {1, 8, 3, 4}, int64[3] r = {1, 8, 12}> {
    t = Reshape (x, s)  u = Neg (t)  y = Reshape (u, r)
}""",
            {"x[0]": "N", "x[1]": "S"},
            [("0", "0", "3", "4"), ("0", "0", "12")],
            "float[N,S,12]",
        ),
    ],
)
def test_a_model_runs_with_other_sizes_and_computes_what_it_did(text, dims, entries, result):
    model, changed = mended(text, dims)
    assert not changed.problems
    assert [m.new for m in changed.mended] == entries
    assert str(changed.model.graph.outputs[0].type) == result
    shape = model.graph.inputs[0].shape
    x = np.random.default_rng(0).normal(size=[int(str(d)) for d in shape]).astype(np.float32)
    if not any(isinstance(size, int) for size in dims.values()):
        expected = sabir.evaluate(model, {"x": x})["y"]
        np.testing.assert_array_equal(sabir.evaluate(changed.model, {"x": x})["y"], expected)
    larger = np.concatenate([x] * 4) if shape[0] == 1 else np.concatenate([x, x])
    got = sabir.evaluate(changed.model, {"x": larger})["y"]
    first = got.reshape(len(larger) // len(x), -1)[0]
    np.testing.assert_array_equal(first, sabir.evaluate(model, {"x": x})["y"].reshape(-1))


def test_constants_inside_branches():
    text = """g (float[2,6] x, bool c) => (float[3,4] y) <int64[3] t = {2, 3, 2}> {
    y = If (c) < then_branch = a () => (float[2,3,2] q) { q = Reshape (x, t) },
                 else_branch = b () => (float[2,3,2] r) { r = Reshape (x, t) } >
}"""
    _, changed = mended(text, {"x[0]": "N"})
    assert [m.new for m in changed.mended] == [("0", "3", "2")] * 2
    assert not changed.problems


def test_what_cannot_be_mended_is_reported_and_stays():
    text = """g (float[5,6] x, float[9,6] w) => (float[5,6] y) <int64[1] s = {0}, int64[1] e = {5}> {
    p = Slice (w, s, e)  y = Add (x, p)
}"""
    model, changed = mended(text, {"x[0]": "N"})
    assert (len(changed.problems), changed.mended) == (1, ())
    assert [node.op for node in changed.model.graph] == [node.op for node in model.graph]
    assert len(changed.model.graph.initializers) == 2
    with pytest.warns(sabir.SabirWarning, match=r"graph/node\[1\] 'Add'"):
        sabir.set_dims(model, {"x[0]": "N"}, repair=True)


def test_the_state_of_a_network_has_the_batch_of_its_input():
    text = """g (float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[5,1,1,2] y)
<int64[1] layers = {1}, int64[1] batch = {1}, int64[1] width = {2}, float zero = {0}> {
    s = Concat <axis = 0> (layers, batch, width)
    h = Expand (zero, s)
    y = LSTM <hidden_size = 2> (x, w, r, , , h)
}"""
    _, changed = mended(text, {"x[1]": "N"})
    assert not changed.problems
    assert str(changed.model.graph.outputs[0].type) == "float[5,1,N,2]"
