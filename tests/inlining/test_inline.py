"""Inlined models compute what they computed, without their functions."""

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.base import ConversionError, LimitError, SchemaError
from sabir.ir import verify

HEADER = '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\n'
TWICE = """
main (float[2,2] x) => (float[2,2] y, float[2,2] z) {
    y = d.F (x)
    t = d.F <ax = 0> (x)
    z = Relu (t)
}
<domain: "d", opset_import: ["" : 18]> F <ax: int = 1> (a) => (b) { s = Softmax <axis : int = @ax> (a)  b = Neg (s) }
"""
NESTED = """
main (float[2,2] x) => (float[2,2] y) { y = d.G <gx = 0> (x) }
<domain: "d", opset_import: ["" : 18, "d" : 1]> G <gx> (a) => (b) { t = d.F <ax : int = @gx> (a)  b = d.F (t) }
<domain: "d", opset_import: ["" : 18]> F <ax: int = 1> (a) => (b) { b = Softmax <axis : int = @ax> (a) }
"""
INSIDE = """
main (float[2,2] x, bool c) => (float[2,2] y) {
    y = If (c) <
        then_branch = t () => (float[2,2] p) { p = d.F (x) },
        else_branch = e () => (float[2,2] q) { q = Neg (x) }
    >
}
<domain: "d", opset_import: ["" : 18]> F (a) => (b) {
    k = Constant <value = bool {1}> ()
    b = If (k) <then_branch = t () => (r) { r = Relu (a) }, else_branch = e () => (s) { s = Neg (a) }>
}
"""
THROUGH = """
main (float[2,2] x) => (float[2,2] y, float[2,2] z) { y, z = d.F (x) }
<domain: "d", opset_import: ["" : 18]> F (a) => (a, b) { b = Relu (a) }
"""
DOUBLED = """
main (float[2,2] x) => (float[2,2] y, float[2,2] z) { y, z = d.F (x) }
<domain: "d", opset_import: ["" : 18]> F (a) => (b, b) { b = Relu (a) }
"""
OPTIONAL = """
main (float[2,2] x) => (float[2,2] y) { y = d.F (x) }
<domain: "d", opset_import: ["" : 18]> F (a, low, high) => (b) { b = Clip (a, low, high) }
"""
FEEDS = {"x": np.array([[-1, 2], [0.5, 3]], np.float32), "c": np.ones((), np.bool_)}


@pytest.mark.parametrize("body", [TWICE, NESTED, INSIDE, THROUGH, DOUBLED, OPTIONAL])
def test_functions(body):
    model = sabir.parse(HEADER + body)
    feeds = {v.name: FEEDS[v.name] for v in model.graph.inputs}
    expected = sabir.evaluate(model, feeds)

    text = sabir.text(model)
    model, called = sabir.inline(model), model
    assert sabir.text(called) == text

    verify(model)
    sabir.check(model)
    assert not model.functions
    assert all(n.domain != "d" for n in model.graph.all_nodes())
    assert model.opsets == {"": 18}  # nothing calls the domain of the functions any more
    got = sabir.evaluate(model, feeds)
    oracle = onnxruntime.InferenceSession(sabir.dumps(model)).run(None, feeds)
    assert list(got) == list(expected)
    for mine, before, theirs in zip(got.values(), expected.values(), oracle, strict=True):
        np.testing.assert_array_equal(mine, before)
        np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-6)


def test_the_body_of_a_function_for_another_operator_set_is_converted():
    body = 'm (float[2,3,2] x) => (float[2,3,2] y) { y = d.F (x) }\n<domain: "d", opset_import: ["" : 12]> F (a) => (b) { b = Softmax (a) }'
    model = sabir.parse(HEADER + body)
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    over_rows = np.exp(x) / np.exp(x).sum(axis=(1, 2), keepdims=True)  # Softmax:11 flattens at axis 1

    model = sabir.inline(model)

    verify(model)
    assert model.opset() == 18
    assert not model.functions
    np.testing.assert_allclose(sabir.evaluate(model, {"x": x})["y"], over_rows, rtol=1e-6)


def test_a_body_that_cannot_be_converted_leaves_the_model_as_it_was():
    body = 'm (float[2] x) => (double[2] y) { t = Relu (x)  y = d.F (t) }\n<domain: "d", opset_import: ["" : 20]> F (a) => (b) { c = Gelu (a)  b = StringConcat (c, c) }'
    model = sabir.parse(HEADER + body)
    before = sabir.text(model)
    with pytest.raises(
        ConversionError, match=r"F.*no equivalent in opset 18 of ai.onnx(?s:.*)StringConcat:20"
    ):
        model = sabir.inline(model)
    assert sabir.text(model) == before


def test_a_function_for_another_operator_set_without_a_difference_is_copied():
    body = 'm (bool[2] x) => (bool[2] y) { y = d.F (x) }\n<domain: "d", opset_import: ["" : 12]> F (a) => (b) { b = Not (a) }'
    assert [n.op for n in sabir.inline(sabir.parse(HEADER + body)).graph] == ["Not"]


