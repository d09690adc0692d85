"""What cannot be judged is a warning, in a check and in an inference alike; and causes stand without consequences."""

import numpy as np
import pytest

import sabir
from sabir.checking import RULES, finding_of, findings
from sabir.checking._examples import build
from sabir.inference import Inference
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output

HEAD = '<ir_version: 8, opset_import: ["" : 17, "custom" : 1, "d" : 1]>\n'
F = '\n<domain: "d", opset_import: ["" : 17]>\nf (a) => (b) { b = Relu(a) }'
MODELS = {
    "sound": ("g (float[N] x) => (float[N] y) { y = Relu(x) }", []),
    "unknown domain": ("g (float[N] x) => (float[N] y) { y = custom.Thing(x) }", [("NODE007", "warning")]),
    "unknown operator": ("g (float[N] x) => (float[N] y) { y = Thing(x) }", [("NODE001", "error")]),
    "unknown function": ("g (float[N] x) => (float[N] y) { y = d.g(x) }" + F, [("NODE001", "error")]),
    "domain not imported": ("g (float[N] x) => (float[N] y) { y = other.Thing(x) }", [("NODE001", "error")]),
    "too many inputs": ("g (float[N] x) => (float[N] y) { y = Relu(x, x) }", [("NODE002", "error")]),
    "too many for a function": (
        "g (float[N] x) => (float[N] y) { y = d.f(x, x) }" + F,
        [("NODE002", "error")],
    ),
    "unknown attribute": ("g (float[N] x) => (float[N] y) { y = Relu<k = 1>(x) }", [("NODE003", "error")]),
    "missing attribute": ("g (float[N] x) => (float[N] y) { y = Concat(x) }", [("NODE003", "error")]),
    "wrong type": ("g (string[N] x) => (string[N] y) { y = Relu(x) }", [("TYPE001", "error")]),
    "undefined output": ("g (float[N] x) => (float[N] y) { z = Relu(x) }", [("GRAPH005", "error")]),
    "in a branch": (
        (
            "g (bool c, float[N] x) => (float[N] y) { y = If(c) <then_branch = a () => (float[N] u)"
            " { u = custom.Thing(x) }, else_branch = b () => (float[N] v) { v = Neg(x) }> }"
        ),
        [("NODE007", "warning")],
    ),
}


@pytest.mark.parametrize("case", MODELS)
def test_a_check_and_an_inference_report_alike(case):
    text, expected = MODELS[case]
    model = sabir.parse(HEAD + text)
    checked = list(findings(model))
    engine = Inference(model)
    engine.run()
    assert [(f.rule, f.severity) for f in checked] == expected
    inferred = [finding_of(d) for d in engine.diagnostics]
    assert [(f.rule, f.severity, f.location) for f in inferred] == [
        (f.rule, f.severity, f.location) for f in checked
    ]


def test_a_tensor_that_no_array_can_represent_is_a_warning():
    model = build(RULES.find("TYPE008").bad[0])  # a constant of rank 65
    engine = Inference(model)
    engine.run()
    assert [(f.rule, f.severity) for f in findings(model)] == [("TYPE008", "warning")]
    assert [finding_of(d) for d in engine.diagnostics] == list(findings(model))
    sabir.infer(model, strict=True)


@pytest.mark.parametrize("case", MODELS)
def test_a_strict_inference_fails_at_errors_and_not_at_what_it_cannot_judge(case):
    text, expected = MODELS[case]
    model = sabir.parse(HEAD + text)
    if any(severity == "error" for _, severity in expected):
        with pytest.raises(sabir.InferenceError):
            sabir.infer(model, strict=True)
    else:
        sabir.infer(model, strict=True)


def test_an_operator_without_inference_is_a_warning():
    thing = Operator("Thing", "own", summary="A thing.")
    thing.first(
        1, inputs=[Input("x", Constraint("T", FLOATS))], outputs=[Output("y", Constraint("T", FLOATS))]
    )
    registry = STANDARD.with_operators(thing)
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float[N] x) => (float[N] y) { y = own.Thing(x) }'
    )
    engine = Inference(model, registry=registry)
    engine.run()
    for found in (list(findings(model, registry=registry)), [finding_of(d) for d in engine.diagnostics]):
        assert [(f.rule, f.severity) for f in found] == [("TYPE008", "warning")]
        assert "own.Thing:1 has no infer" in found[0].message


