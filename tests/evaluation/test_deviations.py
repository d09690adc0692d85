"""Files that deviate from the standard in ways that other runtimes accept: reported, run with a warning, refused."""

import warnings

import numpy as np
import pytest

import sabir
from sabir.ir import Attribute
from sabir.runtime import ENGINES
from sabir.scheduling import as_meant

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
OLD = HEAD.replace("17", "11")
REDUCED, SQUEEZED = [[3.0], [12.0]], [0.0, 1.0]
CASES = {
    "a scalar as axes of ReduceSum": (
        HEAD + "g (float[2,3] x) => (float[2,1] y) <int64 a = {1}> { y = ReduceSum (x, a) }",
        REDUCED, "TYPE001", "ReduceSum with output 'y': `axes` is a scalar, and is read as a list of one axis",
    ),
    "a scalar that a node computes": (
        HEAD + "g (float[N,3] x) => (float[N,1] y) { a = Constant<value = int64 {1}> ()  y = ReduceSum (x, a) }",
        REDUCED, "TYPE001", "ReduceSum with output 'y': `axes` is a scalar, and is read as a list of one axis",
    ),
    "a scalar as axes of Squeeze": (
        HEAD + "g (float[2,1] x) => (float[2] y) <int64 a = {1}> { y = Squeeze (x, a) }",
        SQUEEZED, "TYPE001", "Squeeze with output 'y': `axes` is a scalar, and is read as a list of one axis",
    ),
    "a constant that is declared one rank too low": (
        HEAD + "g (float[2,3] x) => (float[2,1] y) <int64 c> { c = Constant<value = int64[1] {1}> ()"
        " y = ReduceSum (x, c) }",
        REDUCED, "TYPE001", ("the constant 'c' is declared as int64, but it is int64[1]: the ranks differ;"
        " the declaration is ignored"),
    ),
    "an axis twice in Squeeze": (
        HEAD + "g (float[2,1] x) => (float[2] y) <int64[2] a = {1, -1}> { y = Squeeze (x, a) }",
        SQUEEZED, "TYPE001", "Squeeze with output 'y': axes [1, -1] name one axis twice, and are read as [1]",
    ),
    "an axis twice in an attribute of Squeeze": (
        OLD + "g (float[2,1] x) => (float[2] y) { y = Squeeze<axes = [1, 1]> (x) }",
        SQUEEZED, "TYPE001", "Squeeze with output 'y': axes [1, 1] name one axis twice, and are read as [1]",
    ),
    "an axis twice in ReduceSum": (
        HEAD + "g (float[2,3] x) => (float[2,1] y) <int64[2] a = {1, 1}> { y = ReduceSum (x, a) }",
        REDUCED, "TYPE001", "ReduceSum with output 'y': axes [1, 1] name one axis twice, and are read as [1]",
    ),
    "an axis twice in an attribute of ReduceSum": (
        OLD + "g (float[2,3] x) => (float[2,1] y) { t = Neg (x)  u = Neg (t)  y = ReduceSum<axes = [-1, 1]> (u) }",
        REDUCED, "TYPE001", "ReduceSum with output 'y': axes [-1, 1] name one axis twice, and are read as [-1]",
    ),
    "a domain that is not imported": (
        HEAD + "g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Binarizer<threshold = 0.5> (x) }",
        SQUEEZED, "NODE001", "the model calls Binarizer without importing ai.onnx.ml; opset 3 is assumed",
    ),
    "a domain that a function does not import": (
        ('<ir_version: 8, opset_import: ["" : 17, "d" : 1, "ai.onnx.ml" : 1]> g (float[2] x) => (float[2] y)'
        ' { y = d.f (x) }\n<domain: "d", opset_import: ["" : 17]>'
        " f (a) => (b) { b = ai.onnx.ml.Binarizer<threshold = 0.5> (a) }"),
        SQUEEZED, "NODE001", "the function 'f' calls Binarizer without importing ai.onnx.ml; opset 1 is assumed",
    ),
}  # fmt: skip


def feeds_of(model):
    kind = model.graph.inputs[0].type
    shape = [d if isinstance(d, int) else 2 for d in kind.shape]
    return {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}


def integer_for_a_float():
    model = sabir.parse(
        HEAD + "g (float[2] x) => (float[2] y) { c = Constant<value_float = 2.0> ()  y = Add (x, c) }"
    )
    model.graph[0].attributes["value_float"] = Attribute("value_float", "int", 2)
    return model


def check(model, expected, rule, message):
    text = sabir.text(model)
    errors = {f.rule for f in sabir.findings(model) if f.severity == "error"}
    assert rule in errors
    for engine in ENGINES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = sabir.Session(model, engine=engine)
            for _ in range(2):
                assert session.run(feeds_of(model))["y"].tolist() == expected
        assert [str(w.message) for w in caught] == [f"{message}; a strict run refuses it"]
        with pytest.raises(sabir.SabirError):
            sabir.Session(model, engine=engine, strict=True).run(feeds_of(model))
    assert sabir.text(model) == text


@pytest.mark.parametrize("name", CASES)
def test_a_deviation_that_other_runtimes_accept(name):
    text, *facts = CASES[name]
    check(sabir.parse(text), *facts)


def test_an_integer_for_a_float():
    message = "Constant with output 'c': attribute 'value_float' is int, and is read as float"
    check(integer_for_a_float(), [2.0, 3.0], "NODE003", message)


def test_a_deviation_inside_a_subgraph_and_a_function():
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 17, "d" : 1]> g (bool c, float[2,1] x) => (float[2] y) { y = d.f (c, x) }\n'
        '<domain: "d", opset_import: ["" : 17]> f (c, a) => (b) { o = Constant<value = int64 {1}> ()'
        " b = If (c) <then_branch = t () => (p) { p = Squeeze (a, o) },"
        " else_branch = e () => (q) { i = Constant<value = int64[2] {1, 1}> ()  q = Squeeze (a, i) }> }"
    )
    x = np.float32([[1], [2]])
    for engine in ENGINES:
        with pytest.warns(sabir.SabirWarning) as caught:
            session = sabir.Session(model, engine=engine)
        assert len(caught) == 2
        for c in (True, False):
            assert session.run({"c": np.bool_(c), "x": x})["y"].tolist() == [1, 2]


def test_a_model_without_deviations_is_not_copied():
    model = sabir.parse(
        HEAD + "g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceSum (x, a) }"
    )
    assert as_meant(model, sabir.opsets.STANDARD) == (model, ())


@pytest.mark.filterwarnings("ignore::sabir.SabirWarning")
@pytest.mark.parametrize(
    "text",
    [
        HEAD + "g (float[2] x) => (float[2,1,1] y) <int64[2] a = {1, 1}> { y = Unsqueeze (x, a) }",
        HEAD + "g (float[2,3] x) => (float[2,1] y) <int64 a = {7}> { y = ReduceSum (x, a) }",
        HEAD + "g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Binarizers (x) }",
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = org.no.Binarizer (x) }',
    ],
)
def test_what_nobody_accepts_fails(text):
    model = sabir.parse(text)
    for engine in ENGINES:
        with pytest.raises(sabir.SabirError):
            sabir.Session(model, engine=engine).run(feeds_of(model))
