"""A model as two that compute the same in sequence."""

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError
from sabir.ir import verify

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
MODEL = """g (float[N] x, float[N] z) => (float[N] y, float[N] early) <float w = {3}> {
    c = Constant <value_float = 2.0> ()
    early = Mul (x, c)  t = Add (early, w)  u = Relu (t)  s = Mul (u, c)  r = Add (s, w)  y = Add (r, z)
}"""


def parsed(text):
    return sabir.parse(HEADER + text)


def names(values):
    return [value.name for value in values]


def halves_of(model, at):
    before = sabir.dumps(model)
    halves = sabir.split(model, at=at)
    assert sabir.dumps(model) == before
    for half in halves:
        verify(half)
        sabir.check(half)
    return halves


def test_both_compute_the_same_in_sequence():
    model = parsed(MODEL)
    first, second = halves_of(model, "u")
    assert (names(first.graph.inputs), names(first.graph.outputs)) == (["x"], ["u", "early"])
    assert (names(second.graph.inputs), names(second.graph.outputs)) == (["u", "z"], ["y"])
    assert [node.op for node in second.graph] == ["Constant", "Mul", "Add", "Add"]
    assert first.graph.initializers["w"] is second.graph.initializers["w"] is model.graph.initializers["w"]
    feeds = {"x": np.float32([1, -4]), "z": np.float32([10, 20])}
    expected = sabir.evaluate(model, feeds)
    middle = sabir.evaluate(first, {"x": feeds["x"]})
    got = sabir.evaluate(second, {"u": middle["u"], "z": feeds["z"]})
    np.testing.assert_array_equal(got["y"], expected["y"])
    np.testing.assert_array_equal(middle["early"], expected["early"])


def test_a_value_that_crosses_the_cut_is_named_with_its_path():
    text = "g (float[N] x) => (float[N] y) { a = Neg (x)  b = Abs (a)  c = Relu (b)  d = Add (c, a)  y = Add (d, b) }"
    with pytest.raises(sabir.UnsupportedError) as caught:
        sabir.split(parsed(text), at="c")
    assert str(caught.value) == (
        "the second model needs 'b', and 'a' of the first one: y <- b; list these in `at` too"
    )
    with pytest.raises(
        sabir.UnsupportedError, match="needs 'a' of the first one: y <- d <- a; list it in `at` too"
    ):
        sabir.split(parsed(text), at=["c", "b"])
    first, second = halves_of(parsed(text), ["c", "b", "a"])
    assert (names(first.graph.outputs), names(second.graph.inputs)) == (["c", "b", "a"], ["c", "b", "a"])


def test_what_cannot_be_split():
    model = parsed(MODEL)
    with pytest.raises(sabir.UnsupportedError, match="no node computes 'x'"):
        sabir.split(model, at="x")
    with pytest.raises(sabir.UnsupportedError, match="no node computes 'w'"):
        sabir.split(model, at="w")
    with pytest.raises(sabir.UnsupportedError, match="would compute every output"):
        sabir.split(model, at="y")
    with pytest.raises(sabir.UnsupportedError, match="`at` lists no value"):
        sabir.split(model, at=[])
    with pytest.raises(NotFoundError, match="no value 'earl'; is it 'early'?"):
        sabir.split(model, at="earl")
    inner = "g (bool c, float x) => (float y) { p = If (c) <then_branch = a () => (q) { q = Neg (x) }, else_branch = b () => (r) { r = Abs (x) }>  y = Neg (p) }"
    with pytest.raises(
        sabir.UnsupportedError, match="'q' is in the graph 'a' of <Node If>; list values of the main"
    ):
        sabir.split(parsed(inner), at="q")
    assert [node.op for node in halves_of(parsed(inner), "p").second.graph] == ["Neg"]


def test_random_numbers_are_drawn_once():
    text = "g (float[2] x) => (float[2] y) { r = RandomUniform <shape = [2]> ()  t = Add (x, r)  y = Mul (t, r) }"
    with pytest.raises(sabir.UnsupportedError, match="needs 'r' of the first one"):
        sabir.split(parsed(text), at="t")
