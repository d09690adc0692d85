"""Other names for parts of a model."""

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError, UnsupportedError
from sabir.editing import rename_and_report
from sabir.ir import Annotation, NodeDevice, Sharding, verify

TEXT = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[N,3] x, float[N] mask) => (float[N,3] y, float[N] z) {
    t = local.Twice (x)
    [N] y = Relu (t)
    z = Neg (mask)
}
<domain: "local", opset_import: ["" : 21]> Twice (a) => (b) { b = Add (a, a) }"""
BRANCHES = """<ir_version: 10, opset_import: ["" : 21]>
h (float[N] x, bool c) => (float[N] y) {
    y = If (c) < then_branch = p () => (float[N] q) { q = Abs (x) },
                 else_branch = e () => (float[N] q) { q = Neg (x) } >
}"""


def renamed(text, names):
    model = sabir.parse(text)
    before = sabir.text(model)
    found = rename_and_report(model, names)
    assert sabir.text(model) == before
    verify(found.model)
    sabir.check(found.model)
    return found


def test_every_kind_at_once():
    found = renamed(
        TEXT,
        {"x": "image", "dimension:N": "batch", "node:N": "clamp", "Twice": "Double", "local": "org.acme"},
    )
    assert [name.kind for name in found.names] == ["value", "dimension", "node", "function", "domain"]
    model = found.model
    assert str(model.graph.inputs[0]) == "<Value image: float[batch,3]>"
    assert (model.graph.node("clamp").op, model.graph[0].op, model.graph[0].domain) == (
        "Relu",
        "Double",
        "org.acme",
    )
    assert (model.functions[0].key, model.opsets) == (("org.acme", "Double", ""), {"": 21, "org.acme": 1})
    assert sabir.compare(sabir.rename(model, {"image": "x"}), model).changes


def test_names_are_exchanged():
    model = renamed(TEXT, {"x": "y", "y": "x"}).model
    assert [v.name for v in (model.graph.inputs[0], model.graph.outputs[0])] == ["y", "x"]
    got = sabir.evaluate(model, {"y": np.ones((1, 3), np.float32), "mask": np.ones(1, np.float32)})
    assert got["x"].tolist() == [[2, 2, 2]]


def test_values_inside_branches():
    model = renamed(BRANCHES, {"q": "result", "x": "input"}).model
    assert [g.outputs[0].name for g in model.graph[0].graphs] == ["result", "result"]
    assert "input" in sabir.text(model.graph[0].graphs[0])


def test_attributes_that_name_values():
    text = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>
g (float x) => (float y, float d) {
    y = Mul (x, x)
    d = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x)
}"""
    model = renamed(text, {"x": "at", "y": "of"}).model
    attributes = model.graph[1].attributes
    assert (attributes["xs"].value, attributes["y"].value) == (("at",), "of")


def test_annotations_and_layouts_follow():
    model = sabir.parse(TEXT.replace("10,", "11,"))
    x = model.graph.value("x")
    scale = model.graph.add_initializer("scale", np.float32(2))
    model.graph.annotations = (Annotation(x, (("SCALE_TENSOR", scale),)),)
    model.graph[0].devices = (NodeDevice("d", (Sharding(x, "x"),)),)
    changed = sabir.rename(model, {"x": "image", "scale": "step"})
    (annotation,) = changed.graph.annotations
    assert (annotation.value.name, annotation.parameters[0][1].name) == ("image", "step")
    assert changed.graph[0].devices[0].shardings[0].name == "image"
    assert model.graph[0].devices[0].shardings[0].name == "x"


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"N": "batch"}, sabir.SchemaError, "a node and a dimension; write which one: node:N or dimension:N"),
        ({"maks": "m"}, NotFoundError, "no value, node, dimension, function or domain 'maks'; is it 'mask'?"),
        ({"value:maks": "m"}, NotFoundError, "the model has no value 'maks'; is it 'mask'?"),
        ({"x": "t"}, sabir.SchemaError, "value 'x' cannot be called 't': the model has a value of that name"),
        ({"x": "q", "t": "q"}, sabir.SchemaError, "value 't' cannot be called 'q'"),
        ({"x": ""}, UnsupportedError, "the new name of 'x' is empty"),
        ({"a": "q"}, NotFoundError, "no value, node"),
    ],
)
def test_names_that_cannot_be_changed(names, error, message):
    with pytest.raises(error) as raised:
        sabir.rename(sabir.parse(TEXT), names)
    assert message in str(raised.value)


def test_equal_dimensions_are_for_set_dims():
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[N,M] x) => (float[N,M] y) { y = Relu (x) }'
    with pytest.raises(sabir.SchemaError, match="`set_dims` makes two dimensions equal"):
        sabir.rename(sabir.parse(text), {"N": "M"})
    assert str(sabir.rename(sabir.parse(text), {"N": "M", "M": "N"}).graph.inputs[0].type) == "float[M,N]"


def test_a_function_does_not_take_the_name_of_an_operator_that_is_called():
    text = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y) { t = Own (x)  y = Relu (t) }
<domain: "", opset_import: ["" : 21]> Own (a) => (b) { b = Neg (a) }"""
    with pytest.raises(sabir.SchemaError, match="the model calls an operator that is"):
        sabir.rename(sabir.parse(text), {"Own": "Relu"})
