"""Two models joined into one."""

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError
from sabir.editing import merge_and_report
from sabir.ir import (
    Annotation,
    DeviceConfiguration,
    ExternalTensor,
    NodeDevice,
    Sharding,
    verify,
)

OLD = """<ir_version: 6, opset_import: ["" : 12]>
g (float[N,3] x, float[N] mask) => (float[N,3] y, float[N] z) { t = Relu (x)  y = Softmax (t)  z = Neg (mask) }"""
NEW = """<ir_version: 10, opset_import: ["" : 21]>
h (float[M,K] x, float[N] mask) => (float[M,K] y, float[N] w) { y = Mul (x, x)  w = Abs (mask) }"""
RELU = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Relu (x) }'
NEG = '<ir_version: 10, opset_import: ["" : 21]> h (float[N] x) => (float[N] y) { y = Neg (x) }'


def merged(a, b, *arguments, **options):
    """Merge two models given as text, and check the result and that the models are as they were."""
    models = [sabir.parse(text) if isinstance(text, str) else text for text in (a, b)]
    before = [sabir.text(model) for model in models]
    found = merge_and_report(*models, *arguments, **options)
    assert [sabir.text(model) for model in models] == before
    verify(found.model)
    sabir.check(found.model)
    assert sabir.text(sabir.loads(sabir.dumps(found.model))) == sabir.text(found.model)
    return found


def ports(model):
    return [v.name for v in model.graph.inputs], [v.name for v in model.graph.outputs]


def test_the_older_model_is_converted_and_clashing_names_become_unique():
    found = merged(OLD, NEW, {"y": "x"})
    assert (found.model.ir_version, found.model.opsets) == (10, {"": 21})
    assert found.converted == ({"": 21}, {})
    assert ports(found.model) == (["x", "mask", "mask_1"], ["z", "y", "w"])
    assert str(found.model.graph.value("w").type) == "float[N_1]"
    assert {(r.model, r.kind, r.old, r.new) for r in found.renamed} >= {
        (0, "value", "y", "y_1"),
        (1, "value", "mask", "mask_1"),
        (1, "dimension", "N", "N_1"),
    }
    x, mask = np.float32([[1, -2, 3]]), np.float32([4])
    first = sabir.evaluate(sabir.parse(OLD), {"x": x, "mask": mask})
    second = sabir.evaluate(sabir.parse(NEW), {"x": first["y"], "mask": -mask})
    got = sabir.evaluate(found.model, {"x": x, "mask": mask, "mask_1": -mask})
    np.testing.assert_array_equal(got["y"], second["y"])
    np.testing.assert_array_equal(got["z"], first["z"])
    np.testing.assert_array_equal(got["w"], second["w"])


def test_equal_names_are_connected_by_default():
    first = RELU.replace("y", "hidden")
    found = merged(first, NEG.replace("x", "hidden"))
    assert found.connected == (("hidden", "hidden"),)
    assert ports(found.model) == (["x"], ["y"])
    with pytest.raises(
        sabir.SchemaError, match="no output of the first model .'y'. has the name of an input"
    ):
        sabir.merge(sabir.parse(RELU), sabir.parse(NEG))


def test_models_side_by_side_and_an_output_for_several_inputs():
    assert ports(merged(RELU, NEG, {}).model) == (["x", "x_1"], ["y", "y_1"])
    both = NEG.replace("float[N] x)", "float[N] x, float[N] u)").replace("Neg (x)", "Add (x, u)")
    found = merged(RELU, both, {"y": ["x", "u"]})
    assert ports(found.model) == (["x"], ["y"])
    assert sabir.evaluate(found.model, {"x": np.float32([3])})["y"].tolist() == [6]


def test_outputs_are_kept_on_request():
    found = merged(RELU, NEG, {"y": "x"}, keep_outputs=["y"])
    assert ports(found.model) == (["x"], ["y", "y_1"])
    assert sabir.evaluate(found.model, {"x": np.float32([3])})["y"].tolist() == [3]


def test_every_name_gets_a_prefix():
    found = merged(OLD, NEW, {"y": "x"}, ("a_", "b_"))
    assert ports(found.model) == (["a_x", "a_mask", "b_mask"], ["a_z", "b_y", "b_w"])
    assert ports(merged(RELU, NEG, {"y": "x"}, (None, "b_")).model) == (["x"], ["b_y"])


