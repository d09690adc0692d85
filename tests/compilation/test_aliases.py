"""Values of evaluated calls that contain the memory of their operands: sequences, optionals, views.

`SABIR_GRAPHS=5000` draws so many programs, others in each run of the tests.
"""

import copy
import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sabir
from sabir.compilation.engine import bodies as _bodies
from support.drawing.containers import Drawn

GRAPHS = int(os.environ.get("SABIR_GRAPHS", "0"))
HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
F = np.float32


def compiled(text):
    return sabir.Session(sabir.parse(HEAD + text), engine="compiled")


def test_sequences_do_not_share_memory_that_is_used_again():
    session = compiled("""g (float[1,2] x, float[1,2] z) => (float[1,?] y) {
        a = Neg (x)  s1 = SequenceConstruct (a, x)  b = Neg (z)  r1 = SequenceConstruct (b, z)
        y1 = ConcatFromSequence <axis = 1> (s1)  y2 = ConcatFromSequence <axis = 1> (r1)
        y = Concat <axis = 1> (y1, y2) }""")
    for _ in range(3):
        y = session.run({"x": F([[1, 2]]), "z": F([[10, 20]])})["y"]
        assert y.tolist() == [[-1, -2, 1, 2, -10, -20, 10, 20]]


def test_the_parts_of_a_split_as_exporters_write_chunk():
    session = compiled("""g (float[4,2] x) => (float[2,2] y, float[2,2] z) {
        a = Neg (x)  two = Constant <value_int = 2> ()  zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()  parts = SplitToSequence <axis = 0> (a, two)
        p = SequenceAt (parts, zero)  q = SequenceAt (parts, one)
        b = Mul (x, x)  c = Exp (b)  y0 = Add (p, q)  y = Neg (y0)  z = Sub (p, q) }""")
    x = np.arange(8, dtype=F).reshape(4, 2)
    found = session.run({"x": x})
    assert found["y"].tolist() == (x[:2] + x[2:]).tolist()
    assert found["z"].tolist() == (x[2:] - x[:2]).tolist()


def test_gradients_of_the_items_of_a_split():
    model = sabir.parse(
        HEAD
        + """g (float[6] x) => (float y) {
        two = Constant <value_int = 2> ()  zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
        s = SplitToSequence <axis = 0> (x, two)  a = SequenceAt (s, zero)  b = SequenceAt (s, one)
        w = Constant <value_floats = [1.0, 2.0]> ()  v = Constant <value_floats = [3.0, 4.0]> ()
        c = Mul (a, v)  d = Mul (b, w)  e = Add (c, d)  y = ReduceSum <keepdims = 0> (e) }"""
    )
    for engine in ("compiled", "reference"):
        gradients = sabir.differentiate(model, of="y", wrt=["x"])
        found = sabir.Session(gradients, engine=engine).run({"x": np.arange(6, dtype=F)})
        assert found[gradients.graph.outputs[-1].name].tolist() == [3, 4, 1, 2, 0, 0]


def test_results_keep_their_values_when_the_session_runs_again():
    session = compiled("""g (float[2] x) => (seq(float[2]) s, optional(float[2]) o) {
        a = Neg (x)  b = Exp (x)  s = SequenceConstruct (a, b)  c = Sqrt (x)  o = Optional (c) }""")
    kept = [session.run({"x": F([k, k])}) for k in range(4)]
    for k, found in enumerate(kept):
        assert found["s"][0].tolist() == [-k, -k]
        assert np.allclose(found["s"][1], np.exp(k))
        assert np.allclose(found["o"], np.sqrt(k))
    kept[0]["s"][0][:] = 99
    assert session.run({"x": F([5, 5])})["s"][0].tolist() == [-5, -5]


def test_captures_of_a_branch_in_a_loop_are_those_of_the_body(monkeypatch):
    """Its slots were compared with the constants of the main graph, so a branch read a constant instead."""
    monkeypatch.setattr(_bodies, "_ENOUGH", 0)
    text = """g (float[N,3] x0, float[M,3] x1, bool c) => (float[N,3] y0, float[M,3] y2, float[N,3] y3, float[1,3] y4)
        <float[3,3] w = {0.0,1.0,0.0,0.5,0.0,0.5,1.0,0.0,-1.0}, int64 one = {1}, bool yes = {1}, int64[2] shape = {1,3}> {
        y0 = MatMul (x0, w)  y1 = Neg (x0)  y2 = Neg (x1)  s = SequenceConstruct (x0)
        y3, y5, stacked = Loop (one, yes, x0, s) <body = body (int64 i, bool go, float[?,3] state, seq(float[?,3]) grown)
            => (bool again, float[?,3] next, seq(float[?,3]) longer, float[?,3] item) <int64 two = {1}> {
            parts = SplitToSequence <axis = 0> (x0, two)
            item, rest = If (c) <
                then_branch = yes_branch () => (float[?,3] a, seq(float[?,3]) r) {
                    r = SequenceConstruct (state, state)  a = Identity (state) },
                else_branch = no_branch () => (float[?,3] b, seq(float[?,3]) q) {
                    q = SequenceConstruct (x0, x0)  b = Identity (x0) }>
            longer = SequenceInsert (grown, item)  again = Identity (go)  next = Identity (state) }>
        y4 = Reshape (stacked, shape) }"""
    model = sabir.parse(HEAD + text)
    for c in (False, True):
        feeds = {"x0": F([[1, 2, 3]]), "x1": F([[4, 5, 6]]), "c": np.bool_(c)}
        same(sabir.Session(model, engine="compiled").run(feeds), sabir.evaluate(model, feeds))


@settings(
    max_examples=GRAPHS or 90,
    derandomize=not GRAPHS,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_programs_drawn_at_random(data):
    def choose(count):
        return data.draw(st.integers(0, count - 1))

    drawn = Drawn(choose)
    rng = np.random.default_rng(choose(1000))
    few, _bodies._ENOUGH = _bodies._ENOUGH, choose(2) << 14  # a small body is compiled too, or not
    try:
        compare_runs(drawn, rng)
    finally:
        _bodies._ENOUGH = few


def compare_runs(drawn, rng):
    """Compare three runs with the interpreter; all results keep their values until the end."""
    session = sabir.Session(drawn.model, engine="compiled", threads=1)
    expected = sabir.Session(drawn.model, engine="reference")
    kept = []
    for _ in range(3):
        feeds = drawn.feeds(rng)
        kept.append((session.run(feeds), expected.run(feeds)))
        same(*kept[-1])
    for found, wanted in kept:
        same(found, wanted)
    spoilt = copy.deepcopy(feeds)
    fill(session.run(feeds), 77)
    same(session.run(spoilt), kept[-1][1])


def same(found, wanted):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            same(found[name], value)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for item, value in zip(found, wanted, strict=True):
            same(item, value)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def fill(value, number):
    """Write over all arrays of a result, which belong to the caller."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            fill(item, number)
    else:
        value[...] = number
