"""Subgraphs: what they capture, how deep they nest, and the types that follow through them."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError, InferenceError
from sabir.inference import Inference

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def run(text, **feeds):
    return [y.tolist() for y in sabir.evaluate(sabir.parse(HEADER + text), feeds).values()]


def types(text):
    model = sabir.parse(HEADER + text)
    engine = Inference(model, strict=True)
    engine.run()
    return [str(engine.types[v]) for v in model.graph.outputs]


BRANCHES = """g (bool[1] c, float[n] x) => (y) {
    two = Constant <value_float = 2.0> ()
    y = If <
        then_branch = yes () => (float[n] a) { a = Mul (x, two) },
        else_branch = no () => (float[m] b) { b = Concat <axis = 0> (x, x) }
    > (c)
}"""

# x is captured, s goes round; each iteration adds its number and x
LOOP = """g (int64 m, float[2] x, float[2] s) => (last, all) {
    last, all = Loop <body = b (int64 i, bool c, float[2] old) => (bool again, float[2] new, float[2] seen) {
        again = Identity (c)
        step = Cast <to = 1> (i)
        more = Add (x, step)
        new = Add (old, more)
        seen = Identity (old)
    }> (m, "", s)
}"""

# the inner body reads the outer body's number i and the main graph's x
NESTED = """g (int64 m, int64 x) => (table) {
    none = Constant <value = int64 {0}> ()
    end, table = Loop <body = outer (int64 i, bool c, int64 s) => (bool again, int64 t, int64[k] row) {
        again = Identity (c)
        t, row = Loop <body = inner (int64 j, bool d, int64 u) => (bool more, int64 v, int64 cell) {
            more = Identity (d)
            ij = Mul (i, j)
            cell = Add (ij, x)
            v = Add (u, cell)
        }> (m, "", s)
    }> (m, "", none)
}"""

# a branch inside a body reads the number of the iteration, the condition of the loop and the outermost x
MIXED = """g (int64 m, float[2] x) => (all) {
    none = Constant <value = int64 {0}> ()
    all = Loop <body = body (int64 i, bool c) => (bool again, float[2] seen) {
        first = Equal (i, none)
        seen = If <
            then_branch = yes () => (float[2] a) { a = Identity (x) },
            else_branch = no () => (float[2] b) { n = Cast <to = 1> (i)  b = Mul (x, n) }
        > (first)
        again = Identity (c)
    }> (m, "")
}"""

X = np.array([1, 2], np.float32)


def test_branches_capture():
    assert run(BRANCHES, c=np.array([1], bool), x=X) == [[2, 4]]
    assert run(BRANCHES, c=np.array([0], bool), x=X) == [[1, 2, 1, 2]]


def test_a_body_captures_and_carries():
    last, stack = run(LOOP, m=np.array(3), x=X, s=np.zeros(2, np.float32))
    assert last == [6, 9]
    assert stack == [[0, 0], [1, 2], [3, 5]]


def test_no_iterations():
    last, stack = run(LOOP, m=np.array(0), x=X, s=X)
    assert last == [1, 2]
    assert stack == []
    model = sabir.parse(HEADER + LOOP)
    found = sabir.evaluate(model, {"m": np.array(-1), "x": X, "s": X})["all"]
    assert (found.dtype, found.shape) == (np.float32, (0, 2))


def test_no_iterations_of_what_nobody_typed():
    untyped = LOOP.replace("float[2] seen)", "seen)")
    assert run(untyped, m=np.array(1), x=X, s=X)[1] == [[1, 2]]
    found = sabir.evaluate(sabir.parse(HEADER + untyped), {"m": np.array(0), "x": X, "s": X})["all"]
    assert (found.dtype, found.shape) == (np.float32, (0, 2))


def test_loops_nest():
    assert run(NESTED, m=np.array(3), x=np.array(10)) == [[[10, 10, 10], [10, 11, 12], [10, 12, 14]]]


def test_a_branch_in_a_body_captures_from_both():
    assert run(MIXED, m=np.array(3), x=X) == [[[1, 2], [1, 2], [2, 4]]]


def test_a_loop_without_end():
    with pytest.raises(EvaluationError, match="never end"):
        run(
            """g (int64 x) => (y) {
                y = Loop <body = b (int64 i, bool c, int64 s) => (bool c, int64 s) {}> ("", "", x)
            }""",
            x=1,
        )


def test_types_of_branches():
    assert types(BRANCHES) == ["float[?]"]  # then n, else 2n; and m is the branch's own name
    assert types(BRANCHES.replace("Concat <axis = 0> (x, x)", "Add (x, x)")) == ["float[n]"]


def test_types_of_loops():
    assert types(LOOP) == ["float[2]", "float[?,2]"]
    counted = LOOP.replace("int64 m, ", "").replace("{\n", "{ m = Constant <value = int64 {5}> ()\n", 1)
    assert types(counted) == ["float[2]", "float[5,2]"]
    assert types(NESTED) == ["int64[?,?]"]


def test_what_a_body_calls_a_dimension_stays_inside():
    grown = """g (float[k] x) => (y, z) {
        m = Constant <value = int64 {2}> ()
        y, z = Loop <body = b (int64 i, bool c, float[k] s) => (bool again, float[j] t, float[3] u) {
            again = Identity (c)
            t = Concat <axis = 0> (s, s)
            u = Constant <value = float[3] {1.0, 2.0, 3.0}> ()
        }> (m, "", x)
    }"""
    assert types(grown) == ["float[?]", "float[2,3]"]
    model = sabir.infer(sabir.parse(HEADER + grown))
    body = next(iter(model.graph)).graphs or list(model.graph)[1].graphs
    assert [str(v.type) for v in body[0].outputs] == [
        "bool",
        "float[j]",
        "float[3]",
    ]  # the file keeps its names


def test_the_trip_count_is_a_symbol_where_it_follows_from_a_shape():
    text = """g (float[n, 2] x) => (y) {
        s = Shape <start = 0, end = 1> (x)
        m = Squeeze (s)
        y = Loop <body = b (int64 i, bool c) => (bool again, float[2] row) {
            row = Gather <axis = 0> (x, i)
            again = Identity (c)
        }> (m, "")
    }"""
    assert types(text) == ["float[n,2]"]
    assert run(text, x=np.stack([X, X + 1, X + 2])) == [[[1, 2], [2, 3], [3, 4]]]


def test_only_a_condition_that_stays_true_makes_the_trip_count_sure():
    text = """g (int64 x) => (y, z) {
        m = Constant <value = int64 {4}> ()
        yes = Constant <value = bool {1}> ()
        y, z = Loop <body = b (int64 i, bool c, int64 s) => (bool again, int64 t, int64 u) {
            t = Add (s, s)
            u = Identity (s)
            again = BODY
        }> (m, yes, x)
    }"""
    assert types(text.replace("BODY", "Identity (c)")) == ["int64", "int64[4]"]
    assert types(text.replace("BODY", "Equal (t, x)")) == ["int64", "int64[?]"]


def test_a_carried_value_keeps_its_element_type():
    with pytest.raises(InferenceError, match="carried value 1 changes its type"):
        types("""g (int64 m, float x) => (y) {
            y = Loop <body = b (int64 i, bool c, s) => (bool again, t) {
                again = Identity (c)
                t = Cast <to = 7> (s)
            }> (m, "", x)
        }""")


def test_a_loop_without_end_can_be_bounded():
    model = sabir.parse("""
        <ir_version: 10, opset_import: ["" : 21]>
        main (bool go) => (float y) {
            one = Constant <value = float {1}> ()
            y = Loop ("", go, one) <body = b (int64 i, bool c, float s) => (bool c, float t) { t = Add (s, s) }>
        }
    """)
    go, stop = np.ones((), bool), np.zeros((), bool)
    with pytest.raises(
        sabir.LimitError,
        match=r"as often as they may; the limit is 1,003: raise it with `sabir.Limits\(iterations=\d+\)`",
    ):
        sabir.evaluate(model, {"go": go}, limits=sabir.Limits(iterations=1000))
    session = sabir.Session(model, limits=sabir.Limits(iterations=5))
    assert session.run({"go": stop})["y"] == 1
    with pytest.raises(sabir.LimitError, match="iterations"):
        session.run({"go": go})