def test_functions_that_call_themselves():
    body = 'm (float[2] x) => (float[2] y) { y = d.F (x) }\n<domain: "d", opset_import: ["d" : 1]> F (a) => (b) { b = d.F (a) }'
    with pytest.raises(SchemaError, match="calls itself"):
        sabir.inline(sabir.parse(HEADER + body))


def test_bombs_are_refused():
    levels = "".join(
        f'<domain: "d", opset_import: ["" : 18, "d" : 1]> F{i} (a) => (b) {{ t = {callee} (a)  b = {callee} (t) }}\n'
        for i, callee in enumerate([*(f"d.F{j}" for j in range(1, 40)), "Relu"])
    )
    model = sabir.parse(f"{HEADER}m (float[2] x) => (float[2] y) {{ y = d.F0 (x) }}\n{levels}")
    with pytest.raises(LimitError, match="1,099,511,627,776 nodes"):
        model = sabir.inline(model)


# dimension variables


def types_of(model):
    return {v.name: str(v.type) for v in model.graph.defined()}


def test_each_call_has_its_own_dimension_variables():
    model = sabir.parse(
        HEADER + "m (float[2] x, float[3] z, float[N] w) => (float[2] y, float[3] v, float[N] u)"
        ' { y = d.F (x)  v = d.F (z)  u = d.F (w) }\n<domain: "d", opset_import: ["" : 18]>'
        " F (a) => (b) <float[N] t, float[2*N] s> { t = Neg (a)  s = Concat<axis = 0> (t, t)  b = Abs (t) }"
    )
    got = sabir.inline(model)
    verify(got)
    types = types_of(got)
    inner = [types[name] for name in ("t_1", "t_2", "t_3")]
    assert sorted(inner) == ["float[N_1]", "float[N_2]", "float[N_3]"]
    assert {types["y"], types["v"], types["u"]} == {"float[2]", "float[3]", "float[N]"}
    assert {types[f"s_{n}"] for n in (1, 2, 3)} == {"float[2*N_1]", "float[2*N_2]", "float[2*N_3]"}
    assert not list(sabir.findings(got, strict=True, select=["TYPE"]))


def test_a_variable_of_a_declared_input_is_the_dimension_of_the_operand():
    model = sabir.parse(
        HEADER + "m (float[2,B] x) => (float[B,2] y) { y = d.F (x) }\n"
        '<domain: "d", opset_import: ["" : 18]>'
        " F (a) => (b) <float[M,N] a, float[N,M] t, float[K,M] s> { t = Transpose (a)  s = Neg (t)  b = Abs (s) }"
    )
    types = types_of(sabir.inline(model))
    assert (types["t_1"], types["s_1"]) == ("float[B,2]", "float[K,2]")


def test_dimension_variables_in_subgraphs_and_attributes_of_bodies():
    model = sabir.parse(
        HEADER + "m (bool c, float[N] x) => (float[?] y) { y = d.F (c, x) }\n"
        '<domain: "d", opset_import: ["" : 18]> F (c, a) => (b) { o = Optional<type = float[N]> ()'
        " b = If (c) <then_branch = t () => (float[N] p) { p = Neg (a) },"
        " else_branch = e () => (float[N] q) { q = Abs (a) }> }"
    )
    got = sabir.inline(model)
    optional, branches = got.graph
    assert str(optional.attributes["type"].value) == "float[N_1]"
    assert [str(g.outputs[0].type) for g in branches.graphs] == ["float[N_1]", "float[N_1]"]


def test_a_converted_body_has_its_own_dimension_variables():
    model = sabir.parse(
        HEADER + "m (float[N,4] x) => (float[?] y) { y = d.F (x) }\n"
        '<domain: "d", opset_import: ["" : 12]>'
        " F (a) => (b) <float[N] t> { t = ReduceSum<axes = [0], keepdims = 0> (a)  b = Abs (t) }"
    )
    types = types_of(sabir.inline(model))
    assert types["t_1"] == "float[N_1]"


# imports of the inlined model


def test_an_import_that_was_not_used_before_stays():
    header = '<ir_version: 10, opset_import: ["" : 18, "d" : 1, "ai.onnx.ml" : 3]>\n'
    model = sabir.inline(sabir.parse(header + TWICE))
    assert model.opsets == {"": 18, "ai.onnx.ml": 3}


def test_an_import_that_only_a_body_needs_is_added_and_stays():
    body = "m (float[2] x) => (float[2] y) { y = d.F (x) }\n"
    body += '<domain: "d", opset_import: ["" : 18, "ai.onnx.ml" : 1]> F (a) => (b) { b = ai.onnx.ml.Normalizer (a) }'
    assert sabir.inline(sabir.parse(HEADER + body)).opsets == {"": 18, "ai.onnx.ml": 1}


def test_inlining_in_place_changes_the_model():
    model = sabir.parse(HEADER + TWICE)
    sabir.inlining.inline_in_place(model)
    assert not model.functions
