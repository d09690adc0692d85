"""Each rewrite changes its examples, keeps their meaning, and leaves similar models alone."""

import numpy as np
import pytest

import sabir
from sabir.base import SchemaError
from sabir.ir import verify
from sabir.simplification import OPTIMIZATIONS, REWRITES, Pattern, Simplify

SPECIAL = np.float32([
    0.0, -0.0, 1.5, -2.5, np.nan, np.inf, -np.inf, 1e-45, -1e-40, 3.4e38, 0.49999997, -7.0,
]).reshape(6, 2)  # fmt: skip
OPSETS = (13, 17, 18, 21, 25)
TABLES = (*REWRITES, *OPTIMIZATIONS)


def model_of(nodes, opset):
    of = "float[a,b,c,d]" if "Conv" in nodes else "float[a,b]"
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : {opset}]> g (float[6,2] x) => ({of} y) {{ {nodes} }}'
    )


def feeds(exact):
    plain = np.linspace(-3, 3, 12, dtype=np.float32).reshape(6, 2)
    return [{"x": plain}, {"x": SPECIAL}] if exact else [{"x": plain}]


@pytest.mark.parametrize("rewrite", TABLES, ids=lambda r: r.name)
def test_a_rewrite_keeps_the_meaning_of_its_examples(rewrite):
    assert rewrite.examples
    for nodes in rewrite.examples:
        for opset in (o for o in OPSETS if rewrite.since <= o < (rewrite.until or 99)):
            model = model_of(nodes, opset)
            before = [sabir.evaluate(model, f)["y"] for f in feeds(rewrite.exact)]
            count, one = len(model.graph), Simplify([rewrite])
            assert one.run(model), nodes
            assert set(one.applied) == {rewrite.name}
            verify(model)
            sabir.check(model)
            assert len(model.graph) <= count
            for x, y in zip(feeds(rewrite.exact), before, strict=True):
                found = sabir.evaluate(model, x)["y"]
                if rewrite.exact:
                    np.testing.assert_array_equal(np.isnan(found), np.isnan(y))
                    np.testing.assert_array_equal(np.signbit(found), np.signbit(y))
                    np.testing.assert_array_equal(found, y)
                else:
                    np.testing.assert_allclose(found, y, rtol=1e-5, atol=1e-5)
            assert not Simplify([rewrite]).run(model)


@pytest.mark.parametrize("rewrite", TABLES, ids=lambda r: r.name)
def test_a_rewrite_leaves_other_models_alone(rewrite):
    for nodes in rewrite.others:
        model = model_of(nodes, 21)
        before = sabir.dumps(model)
        assert not Simplify([rewrite]).run(model), nodes
        assert sabir.dumps(model) == before


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


@pytest.mark.parametrize("text", ["", "x", "Relu(", "Relu(x", "Relu(x))", "Relu(x,,y)", "Relu[x]", "a = "])
def test_what_is_no_pattern(text):
    with pytest.raises(SchemaError, match="is no pattern"):
        Pattern.parse(text)
