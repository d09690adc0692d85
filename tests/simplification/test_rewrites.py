"""Each rule of the tables is proved by its examples and near misses."""

import numpy as np
import pytest

import sabir
from sabir.optimization import prove
from sabir.simplification import OPTIMIZATIONS, REWRITES, Simplify

SPECIAL = np.float32([
    [0.0, -0.0],
    [1.5, -2.5],
    [np.nan, np.inf],
    [-np.inf, 1e-45],
    [-1e-40, 3.4e38],
    [0.5, -7.0],
])
OPSETS = (13, 17, 18, 21, 25)
TABLES = (*REWRITES, *OPTIMIZATIONS)


def model_of(nodes, opset):
    if nodes.startswith("<"):
        return sabir.parse(nodes)
    of = "float[a,b,c,d]" if "Conv" in nodes else "float[a,b]"
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : {opset}]> g (float[6,2] x) => ({of} y) {{ {nodes} }}'
    )


@pytest.mark.parametrize("rule", TABLES, ids=lambda r: r.name)
def test_examples_prove_a_rule_in_every_operator_set(rule):
    prove(rule, OPSETS)


@pytest.mark.parametrize("rule", TABLES, ids=lambda r: r.name)
def test_a_rule_leaves_no_more_nodes(rule):
    for nodes in rule.examples:
        model = model_of(nodes, (rule.until or 26) - 1)
        count = len(model.graph)
        assert Simplify([rule]).run(model)
        assert len(model.graph) <= count


def test_names_are_unique_and_say_what_they_do():
    assert len({r.name for r in TABLES}) == len(TABLES)
    assert all("=" in r.says for r in TABLES)


def test_rewrites_meet():
    nodes = "c = Constant <value = float {1}> () a = Mul (x, c) b = Neg (a) d = Identity (b) e = Neg (d) y = Relu (e)"
    model = model_of(nodes, 21)
    assert Simplify().run(model)
    assert [n.op for n in model.graph if n.op != "Constant"] == ["Relu"]


def test_subgraphs_and_functions_are_rewritten():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[6,2] x, bool c) => (y) {
      z = f.twice (x)
      y = If (c) <then_branch = t () => (a) { n = Neg (z)  m = Neg (n)  a = Relu (m) },
                  else_branch = e () => (b) { b = Neg (z) }>
    }
    <domain: "f", opset_import: ["" : 21]> twice (p) => (r) { q = Relu (p)  r = Relu (q) }""")
    x = {"x": SPECIAL, "c": np.bool_(1)}
    before = sabir.evaluate(model, x)["y"]
    assert Simplify().run(model)
    assert [n.op for n in model.functions[0].graph] == ["Relu", "Identity"]  # an output keeps its name
    branch = model.graph[1].attributes["then_branch"].value
    assert "Neg" not in [n.op for n in branch]
    np.testing.assert_array_equal(sabir.evaluate(model, x)["y"], before)


def test_an_output_of_a_type_that_identity_does_not_admit_stays_as_it_is():
    text = """<ir_version: 13, opset_import: ["" : 28]>
    g (%s[N] x) => (%s[N] y) { y = Cast <to = %d> (x) }"""
    for kind, number, left in (
        ("float6e2m3", 27, "Cast"),
        ("float6e3m2", 28, "Cast"),
        ("float", 1, "Identity"),
    ):
        model = sabir.parse(text % (kind, kind, number))
        Simplify().run(model)
        assert [n.op for n in model.graph] == [left]


def test_what_a_feed_may_replace_is_no_constant():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[6,2] x, float c = {1}) => (y) { a = Mul (x, c)  y = Neg (a) }""")
    assert not Simplify().run(model)


def test_a_function_named_like_an_operator_is_another():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[6,2] x) => (y) { a = Relu (x)  y = Relu (a) }
    <domain: "", opset_import: ["" : 21]> Relu (p) => (r) { r = Add (p, p) }""")
    assert not Simplify().run(model)


@pytest.mark.parametrize("perm", ["[5, 1]", "0.5", "[0.5, 0.5]", '"xy"'])
def test_an_invalid_model_stays_as_it_is(perm):
    model = model_of(f"a = Transpose <perm = [0, 0]> (x) y = Transpose <perm = {perm}> (a)", 21)
    before = sabir.dumps(model)
    assert not Simplify().run(model)
    assert sabir.dumps(model) == before
