"""Nodes that become a call of a new function."""

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError
from sabir.ir import verify

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
MODEL = """g (float[N,2] x) => (float[N,2] y, float[N,2] t) <float[2] w = {1, 2}> {
    t = Mul (x, w)  u = LeakyRelu <alpha = 1.0> (t)  side = Neg (x)  v = Add (u, w)  y = Add (v, side)
}"""
LOOP = """g (float[2] x, int64 n) => (float[2] y) <bool yes = {1}, float[2] w = {1, 2}> {
    h = Neg (x)
    z = Loop (n, yes, x) <body = b (int64 i, bool go, float[2] s) => (bool more, float[2] next) {
        more = Identity (go)  p = Mul (s, h)  q = Add (p, w)  next = Relu (q)
    }>
    y = Neg (z)
}"""


def parsed(text):
    return sabir.parse(HEADER + text)


def outlined(model, nodes, **options):
    """Return a model with a new function, which is whole and valid, and the inverse of inlining."""
    before = sabir.dumps(model)
    changed = sabir.outline(model, nodes, "Block", **options)
    assert sabir.dumps(model) == before
    verify(changed)
    sabir.check(changed)
    back = sabir.inline(changed)
    assert sabir.compare(model, back).changes == ()
    return changed


def test_nodes_become_the_body_of_a_function():
    model = parsed(MODEL)
    changed = outlined(model, ["t", "u", "v"])
    assert [node.op for node in changed.graph] == ["Neg", "Block", "Add"]
    call = changed.graph.node("Block")
    assert ([v.name for v in call.inputs], [v.name for v in call.outputs]) == (["x", "w"], ["t", "v"])
    (function,) = changed.functions
    assert (function.key, function.opsets, changed.opsets["local"]) == (("local", "Block", ""), {"": 21}, 1)
    assert function.graph[1].attributes["alpha"].value == 1
    x = np.float32([[1, -2]])
    expected, got = sabir.evaluate(model, {"x": x}), sabir.evaluate(changed, {"x": x})
    np.testing.assert_array_equal(got["y"], expected["y"])
    np.testing.assert_array_equal(got["t"], expected["t"])


def test_a_subgraph_goes_into_the_function_with_what_it_captures():
    changed = outlined(parsed(LOOP), ["z"])
    assert [v.name for v in changed.graph.node("Block").inputs] == ["n", "yes", "x", "h", "w"]


def test_nodes_of_a_body_are_replaced_in_the_body():
    model = parsed(LOOP)
    changed = outlined(model, ["p", "q"])
    (loop,) = [node for node in changed.graph if node.op == "Loop"]
    assert [node.op for node in loop.graphs[0]] == ["Identity", "Block", "Relu"]
    feeds = {"x": np.float32([1, 2]), "n": np.int64(3)}
    np.testing.assert_array_equal(sabir.evaluate(changed, feeds)["y"], sabir.evaluate(model, feeds)["y"])


def test_calls_of_functions_go_into_the_function():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21, "a" : 3]>'
        "g (float[N] x) => (float[N] y) { t = a.Twice (x)  y = Abs (t) }"
        '<domain: "a", opset_import: ["" : 21]> Twice (i) => (o) { o = Add (i, i) }'
    )
    changed = sabir.outline(model, ["t", "y"], "Block", domain="a")
    sabir.check(changed)
    assert changed.functions[1].opsets == {"a": 3, "": 21}
    assert sabir.compare(sabir.inline(model), sabir.inline(changed)).changes == ()


def test_a_path_out_and_back_in_is_named():
    with pytest.raises(sabir.UnsupportedError, match="from theirs: v <- u <- t; add the nodes of this path"):
        sabir.outline(parsed(MODEL.replace("side = Neg (x)", "side = Neg (v)")), ["t", "side"], "Block")


def test_names_that_are_taken():
    model = outlined(parsed(MODEL), ["t"])
    with pytest.raises(sabir.UnsupportedError, match="has a function 'local.Block' already"):
        sabir.outline(model, ["u"], "Block")
    with pytest.raises(sabir.UnsupportedError, match="'Relu' is an operator"):
        sabir.outline(model, ["u"], "Relu", domain="")
    with pytest.raises(sabir.UnsupportedError, match="a function needs a name"):
        sabir.outline(model, ["u"], "")
    other = sabir.outline(model, ["u"], "Block", domain="other")
    assert [node.name for node in other.graph][:2] == ["Block", "Block_1"]


def test_what_cannot_be_outlined():
    model = parsed(MODEL)
    with pytest.raises(NotFoundError, match="no node 'V'; is it 'v'?"):
        sabir.outline(model, ["V"], "Block")
    with pytest.raises(NotFoundError, match="is not in the main graph"):
        sabir.outline(model, [parsed(MODEL).graph[0]], "Block")
    with pytest.raises(sabir.UnsupportedError, match="there are no nodes"):
        sabir.outline(model, [], "Block")
    with pytest.raises(sabir.UnsupportedError, match="a function is made of nodes of one graph"):
        sabir.outline(parsed(LOOP), ["h", "p"], "Block")
    unread = parsed("g (float x) => (float y) { t = Neg (x)  y = Abs (x) }")
    with pytest.raises(sabir.UnsupportedError, match="nothing reads what these nodes compute"):
        sabir.outline(unread, ["t"], "Block")
    old = sabir.parse('<ir_version: 7, opset_import: ["" : 13]>\ng (float x) => (float y) { y = Neg (x) }')
    with pytest.raises(sabir.UnsupportedError, match="functions need IR version 8, and the model has 7"):
        sabir.outline(old, ["y"], "Block")


def test_ir_8_has_no_types_in_functions():
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 17]>\n'
        "g (float[N] x) => (float[N] y) <float[N] t> { t = Neg (x)  y = Abs (t) }"
    )
    changed = outlined(model, list(model.graph))
    assert [value.type for value in changed.functions[0].graph.defined()] == [None] * 3


def test_an_output_that_is_left_out_stays_left_out():
    model = parsed("g (float[4,2] x) => (float[4,2] y) { y, m = Dropout (x) }")
    model.graph[0].outputs = [model.graph[0].output, None]
    assert [v.name for v in outlined(model, list(model.graph)).graph[0].outputs] == ["y"]