def test_dimensions_of_connected_ports_become_equal():
    made = RELU.replace("[N]", "[N,C]")
    for taken, inputs in (("[5,3]", "float[5,3]"), ("[B,B]", "float[N,N]"), ("[?,3]", "float[N,3]")):
        found = merged(made, NEG.replace("[N]", taken), {"y": "x"})
        assert str(found.model.graph.inputs[0].type) == inputs
        assert str(found.model.graph[0].output.type) == inputs


@pytest.mark.parametrize(
    ("made", "taken", "message"),
    [
        ("float[2,3]", "float[2,4]", "axis 1 of the output float.2,3. .* contradict each other: 3 and 4"),
        ("float[N,N]", "float[2,4]", "contradict each other: 2 and 4"),
        ("float[2*N,3]", "float[2*N+1,3]", "contradict each other: 2.N and 2.N_1.1"),
        ("float[2]", "float[2,4]", "different ranks"),
        ("float[2]", "double[2]", "the output is float.2., and the input takes double.2."),
        ("seq(float[2])", "float[2]", "the output is seq"),
    ],
)
def test_types_that_contradict_each_other_are_refused(made, taken, message):
    a = RELU.replace("float[N]", made).replace("Relu", "Identity")
    b = NEG.replace("float[N]", taken).replace("Neg", "Identity")
    with pytest.raises(sabir.SchemaError, match=message):
        sabir.merge(sabir.parse(a), sabir.parse(b), {"y": "x"})


@pytest.mark.parametrize(
    ("connect", "options", "error", "message"),
    [
        ({"yy": "x"}, {}, NotFoundError, "the first model has no output 'yy'; is it 'y'?"),
        ({"y": "q"}, {}, NotFoundError, "the second model has no input 'q'; it has 'x'"),
        ({"y": ["x", "x"]}, {}, sabir.SchemaError, "'x' of the second model is connected twice"),
        ({"y": "x"}, {"keep_outputs": "z"}, NotFoundError, "no connected output of the first model"),
    ],
)
def test_ports_that_are_not_there(connect, options, error, message):
    with pytest.raises(error, match=message.replace("?", r"\?")):
        sabir.merge(sabir.parse(RELU), sabir.parse(NEG), connect, **options)


def test_an_output_that_is_a_connected_input_is_a_copy():
    through = (
        '<ir_version: 10, opset_import: ["" : 21]> h (float[N] x) => (float[N] x, float[N] y) { y = Neg (x) }'
    )
    found = merged(RELU, through, {"y": "x"})
    got = sabir.evaluate(found.model, {"x": np.float32([3])})
    assert ports(found.model) == (["x"], ["x_1", "y"])
    assert (got["x_1"].tolist(), got["y"].tolist()) == ([3], [-3])


def function_model(operator, call="local.F"):
    return f"""<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[N] x) => (float[N] y) {{ y = {call} (x) }}
<domain: "local", opset_import: ["" : 21]> F (a) => (b) {{ b = {operator} (a) }}"""


def test_functions_of_both_models_stay():
    same = merged(function_model("Relu"), function_model("Relu"), {"y": "x"})
    assert [f.name for f in same.model.functions] == ["F"]
    other = merged(function_model("Relu"), function_model("Neg"), {"y": "x"})
    assert [f.name for f in other.model.functions] == ["F", "F_1"]
    assert [node.op for node in other.model.graph] == ["F", "F_1"]
    assert sabir.evaluate(other.model, {"x": np.float32([-1, 2])})["y"].tolist() == [0, -2]
    prefixed = merged(function_model("Relu"), function_model("Neg"), {"y": "x"}, ("", "b_"))
    assert [f.name for f in prefixed.model.functions] == ["F", "b_F"]


def test_subgraphs_read_what_they_read():
    branch = """<ir_version: 10, opset_import: ["" : 21]>
h (float[N] x, bool c) => (float[N] y) {
    t = Neg (x)
    y = If (c) < then_branch = p () => (float[N] q) { u = Abs (t)  q = Relu (u) },
                 else_branch = e () => (float[N] q) { q = Neg (x) } >
}"""
    first = RELU.replace("y = Relu (x)", "u = Neg (x)  t = Neg (u)  q = Abs (t)  y = Relu (q)")
    found = merged(first, branch, {"y": "x"})
    for condition, expected in ((True, [2]), (False, [-2])):
        assert sabir.evaluate(found.model, {"x": np.float32([-2]), "c": condition})["y"].tolist() == expected


