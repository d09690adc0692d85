"""Sequences, optionals and scans: the types that follow through them, and the calls that are refused."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError, InferenceError
from sabir.inference import Inference

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def run(text, **feeds):
    return list(sabir.evaluate(sabir.parse(HEADER + text), feeds).values())


def types(text):
    model = sabir.parse(HEADER + text)
    engine = Inference(model, strict=True)
    engine.run()
    return [str(engine.types.get(v)) for v in model.graph.outputs]


@pytest.mark.parametrize(
    ("ports", "call", "expected"),
    [
        ("float[n, 2] x, float[n, 3] y", "SequenceConstruct (x, y)", "seq(float[n,?])"),
        ("float[n] x, float[2, 2] y", "SequenceConstruct (x, y)", "seq(float[])"),
        ("seq(float[2]) s, float[2] x", "SequenceInsert (s, x)", "seq(float[2])"),
        ("seq(float[2]) s, float[3] x", "SequenceInsert (s, x)", "seq(float[?])"),
        ("", "SequenceEmpty <dtype = 7> ()", "seq(int64[])"),
        ("seq(float[2, 3]) s, int64 i", "SequenceAt (s, i)", "float[2,3]"),
        ("seq(float[2, 3]) s", "ConcatFromSequence <axis = -1> (s)", "float[2,?]"),
        ("seq(float[2, 3]) s", "ConcatFromSequence <axis = -1, new_axis = 1> (s)", "float[2,3,?]"),
        ("float[n, 6] x", "SplitToSequence <axis = 1> (x)", "seq(float[n,1])"),
        ("float[n, 6] x", "SplitToSequence <keepdims = 0> (x)", "seq(float[6])"),
        ("float[n, 6] x", "SplitToSequence <axis = 1> (x, two)", "seq(float[n,2])"),
        ("float[2*n, 6] x", "SplitToSequence (x, two)", "seq(float[2,6])"),
        ("float[n, 6] x", "SplitToSequence (x, two)", "seq(float[?,6])"),
        ("float[n, 1] x", "SplitToSequence <axis = 1> (x, two)", "seq(float[n,1])"),
        ("float[n, 6] x", "SplitToSequence <axis = 1> (x, halves)", "seq(float[n,3])"),
        ("float[n, 6] x, int64[k] p", "SplitToSequence <axis = 1> (x, p)", "seq(float[n,?])"),
        ("optional(float[n]) x", "OptionalGetElement (x)", "float[n]"),
        ("seq(float[2]) x", "Optional (x)", "optional(seq(float[2]))"),
    ],
)
def test_types(ports, call, expected):
    constants = "two = Constant <value = int64 {2}> ()  halves = Constant <value = int64[2] {3, 3}> ()"
    assert types(f"g ({ports}) => (y) {{ {constants} y = {call} }}") == [expected]


def test_inference_takes_the_name_of_a_dimension_as_each_items_own():
    """Spec/ir.txt has one size for all; the official cases do not, and a run warns of it."""
    text = "g (seq(float[n]) s) => (y) { y = ConcatFromSequence <axis = 0> (s) }"
    items = [X[0], X[1, :2]]
    with pytest.warns(sabir.SabirWarning, match="item 1 is declared"):
        assert run(text, s=items)[0].tolist() == [1, 2, 3, 4, 5]

    pick = "g (seq(float[n]) s, int64 i) => (y) { y = SequenceAt (s, i) }"
    assert types(pick) == ["float[?]"]
    model = sabir.infer(sabir.parse(HEADER + pick))
    assert str(model.graph.inputs[0].type) == "seq(float[n])"  # the file keeps its names


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("SequenceAt (s, two)", "position 2 is outside"),
        ("SequenceErase (s, two)", "position 2 is outside"),
        ("SequenceInsert (s, x, three)", "position 3 is outside"),
        ("SequenceInsert (s, two)", "one element type"),
        ("SequenceConstruct (x, two)", "one type for all"),
        ("SplitToSequence (x, none)", "size 0"),
        ("OptionalGetElement (o)", "is empty"),
    ],
)
def test_calls_that_are_refused(call, told):
    numbers = {"none": 0, "two": 2, "three": 3}
    constants = " ".join(f"{k} = Constant <value = int64 {{{v}}}> ()" for k, v in numbers.items())
    text = f"g (seq(float[3]) s, float[2, 3] x, optional(float) o) => (y) {{ {constants} y = {call} }}"
    with pytest.raises(EvaluationError, match=told):
        run(text, s=list(X), x=X, o=None)


def test_an_empty_sequence_has_no_joint_shape():
    with pytest.raises(EvaluationError, match="the sequence is empty"):
        run("g (seq(float[3]) s) => (y) { y = ConcatFromSequence <axis = 0> (s) }", s=[])


def test_maps_go_through_sequences_of_one_length():
    text = """g (seq(float[n]) s, seq(float[n]) t) => (y) {
        y = SequenceMap <body = b (float[n] a, float[n] c) => (float[n] d) { d = Add (a, c) }> (s, t)
    }"""
    assert types(text) == ["seq(float[?])"]
    assert run(text, s=list(X), t=list(X))[0][1].tolist() == [8, 10, 12]
    with pytest.raises(EvaluationError, match="the same length"):
        run(text, s=list(X), t=[X[0]])


def test_an_optional_may_come_round_filled():
    text = """g (int64 m, optional(seq(float)) o) => (y) {
        y = Loop <body = b (int64 i, bool c, optional(seq(float)) old) => (bool again, seq(float) new) {
            again = Identity (c)
            n = Cast <to = 1> (i)
            there = OptionalHasElement (old)
            new = If <
                then_branch = yes () => (seq(float) p) { q = OptionalGetElement (old)  p = SequenceInsert (q, n) },
                else_branch = no () => (seq(float) r) { r = SequenceConstruct (n) }
            > (there)
        }> (m, "", o)
    }"""
    assert types(text) == ["None"]  # a sequence, or without iterations the optional itself
    assert run(text, m=np.array(3), o=None) == [[0, 1, 2]]
    assert run(text, m=np.array(1), o=[np.array(7, np.float32)]) == [[7, 0]]
    assert run(text, m=np.array(0), o=None) == [None]


SCAN = """g (float[k] s, float[t, k] x, float[k, t] y) => (last, all) {
    last, all = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_output_axes = [-1], body = b (
        float[k] old, float[k] a, float[k] c) => (float[k] new, float[k] seen
    ) {
        sum = Add (a, c)  new = Add (old, sum)  seen = Mul (a, c)
    }> (s, x, y)
}"""


def test_scans_keep_symbols():
    assert types(SCAN) == ["float[k]", "float[k,t]"]
    assert types(SCAN.replace("[t, k]", "[5, k]")) == ["float[k]", "float[k,5]"]  # lengths are one
    last, stacked = run(SCAN, s=np.zeros(3, np.float32), x=X, y=X.T)
    assert last.tolist() == [10, 14, 18]
    assert stacked.tolist() == (X * X).T.tolist()


def test_scans_go_through_tensors_of_one_length():
    unequal = SCAN.replace("[t, k] x, float[k, t] y", "[2, k] x, float[k, 3] y")
    with pytest.raises(InferenceError, match="length of the scan inputs"):
        types(unequal)
    with pytest.raises(EvaluationError, match="the same length"):
        run(unequal, s=np.zeros(3, np.float32), x=X, y=np.zeros((3, 3), np.float32))


def test_a_state_of_a_scan_keeps_its_shape():
    text = """g (float[2] s, float[2, 3] x) => (y) {
        y = Scan <num_scan_inputs = 1, body = b (s, a) => (z) { z = Concat <axis = 0> (s, a) }> (s, x)
    }"""
    with pytest.raises(InferenceError, match="state 0 before and after a step"):
        types(text)
    with pytest.raises(EvaluationError, match="a state changes its shape"):
        run(text, s=np.zeros(2, np.float32), x=X)
