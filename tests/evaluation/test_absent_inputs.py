"""Calls of functions that leave out an input: what the body needs of it, and what not."""

import numpy as np
import pytest

import sabir
from sabir.evaluation import Runner
from sabir.inference import Inference

MAIN = '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\ng (float[3] x) => (float[3] y) {{ y = d.f({call}) }}\n'
F = '<domain: "d", opset_import: ["" : 18, "d" : 1]>\nf (a, b) => (c) {{ {body} }}\n'
G = '<domain: "d", opset_import: ["" : 18]>\ng (p, q) => (r) {{ {body} }}\n'
ASKS = (
    (
        "has = OptionalHasElement(b)  c = If (has) <then_branch = t () => (float[3] u) {{ u = Add(a, b) }},"
        " else_branch = e () => (float[3] v) {{ v = Neg(a) }}>"
    )
    .replace("{{", "{")
    .replace("}}", "}")
)
TRUE = "t = Constant<value_int = 1>()  yes = Cast<to = 9>(t)  "
NEEDED = {
    "trailing": ("x", "c = Add(a, b)", "", "input 'B'"),
    "empty name": ('"", x', "c = Add(a, b)", "", "input 'A'"),
    "through a function": ("x", "c = d.g(a, b)", "r = Add(p, q)", "input 'B'"),
    "through a function, in another place": ("x", "c = d.g(b, a)", "r = Add(p, q)", "input 'A'"),
    "in a branch": (
        "x",
        TRUE + ASKS.split("  c", 1)[1].join(["c", ""]).replace("has", "yes"),
        "",
        "input 'B'",
    ),
    "one of any number": ("x", "c = Max(a, b)", "", "input number 1"),
    "passed through": ("x", "e = d.g(b, a)  c = Relu(e)", "r = Relu(q)", None),
}


def model(call, body, inner=""):
    return sabir.parse(MAIN.format(call=call) + F.format(body=body) + (G.format(body=inner) if inner else ""))


def run(made):
    return Runner(made).run({"x": np.float32([-1, 0, 2])})["y"].tolist()


@pytest.mark.parametrize("case", [c for c in NEEDED if NEEDED[c][3]])
def test_an_input_that_the_body_needs(case):
    call, body, inner, told = NEEDED[case]
    made = model(call, body, inner)
    (found,) = sabir.findings(made)
    assert found.rule == "FUNC012"
    assert str(found.location).startswith("graph/node[0] 'f'")
    assert "omits " in found.message
    with pytest.raises(sabir.EvaluationError, match=f"requires the {told}.* leaves '[abpq]' out"):
        run(made)


def test_an_input_that_passes_through_a_function():
    call, body, inner, _ = NEEDED["passed through"]
    assert run(model(call, body, inner)) == [0, 0, 2]
    with pytest.raises(sabir.EvaluationError, match="requires the input 'X'.* leaves 'e' out"):
        run(
            sabir.parse(
                MAIN.format(call="x")
                + F.format(body="e = d.g(b, a)  c = Relu(e)")
                + '<domain: "d", opset_import: ["" : 18]>\ng (p, q) => (p) { }\n'
            )
        )


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("c = Clip(a, b)", [-1, 0, 2]),
        ("zero = Constant<value_float = 0.0>()  c = Clip(a, zero, b)", [0, 0, 2]),
        (ASKS, [1, 0, -2]),
        ("c = Neg(a)", [1, 0, -2]),
    ],
)
def test_an_input_that_the_body_can_do_without(body, result):
    made = model("x", body)
    assert not list(sabir.findings(made))
    assert run(made) == result
    inference = Inference(made)
    inference.run()
    assert not inference.diagnostics


def test_one_function_called_with_and_without():
    made = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\n'
        "g (float[3] x, float m) => (float[3] y, float[3] z) { y = d.f(x)  z = d.f(x, m) }\n"
        '<domain: "d", opset_import: ["" : 18]>\nf (a, b) => (c) { c = Clip(a, b) }\n'
    )
    assert not list(sabir.findings(made))
    results = Runner(made).run({"x": np.float32([-1, 0, 2]), "m": np.float32(1)})
    assert (results["y"].tolist(), results["z"].tolist()) == ([-1, 0, 2], [1, 1, 2])


def test_an_optional_that_is_there_is_inferred_as_there():
    """Resize takes sizes or scales: inference of the body must know which of the two the call gives."""
    made = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\n'
        'g (float[1,1,2,2] x) => (float[1,1,4,4] y) <int64[4] s = {1, 1, 4, 4}> { y = d.f(x, "", s) }\n'
        '<domain: "d", opset_import: ["" : 18]>\nf (a, b, s) => (c) { c = Resize(a, "", b, s) }\n'
    )
    assert not list(sabir.findings(made))
    inference = Inference(made)
    inference.run()
    assert not inference.diagnostics
    assert str(inference.types[made.graph.outputs[0]]) == "float[1,1,4,4]"
    assert Runner(made).run({"x": np.ones((1, 1, 2, 2), np.float32)})["y"].shape == (1, 1, 4, 4)


def test_an_empty_name_among_any_number_is_refused_before_a_run():
    made = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 18]>\ng (float[3] x) => (float[3] y) { y = Max(x, "", x) }'
    )
    assert [f.rule for f in sabir.findings(made)] == ["NODE002"]
    with pytest.raises(sabir.SchemaError, match="requires the input number 1"):
        Runner(made)


def test_a_function_that_calls_itself_has_needs_that_end():
    made = model("x", "c = d.f(b, a)")
    assert {f.rule for f in sabir.findings(made)} == {"FUNC003"}