def test_texts_of_both_models_are_joined():
    a, b = sabir.parse(RELU), sabir.parse(NEG)
    a.metadata, b.metadata = {"k": "1", "same": "s"}, {"k": "2", "same": "s", "more": "m"}
    a.doc, b.doc, b.domain, a.version, b.version = "First.", "Second.", "org.acme", 3, 4
    model = merged(a, b, {"y": "x"}).model
    assert model.metadata == {"k": "1", "same": "s", "k_1": "2", "more": "m"}
    assert (model.doc, model.domain, model.version, model.graph.name) == (
        "First.\n\nSecond.",
        "org.acme",
        0,
        "g_h",
    )


def test_annotations_and_device_layouts_refer_to_the_connected_value():
    a, b = sabir.parse(RELU.replace("10", "11")), sabir.parse(NEG.replace("10", "11"))
    (taken,) = b.graph.inputs
    scale = b.graph.add_initializer("scale", np.float32(2))
    b.graph.annotations = (Annotation(taken, (("SCALE_TENSOR", scale),)),)
    a.devices, b.devices = [DeviceConfiguration("d", 2)], [DeviceConfiguration("d", 4)]
    b.graph[0].devices = (NodeDevice("d", (Sharding(taken, "x"),)),)
    model = merge_and_report(a, b, {"y": "x"}).model
    verify(model)
    made = model.graph[0].output
    assert model.graph.annotations[0].value is made
    assert [device.name for device in model.devices] == ["d", "d_1"]
    (device,) = model.graph[1].devices
    assert (device.configuration, device.shardings[0].value, device.shardings[0].name) == (
        "d_1",
        made,
        made.name,
    )


LINEAR = """<ir_version: 10, opset_import: ["" : 21]>
h (float[N,2] x) => (float[N] y) <float[2] w = {1.0, -2.0}> { y = MatMul (x, w) }"""
SQUARES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x) => (float[N,2] y) { w = Mul (x, x)  y = Neg (w) }"""


def test_training_information_of_both_models_stays():
    trained = sabir.training.prepare(sabir.parse(LINEAR), "mse", optimizer=sabir.training.SGD(0.1))
    found = merge_and_report(sabir.parse(SQUARES), trained, {"y": "x"})
    verify(found.model)
    sabir.check(found.model)
    assert (1, "value", "w", "w") not in found.renamed
    x, target = np.float32([[1, 2], [3, 4]]), np.float32([1, -1])
    alone, joined = sabir.TrainingSession(trained), sabir.TrainingSession(found.model)
    expected = alone.step({"x": -x * x, "label": target}, 0)["loss"]
    np.testing.assert_allclose(joined.step({"x": x, "label": target}, 0)["loss"], expected)
    np.testing.assert_allclose(
        [joined.state[new] for new in joined.state if new.startswith("w")],
        [alone.state[old] for old in alone.state if old.startswith("w")],
    )


def test_state_of_training_cannot_be_connected():
    model = sabir.parse(NEG)
    (value,) = model.graph.inputs
    model.training = [sabir.ir.TrainingInfo(update_binding=[(value, value)])]
    with pytest.raises(sabir.SchemaError, match="'x' of the second model is state"):
        sabir.merge(sabir.parse(RELU), model, {"y": "x"})


def test_external_data_of_two_folders(tmp_path):
    paths = []
    for name, factor in (("first", 2), ("second", 3)):
        b = sabir.Builder(21)
        w = b.initializer("w", np.full(300, factor, np.float32))
        b.output(b.Mul(b.input("x", "float", [300]), w), "y")
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "m.onnx")
        sabir.save(b.model(), paths[-1], external="w.data")
    a, b = map(sabir.load, paths)
    assert isinstance(a.graph.initializers["w"], ExternalTensor)
    model = merge_and_report(a, b, {"y": "x"}).model
    assert model.graph.initializers["w"] is a.graph.initializers["w"]
    sabir.save(model, tmp_path / "both.onnx", external="both.data")
    got = sabir.evaluate(sabir.load(tmp_path / "both.onnx"), {"x": np.ones(300, np.float32)})["y"]
    assert set(got.tolist()) == {6.0}
    sabir.save(model, tmp_path / "first" / "both.onnx")
    again = sabir.load(tmp_path / "first" / "both.onnx", verify=True)
    assert set(sabir.evaluate(again, {"x": np.ones(300, np.float32)})["y"].tolist()) == {6.0}


def test_domains_without_known_operators():
    text = '<ir_version: 10, opset_import: ["" : 21, "org.acme" : 1]> g (float[N] x) => (float[N] y) { y = org.acme.F (x) }'
    newer = sabir.parse(text.replace('"org.acme" : 1', '"org.acme" : 2'))
    with pytest.raises(sabir.ConversionError, match="one model imports org.acme 1, the other org.acme 2"):
        sabir.merge(sabir.parse(text), newer, {"y": "x"})
