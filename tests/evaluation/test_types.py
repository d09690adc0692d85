"""Values of types that an operator version does not admit are refused, whatever numpy would make of them."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.evaluation._types import kind_of

F = np.float32
TEXT = np.array(["a", "b"], object)

REFUSED = {
    "two texts added": ("Add (x, x)", TEXT, "Add:14 does not admit tensor.string. for 'A'"),
    "a text negated": ("Neg (x)", TEXT, "does not admit tensor.string. for 'X'"),
    "a truth value added": ("Add (x, x)", np.array([True]), "does not admit tensor.bool."),
    "a complex number to a Relu": (
        "Relu (x)",
        np.array([1j], np.complex64),
        "does not admit tensor.complex64.",
    ),
    "floats as indices": ("Gather (x, x)", F([0, 1]), "does not admit tensor.float. for 'indices'"),
    "a condition that is no truth value": ("Where (x, x, x)", F([1]), "does not admit tensor.float."),
    "an input of each type": ("y0 = Cast <to = 7> (x) y = Add (x, y0)", F([1]), "one type for 'A' and 'B'"),
    "inputs of several types": ("y0 = Cast <to = 7> (x) y = Max (x, y0)", F([1]), "one type for all of"),
    "bfloat16 before its time": ("Abs (x)", np.array([1], ml_dtypes.bfloat16), "not admit tensor.bfloat16"),
    "a tensor for a sequence": ("SequenceLength (x)", F([1]), "does not admit tensor.float. for 'input_seq"),
    "a sequence for a tensor": ("q = SequenceConstruct (x) y = Relu (q)", F([1]), "not admit seq.tensor.flo"),
    "an empty sequence for a tensor": ("q = SequenceEmpty () y = Relu (q)", F([1]), "does not admit seq"),
    "a number as a condition": (
        "y = If <then_branch = a () => () {}, else_branch = b () => () {}> (x)",
        F([1]),
        "If:21 does not admit tensor.float. for 'cond'",
    ),
    "a float as a number of turns": (
        (
            "c = Cast <to = 9> (x) "
            "y = Loop <body = b (int64 i, bool k) => (bool k2, float[] o) { k2 = Not (k) o = Relu (x) }> (x, c)"
        ),
        F([1]),
        "does not admit tensor.float. for 'M'",
    ),
    "a text to another domain": ("ai.onnx.ml.Scaler (x)", TEXT, "does not admit tensor.string."),
}


def held(body, opset=21):
    """A model of this body whose input and output have no declared type."""
    calls = body if "y = " in body else f"y = {body}"
    head = f'<ir_version: 10, opset_import: ["": {opset}, "ai.onnx.ml": 3]>'
    model = sabir.parse(f"{head} g (float[N] x) => (float[N] y) {{ {calls} }}")
    model.graph.inputs[0].type = model.graph.outputs[0].type = None
    return model


@pytest.mark.parametrize("what", REFUSED)
def test_a_type_that_is_not_admitted_is_refused(what):
    body, x, told = REFUSED[what]
    model = held(body, 9 if what == "bfloat16 before its time" else 21)
    with pytest.raises(sabir.EvaluationError, match=told) as caught:
        sabir.evaluate(model, {"x": x})
    assert len(str(caught.value)) < 2000


def test_the_types_are_looked_at_anew_when_they_change():
    session = sabir.Session(held("Add (x, x)"))
    assert session.run({"x": F([1])})["y"].tolist() == [2]
    assert session.run({"x": np.int64([2])})["y"].tolist() == [4]
    with pytest.raises(sabir.EvaluationError, match="does not admit"):
        session.run({"x": TEXT})
    with pytest.raises(sabir.EvaluationError, match="does not admit"):  # the refusal is not taken for a leave
        session.run({"x": TEXT})
    assert session.run({"x": F([3])})["y"].tolist() == [6]


@pytest.mark.parametrize(
    "body",
    [
        "Identity (x)",
        "q = SequenceConstruct (x, x) y = ConcatFromSequence <axis = 0> (q)",
        "o = Optional (x) y = OptionalGetElement (o)",
        "q = SequenceConstruct (x) o = Optional (q) p = OptionalGetElement (o) y = ConcatFromSequence <axis = 0> (p)",
        "q = SequenceEmpty () p = SequenceInsert (q, x) y = ConcatFromSequence <axis = 0> (p)",
        "Clip (x, , )",
    ],
)
def test_what_is_admitted_runs(body):
    assert sabir.evaluate(held(body), {"x": F([1, 2])})["y"].tolist()[:2] == [1, 2]


def test_an_absent_input_is_no_float64():
    """Numpy says that None equals the type float64."""
    assert kind_of(None) != np.dtype(np.float64)
    assert kind_of([None]) != kind_of([np.zeros(1)])