def test_no_values_of_an_unjudged_node_are_judged():
    model = sabir.parse(HEAD + "g (float[N] x) => (int64[M] y) { t = custom.Thing(x)  y = Cast<to = 7>(t) }")
    assert [f.rule for f in findings(model)] == ["NODE007"]


# messages


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "g (string[N] x) => (string[N] y) { y = Relu(x) }",
            (
                "Relu:14 does not admit tensor(string) for 'X'; it admits tensor(bfloat16), tensor(double),"
                " tensor(float), tensor(float16), tensor(int16), tensor(int32) and 2 more; see"
                " `sabir op Relu --opset 14`"
            ),
        ),
        (
            "g (float c, float[N] x) => (float[N] y) { y = Where(c, x, x) }",
            "Where:16 does not admit tensor(float) for 'condition'; it admits tensor(bool)",
        ),
        (
            "g (seq(float[N]) x, float[N] z) => (float[N] y) { q = SequenceLength(z)  y = Relu(z) }",
            (
                "SequenceLength:11 does not admit tensor(float) for 'input_sequence'; it admits"
                " seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)), seq(tensor(double)),"
                " seq(tensor(float)), seq(tensor(float16)) and 9 more; see `sabir op SequenceLength --opset 11`"
            ),
        ),
        (
            "g (optional(map(int64, float)) x) => (optional(map(int64, float)) y) { y = Identity(x) }",
            (
                "Identity:16 does not admit optional(map(int64, float)) for 'input'; it admits"
                " optional(seq(tensor(bool))), optional(seq(tensor(complex128)))"
            ),
        ),
    ],
)
def test_admitted_types_are_abbreviated(text, shown):
    (found,) = findings(sabir.parse(HEAD + text), select=["TYPE001"])
    assert found.message.startswith(shown)
    assert found.message.count("tensor(") <= 8


# causes and consequences


def built(*nodes):
    """A model whose output the builder cannot type, as a node before it is wrong."""
    b = sabir.Builder(17, check=False)
    x = b.input("x", "float", [3])
    value = x
    for op in nodes:
        value = b.Add(x, b.initializer("c", np.zeros(4, np.float32))) if op == "Add" else b.op(op, value)
    b.output(value, "y")
    return b.model()


@pytest.mark.parametrize(
    ("nodes", "cause"),
    [(["Nope"], "NODE001"), (["Nope", "Relu"], "NODE001"), (["Add", "Relu"], "TYPE001")],
)
def test_an_output_that_is_untyped_because_of_an_error_is_not_reported(nodes, cause):
    model = built(*nodes)
    assert model.graph.outputs[0].type is None
    assert [f.rule for f in findings(model)] == [cause]
    assert [f.rule for f in findings(model, select=["GRAPH002"])] == ["GRAPH002"]


def test_an_untyped_output_without_another_error_is_reported():
    model = sabir.parse(HEAD + "g (float[N] x) => (y, float[N] z) { y = Relu(x)  z = Nope(x) }")
    assert [f.rule for f in findings(model)] == ["NODE001", "GRAPH002"]
    model = sabir.parse(HEAD + "g (float[N] x) => (y) { y = custom.Thing(x) }")
    assert [f.rule for f in findings(model)] == ["NODE007", "GRAPH002"]  # nobody but its owner can declare it


def test_an_untyped_output_behind_an_error_in_a_branch_is_not_reported():
    model = sabir.parse(
        HEAD + "g (bool c, float[N] x) => (y) { t = Nope(x)  y = If(c) <then_branch = a () => (u)"
        " { u = Relu(t) }, else_branch = b () => (v) { v = Neg(t) }> }"
    )
    assert [f.rule for f in findings(model)] == ["NODE001"]
