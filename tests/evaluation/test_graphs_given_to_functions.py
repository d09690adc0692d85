"""A graph attribute that a caller hands to a function reads the values of the caller, and means what it means there."""

import numpy as np
import pytest

import sabir

X = {"x": np.float32([1, -2]), "c": np.array(1, bool)}
MAIN = """g (float[2] x, bool c) => (float[2] y) { z = Neg (x)
    y = d.F <body = b () => (float[2] r) { r = Mul (z, x) }, other = o () => (float[2] q) { q = Abs (z) }> (c) }"""
ONE = """<domain: "d", opset_import: ["" : 21]> F <body, other> (c) => (r) {
    r = If (c) <then_branch: graph = @body, else_branch: graph = @other> }"""
TWO = """<domain: "d", opset_import: ["" : 21, "d" : 1]> F <body, other> (c) => (r) {
    n = Not (c)  m = Not (n)  r = d.G <body: graph = @body, other: graph = @other> (m) }
<domain: "d", opset_import: ["" : 21]> G <body, other> (c) => (r) {
    s = If (c) <then_branch: graph = @body, else_branch: graph = @other>  r = Identity (s) }"""
HEAD = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>\n'


@pytest.mark.parametrize("functions", [ONE, TWO], ids=["one level", "two levels"])
@pytest.mark.parametrize("branch", [True, False])
def test_a_branch_reads_values_of_the_caller(functions, branch, engine):
    model = sabir.parse(HEAD + MAIN + functions)
    expected = [-1, -4] if branch else [1, 2]
    feeds = X | {"c": np.bool_(branch)}
    for _ in range(2):
        assert sabir.Session(model, engine=engine).run(feeds)["y"].tolist() == expected
    assert sabir.Session(sabir.inline(model), engine=engine).run(feeds)["y"].tolist() == expected


def test_two_callers_hand_in_graphs_of_their_own(engine):
    main = """g (float[2] x, bool c) => (float[2] y, float[2] w) { z = Neg (x)
    y = d.F <body = b () => (float[2] r) { r = Mul (z, x) }, other = o () => (float[2] q) { q = Abs (z) }> (c)
    w = d.F <body = b () => (float[2] r) { r = Add (x, x) }, other = o () => (float[2] q) { q = Abs (y) }> (c) }"""
    found = sabir.Session(sabir.parse(HEAD + main + ONE), engine=engine).run(X)
    assert found["y"].tolist() == [-1, -4]
    assert found["w"].tolist() == [2, -4]


def test_the_graph_is_of_the_operator_sets_of_the_caller(engine):
    """Softmax of operator set 11 takes the axes from 1 on as one; the function imports 13, where it is the last."""
    text = """<ir_version: 8, opset_import: ["" : 11, "d" : 1]>
    g (float[1,2,2] x, bool c) => (float[1,2,2] y) {
        y = d.F <body = b () => (float[1,2,2] r) { r = Softmax (x) }, other = o () => (float[1,2,2] q) { q = Abs (x) }> (c) }
    <domain: "d", opset_import: ["" : 13]> F <body, other> (c) => (r) {
        r = If (c) <then_branch: graph = @body, else_branch: graph = @other> }"""
    found = sabir.Session(sabir.parse(text), engine=engine).run({
        "x": np.zeros((1, 2, 2), np.float32),
        "c": np.array(1, bool),
    })
    np.testing.assert_allclose(found["y"], np.full((1, 2, 2), 0.25))


def test_inside_a_branch_of_the_caller(engine):
    main = """g (float[2] x, bool c) => (float[2] y) { z = Neg (x)
        y = If (c) <then_branch = t () => (float[2] u) {
            k = Mul (x, x)
            u = d.F <body = b () => (float[2] r) { r = Add (k, z) }, other = o () => (float[2] q) { q = Abs (z) }> (c) },
            else_branch = e () => (float[2] v) { v = Abs (x) }> }"""
    found = sabir.Session(sabir.parse(HEAD + main + ONE), engine=engine).run(X)
    assert found["y"].tolist() == [0, 6]


def test_a_function_that_reads_the_caller_itself_is_an_error(engine):
    model = sabir.parse(HEAD + MAIN + ONE)
    (function,) = model.functions
    node = next(iter(function.graph))
    node.inputs = [model.graph.inputs[1]]
    with pytest.raises(sabir.SchemaError, match="'c' is read, but belongs to a graph that does not enclose"):
        sabir.Session(model, engine=engine).run(X)
