"""Outputs whose types the operator version does not admit: reported once by the checker, refused by a run."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.inference import Inference
from sabir.syntax import parse

IFS = (
    "g (bool c, float[2] x) => (y) {{ y = If (c) <then_branch = a () => (p) {{ {inner} p = {call} }},"
    " else_branch = b () => (q) {{ {inner} q = {call} }}> }}"
)
SEQUENCE = {"inner": "", "call": "SequenceConstruct(x)"}
OPTIONAL = {"inner": "", "call": "Optional(x)"}
LOOP = (
    "g (int64 n, bool c, float[2] x) => (y) { s = SequenceConstruct(x) y = Loop (n, c, s) <body = b"
    " (int64 i, bool k, seq(float[2]) t) => (bool l, seq(float[2]) u) { l = Identity(k) u = SequenceInsert(t, x) }> }"
)
SCAN = (
    "g (float[3,2] x) => (y) { y = Scan <num_scan_inputs = 1, body = b (float[2] r) => (bfloat16[2] o)"
    " { o = Cast <to = 16> (r) }> (x) }"
)

REFUSED = {  # opset, graph, what is wrong
    "a sequence from an If": (11, IFS.format(**SEQUENCE), "If:11 does not admit seq(tensor(float))"),
    "an optional from an If": (15, IFS.format(**OPTIONAL), "If:13 does not admit optional(tensor(float))"),
    "a constant of bfloat16": (
        12, "g () => (y) { y = Constant <value = bfloat16[1] {1}> () }",
        "Constant:12 does not admit tensor(bfloat16)",
    ),
    "a constant of int4": (
        19, "g () => (y) { y = Constant <value = int4[2] {1, 2}> () }",
        "Constant:19 does not admit tensor(int4)",
    ),
    "constant of a shape": (
        9, 'g (int64[2] s) => (y) { y = ConstantOfShape <value = string[1] {"a"}> (s) }',
        "ConstantOfShape:9 does not admit tensor(string)",
    ),
    "random integers like the input": (
        13, "g (int64[2] x) => (y) { y = RandomNormalLike (x) }",
        "RandomNormalLike:1 does not admit tensor(int64)",
    ),
    "dequantized to the type of the scale": (
        24, "g (int8[2] x, float8e8m0 s) => (y) { y = DequantizeLinear (x, s) }", "DequantizeLinear:24",
    ),
    "a scan's body": (13, SCAN, "Scan:11 does not admit tensor(bfloat16)"),
}  # fmt: skip
ADMITTED = {
    "a sequence from an If": (13, IFS.format(**SEQUENCE)),
    "an optional from an If": (16, IFS.format(**OPTIONAL)),
    "a sequence from a Loop": (13, LOOP),
    "a constant of bfloat16": (13, "g () => (y) { y = Constant <value = bfloat16[1] {1}> () }"),
    "a scan's body": (16, SCAN),
}


def model(opset, graph):
    ir_version = 11 if opset > 20 else 10 if opset > 18 else 8
    return parse(f'<ir_version: {ir_version}, opset_import: ["" : {opset}]>\n{graph}')


def type_errors(made):
    return [f.message for f in sabir.findings(made, select=["TYPE001", "NODE"]) if f.severity == "error"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_type_that_the_version_does_not_give_is_one_finding(name):
    opset, graph, told = REFUSED[name]
    (message,) = type_errors(model(opset, graph))
    assert told in message
    with pytest.raises(sabir.InferenceError):
        Inference(model(opset, graph), strict=True).run()


@pytest.mark.parametrize("name", ADMITTED)
def test_a_later_version_gives_it(name):
    assert type_errors(model(*ADMITTED[name])) == []


def test_what_is_declared_counts_where_inference_does_not_know():
    graph = "g (float[2] x) => (y) <string[2] y> { t = own.Thing(x) y = Relu(t) }"
    made = parse(f'<ir_version: 8, opset_import: ["" : 17, "own" : 1]>\n{graph}')
    (message,) = type_errors(made)
    assert message.startswith("Relu:14 does not admit tensor(string) for its output 'Y'")


def test_an_output_has_the_type_of_the_inputs_that_share_its_constraint():
    graph = "g (float[2] x) => (y) <double[2] y> { t = own.Thing(x) y = Where(t, x, t) }"
    made = parse(f'<ir_version: 8, opset_import: ["" : 17, "own" : 1]>\n{graph}')
    found = type_errors(made)
    assert len(found) == 1
    assert "double" in found[0]


def test_a_run_refuses_a_constant_when_it_is_planned():
    with pytest.raises(sabir.SchemaError, match="Constant:12 does not admit tensor"):
        sabir.Session(model(12, "g () => (y) { y = Constant <value = bfloat16[1] {1}> () }"))
    later = model(13, "g () => (y) { y = Constant <value = bfloat16[1] {1}> () }")
    assert sabir.evaluate(later, {})["y"].dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("way", [True, False])
def test_a_run_refuses_what_a_branch_gives(way):
    feeds = {"c": np.array(way), "x": np.float32([1, 2])}
    with pytest.raises(sabir.EvaluationError, match="If:11 does not admit seq"):
        sabir.evaluate(model(11, IFS.format(**SEQUENCE)), feeds)
    (later,) = sabir.evaluate(model(13, IFS.format(**SEQUENCE)), feeds).values()
    np.testing.assert_array_equal(later[0], feeds["x"])


def test_a_run_refuses_what_a_scan_stacks():
    x = np.zeros((3, 2), np.float32)
    with pytest.raises(sabir.EvaluationError, match="Scan:11 does not admit tensor.bfloat16"):
        sabir.evaluate(model(13, SCAN), {"x": x})
    assert sabir.evaluate(model(16, SCAN), {"x": x})["y"].dtype == ml_dtypes.bfloat16


def test_integers_from_the_first_constant_are_a_warning():
    made = model(7, "g () => (int64[2] y) { y = Constant <value = int64[2] {1, 2}> () }")
    assert type_errors(made) == []
    (warning,) = [f for f in sabir.findings(made) if f.rule == "NODE017"]
    assert "tensor(int64), which the standard admits from version 9 on" in warning.message
    assert sabir.evaluate(made, {})["y"].tolist() == [1, 2]
    later = model(9, "g () => (int64[2] y) { y = Constant <value = int64[2] {1, 2}> () }")
    assert not [f for f in sabir.findings(later) if f.rule == "NODE017"]
