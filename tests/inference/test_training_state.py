"""What training initializes or updates is no constant: its contents are known nowhere."""

import pytest

import sabir
from sabir.checking import findings
from sabir.inference import Inference

GRAPH = (
    '<ir_version: 8, opset_import: ["" : 17]>\n'
    "g (float[6] x) => (float[M,K] y) <int64[2] s = {2, 3}, int64[2] c = {3, 2}>"
    " { y = Reshape(x, s)  z = Reshape(x, c)  two = Sub(c, s)  w = Reshape(x, two) }\n"
)
ALGORITHM = "algorithm: a () => (int64[2] n, float[P,Q] v) { n = Neg(s)  v = Reshape(x, s) }"


def types(text):
    model = sabir.parse(text)
    inference = Inference(model)
    inference.run()
    assert inference.diagnostics == []
    return {node.output.name: inference.types[node.output] for node in model.graph}


def test_an_initializer_is_a_constant_where_nothing_trains_it():
    found = types(GRAPH)
    assert str(found["y"]) == "float[2,3]"
    assert found["two"].known == (1, -1)


@pytest.mark.parametrize("binding", ["update_binding", "initialization_binding"])
def test_state_is_not_known(binding):
    graph = "initialization: i () => (int64[2] n) { n = Neg(c) }" if binding.startswith("i") else ALGORITHM
    found = types(GRAPH + f'@training {{{graph}, {binding}: ["s": "n"]}}')
    assert (str(found["y"]), str(found["z"])) == ("float[M,K]", "float[3,2]")
    assert str(found["w"]) == "float[?,?]"
    assert found["two"].known is None
    assert str(found["two"]) == "int64[2]"


def test_state_is_not_known_to_the_algorithm_or_in_a_body_either():
    text = GRAPH.replace(
        "w = Reshape(x, two)",
        "k = Constant<value_int = 1>()  w = If(b) <then_branch = t () => (float[?,?] p) { p = Reshape(x, s) },"
        " else_branch = e () => (float[?,?] q) { q = Reshape(x, c) }>",
    ).replace("(float[6] x)", "(float[6] x, bool b)")
    found = types(text + f'@training {{{ALGORITHM}, update_binding: ["s": "n"]}}')
    assert str(found["w"]) == "float[?,?]"


def test_the_checker_does_not_take_state_as_a_constant():
    wrong = GRAPH.replace("float[M,K] y", "float[3,2] y")
    assert [f.rule for f in findings(sabir.parse(wrong), select=["TYPE"])] == ["TYPE001"]
    trained = wrong + f'@training {{{ALGORITHM}, update_binding: ["s": "n"]}}'
    assert list(findings(sabir.parse(trained), select=["TYPE"])) == []


def test_inlined_operators_do_not_take_state_as_a_constant():
    text = (
        '<ir_version: 8, opset_import: ["" : 17]>\n'
        "g (float[6] x) => (float[6] y) <float s = {0.5}> { y = LeakyRelu(z)  z = Mul(x, s) }\n"
        '@training {algorithm: a () => (float n) { n = Neg(s) }, update_binding: ["s": "n"]}'
    )
    model = sabir.inline(sabir.parse(text), operators=True)
    assert [v.name for v in model.state()] == ["s"]
    assert any(use.user for use in next(iter(model.state())).uses)
