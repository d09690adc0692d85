"""Conversion of models: what is kept, what is refused, and how the result reads."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.conversion import convert_and_report
from sabir.ir import verify


def test_a_changed_call_is_rewritten_and_its_constant_named():
    model = sabir.parse("""<ir_version: 7, opset_import: ["" : 12]>
    g (float[N,4] x) => (float[N] y, float[N,4,1] z) {
        [a] y = ReduceSum <axes = [1], keepdims = 0> (x)
        z = Unsqueeze <axes = [2]> (x)
    }""")

    got = sabir.convert(model, opset=13)

    assert sabir.text(got) == sabir.text(
        sabir.parse("""<ir_version: 7, opset_import: ["" : 13]>
        g (float[N,4] x) => (float[N] y, float[N,4,1] z)
          <int64[1] axes = {1}, int64[1] axes_1 = {2}> {
            [a] y = ReduceSum <keepdims = 0> (x, axes)
            z = Unsqueeze (x, axes_1)
        }""")
    )


def test_a_round_trip_leaves_nothing_behind():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 13]>
    g (float[N,4] x) => (float[N] y) <int64[1] axes = {1}> { y = ReduceSum <keepdims = 0> (x, axes) }""")
    there = sabir.convert(model, opset=11)
    assert not there.graph.initializers
    assert sabir.text(sabir.convert(there, opset=13)) == sabir.text(model)


def test_equal_constants_are_one():
    model = sabir.parse("""<ir_version: 7, opset_import: ["" : 12]>
    g (float[N,1] x) => (float[N] y, float[N] z) {
        y = Squeeze <axes = [1]> (x)
        z = Squeeze <axes = [1]> (x)
    }""")
    assert [v.name for v in sabir.convert(model, opset=13).graph.initializers] == ["axes"]


def test_names_texts_and_annotations_are_kept():
    model = sabir.parse("""<ir_version: 11, opset_import: ["" : 17]>
    g (float[N,4] x) => (float[N] y) { [mean] y = ReduceMean <axes = [1], keepdims = 0> (x) }""")
    node = model.graph[0]
    node.doc, node.metadata = "the mean", {"org.acme.source": "line 3"}
    model.metadata, model.doc = {"model_author": "A"}, "a model"
    model.graph.outputs[0].metadata = {"org.acme.kind": "score"}

    got = sabir.convert(model, opset=18)

    (new,) = got.graph
    assert (new.name, new.doc, new.metadata) == ("mean", "the mean", {"org.acme.source": "line 3"})
    assert (got.metadata, got.doc) == ({"model_author": "A"}, "a model")
    assert got.graph.outputs[0].metadata == {"org.acme.kind": "score"}


def test_the_model_is_not_changed():
    model = sabir.parse("""<ir_version: 7, opset_import: ["" : 12]>
    g (float[N,1] x) => (float[N] y) { y = Squeeze <axes = [1]> (x) }""")
    before = sabir.text(model)
    got = sabir.convert(model, opset=13)
    verify(got)
    assert sabir.text(model) == before


def test_every_node_that_cannot_be_expressed_is_named_with_its_place():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 20]>
    g (bool c, string[N] x) => (bool[N] y) {
        [match] m = RegexFullMatch <pattern = "a"> (x)
        y = If (c) <
            then_branch = t () => (a) { [inner] a = RegexFullMatch <pattern = "b"> (x) },
            else_branch = e () => (b) { b = Identity (m) }
        >
    }""")
    with pytest.raises(sabir.ConversionError) as info:
        sabir.convert(model, opset=19)
    assert [str(r.where) for r in info.value.refusals] == [
        "graph/node[0] 'match'",
        "graph/node[1] 'If'/attribute 'then_branch'/node[0] 'inner'",
    ]
    assert {r.operator for r in info.value.refusals} == {"RegexFullMatch:20"}
    assert str(info.value).startswith("2 nodes have no equivalent in opset 19 of ai.onnx:")


def test_an_operator_that_the_target_lacks_is_written_out_in_its_version():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,3] y) { [act] y = Gelu (x) }""")
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    for opset in (19, 12, 9):
        got = sabir.convert(model, opset=opset)
        sabir.check(got)
        assert "Gelu" not in {n.op for n in got.graph}
        assert sum(n.name == "act" for n in got.graph) == 1
        np.testing.assert_allclose(
            sabir.evaluate(got, {"x": x})["y"], sabir.evaluate(model, {"x": x})["y"], rtol=1e-6
        )


def test_constants_that_older_nodes_cannot_compute_become_initializers():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 9]>
    g (float[2,3] x) => (float[3,2] y) {
        to = Constant <value = int64[2] {3, 2}> ()
        y = Reshape (x, to)
    }""")
    got = sabir.convert(model, opset=8)
    assert [n.op for n in got.graph] == ["Reshape"]
    assert [v.name for v in got.graph.initializers] == ["to"]


def test_a_deprecated_version_is_no_target():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[1,4,3] x, float[4] s, float[4] b) => (float[1,4,3] y) {
        y = GroupNormalization <num_groups = 2> (x, s, b)
    }""")
    got = sabir.convert(model, opset=20)
    assert "GroupNormalization" not in {n.op for n in got.graph}
    sabir.check(got)


def test_types_that_the_older_version_does_not_admit_are_named_or_bridged():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 22]>
    g (bfloat16[4] x) => (bfloat16[4] y) { y = Sin (x) }""")
    with pytest.raises(sabir.ConversionError, match=r"Sin:7 does not admit tensor\(bfloat16\) for 'input'"):
        sabir.convert(model, opset=21)

    got = sabir.convert(model, opset=13, cast=True)

    assert [n.op for n in got.graph] == ["Cast", "Sin", "Cast"]
    x = np.float32([0, 0.5, 1, 2]).astype(ml_dtypes.bfloat16)
    assert sabir.evaluate(got, {"x": x})["y"].tolist() == sabir.evaluate(model, {"x": x})["y"].tolist()
    with pytest.raises(sabir.ConversionError, match="bfloat16"):  # no Cast of opset 12 knows the type
        sabir.convert(model, opset=12, cast=True)


def test_functions_are_converted_with_their_own_imports():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 18, "d" : 1]>
    g (float[2,3] x) => (float[2] y) { y = d.total (x) }
    <domain: "d", opset_import: ["" : 12]>
    total (a) => (b) { b = ReduceSum <axes = [1], keepdims = 0> (a) }""")
    got = sabir.convert(model, opset=21)
    assert (got.opsets, got.functions[0].opsets) == ({"": 21, "d": 1}, {"": 21})
    sabir.check(got)
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    assert sabir.evaluate(got, {"x": x})["y"].tolist() == [6, 15]


def test_a_function_whose_body_depends_on_the_call_is_converted_for_each_call():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 18, "d" : 1]>
    g (float[2,3] x, float[3] z) => (float[2,3] y, float[3] w) {
        y = d.norm <axis = 0> (x)
        w = d.norm <axis = 0> (z)
    }
    <domain: "d", opset_import: ["" : 18]>
    norm <axis> (a) => (b) { b = Softmax <axis: int = @axis> (a) }""")
    x, z = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([0, 1, 2])
    expected = sabir.evaluate(model, {"x": x, "z": z})

    report = convert_and_report(model, opset=12)

    assert report.inlined == ("d.norm",)
    assert not report.model.functions
    got = sabir.evaluate(report.model, {"x": x, "z": z})
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-6)


def test_training_graphs_are_converted():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 12]>
    g (float[2,2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul (x, w) }""")
    step = sabir.syntax.parse_graph(
        "step (float[2,2] d) => (float[2] u) { u = ReduceSum <axes = [0], keepdims = 0> (d) }"
    )
    w = next(iter(model.graph.initializers))
    model.training.append(sabir.ir.TrainingInfo(algorithm=step, update_binding=[(w, step.outputs[0])]))
    (training,) = sabir.convert(model, opset=13).training
    assert [v.name for v in training.algorithm.initializers] == ["axes"]
    assert training.update_binding[0][1] is training.algorithm.outputs[0]


def test_the_ir_version_rises_with_the_content_and_falls_on_request():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,4] x) => (float[N,4] y) { y = Relu (x) }""")
    assert sabir.convert(model, opset=21).ir_version == 10
    assert sabir.convert(model, opset=13).ir_version == 8
    assert sabir.convert(model, opset=13, ir_version=7).ir_version == 7
    with pytest.raises(sabir.ConversionError, match=r"needs IR version 7 or newer, not 6, for opset 13"):
        sabir.convert(model, opset=13, ir_version=6)
    with pytest.raises(sabir.UnsupportedError, match="newest known one is 14"):
        sabir.convert(model, ir_version=15)


def test_ir_3_lists_every_initializer_as_an_input():
    model = sabir.parse("""<ir_version: 4, opset_import: ["" : 9]>
    g (float[2,3] x) => (float[3,2] y) <int64[2] shape = {3, 2}> { y = Reshape (x, shape) }""")
    got = sabir.convert(model, opset=8, ir_version=3)
    assert [v.name for v in got.graph.inputs] == ["x", "shape"]
    assert str(got.graph.inputs[1].type) == "int64[2]"
    sabir.check(got)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"opset": 29},
            sabir.UnsupportedError,
            "opset 29 of 'ai.onnx' is not known; the newest known one is 28",
        ),
        ({"opset": 0}, sabir.ConversionError, "opset 0 of ai.onnx does not exist; the first version is 1"),
        ({"opsets": {"org.acme": 2}}, sabir.ConversionError, "no operators of domain 'org.acme' are known"),
        ({"opset": 12, "opsets": {"ai.onnx": 13}}, sabir.ConversionError, "12 and 13"),
    ],
)
def test_versions_that_do_not_exist(arguments, error, message):
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[N] y) { y = Relu (x) }""")
    with pytest.raises(error, match=message):
        sabir.convert(model, **arguments)


def test_operators_of_unknown_domains_stay():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 12, "com.microsoft" : 1]>
    g (float[N,1] x) => (float[N] y) { t = com.microsoft.Gelu (x)  y = Squeeze <axes = [1]> (t) }""")
    got = sabir.convert(model, opset=13)
    assert [n.op for n in got.graph] == ["Gelu", "Squeeze"]
    assert got.opsets == {"": 13, "com.microsoft": 1}


def test_an_unknown_operator_of_a_known_domain_is_refused():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 12]>
    g (float[N] x) => (float[N] y) { y = Reluu (x) }""")
    with pytest.raises(sabir.ConversionError, match=r"ai.onnx.Reluu: it is no operator that Sabir knows"):
        sabir.convert(model, opset=13)


def test_value_info_only_where_the_graph_has_some():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y) {} {{ t = Abs (x)  y = Mish (t) }}"""
    bare = sabir.convert(sabir.parse(text.format("").replace("17", "18")), opset=17)
    described = sabir.convert(sabir.parse(text.format("<float[2,3] t>").replace("17", "18")), opset=17)
    assert all(n.output.type is None for n in list(bare.graph)[:-1])
    assert all(n.output.type is not None for n in described.graph)


def test_external_data_is_neither_read_nor_copied(tmp_path):
    b = sabir.Builder(17)
    weights = b.initializer("w", np.ones((64, 64), np.float32))
    b.output(b.ReduceMean(b.MatMul(b.input("x", "float", [2, 64]), weights), axes=[1]), "y")
    sabir.save(b.model(), tmp_path / "m.onnx", external="w.data")
    model = sabir.load(tmp_path / "m.onnx")
    (tmp_path / "w.data").unlink()

    got = sabir.convert(model, opset=18)

    assert got.graph.value("w").constant is model.graph.value("w").constant


def test_ml_operators():
    model = sabir.parse("""<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 2]>
    g (string[N] x) => (int64[N] y) {
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1, 2]> (x)
    }""")
    got = sabir.convert(model, opset=21, opsets={"ai.onnx.ml": 4})
    assert got.opsets == {"": 21, "ai.onnx.ml": 4}
    assert sabir.evaluate(got, {"x": np.array(["b", "a"], object)})["y"].tolist() == [2, 1]


def test_what_states_no_more_than_the_default_does_not_stand_in_the_way():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 12]>
    g (float[1,1,4,4] x) => (float[1,1,3,3] y) {
        y = MaxPool <kernel_shape = [2, 2], dilations = [1, 1], ceil_mode = 0, strides = [1, 1]> (x)
    }""")
    (node,) = sabir.convert(model, opset=7).graph
    assert list(node.attributes) == ["kernel_shape", "strides"]
    model.graph[0].attributes["dilations"] = [2, 2]
    with pytest.raises(sabir.ConversionError, match="MaxPool:8 has no attribute 'dilations'"):
        sabir.convert(model, opset=7)


def test_integers_where_an_older_version_has_only_floats():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 13]>
    g (int64[N] a, int64[N] b, int64[1] c) => (int64[N] y, int64[N] z) { y = Max (a, b, c)  z = Min (a, b) }""")
    got = sabir.convert(model, opset=11)
    assert {n.op for n in got.graph} == {"Greater", "Less", "Where"}
    feeds = {"a": np.int64([1, -5, 9]), "b": np.int64([2, -6, 9]), "c": np.int64([0])}
    assert {k: v.tolist() for k, v in sabir.evaluate(got, feeds).items()} == {"y": [2, 0, 9], "z": [1, -6, 9]}


@pytest.mark.parametrize("call", [sabir.convert, sabir.infer, sabir.inline, sabir.requirements])
def test_a_path_is_no_model(call):
    with pytest.raises(TypeError, match="a sabir.Model is expected, not a str; sabir.load reads one"):
        call("model.onnx")


@pytest.mark.parametrize("version", ["13", 13.0, True])
def test_a_version_is_an_int(version):
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[N] y) { y = Relu (x) }""")
    with pytest.raises(TypeError, match="the version of ai.onnx must be an int, such as 21, and is"):
        sabir.convert(model, opset=version)


CONSTANT_OF_A_BODY = """<ir_version: 3, opset_import: ["" : 8]>
g (int64 n, bool c, float[2] x) => (float[2] y) { y = Loop (n, c, x) <body = b (int64 i, bool k, float[2] s,
float[2] w = {1, 2}) => (bool k2, float[2] s2) { k2 = Identity(k)  s2 = Add(s, w) }> }"""


@pytest.mark.parametrize("target", [{"ir_version": 4}, {"opset": 13}])
def test_a_constant_of_a_body_is_no_input_from_ir_4_on(target):
    model = sabir.parse(CONSTANT_OF_A_BODY)
    got = sabir.convert(model, **target)
    (body,) = got.graph[0].graphs
    assert [v.name for v in body.inputs] == ["i", "k", "s"]
    assert [v.name for v in body.initializers] == ["w"]
    again = sabir.loads(sabir.dumps(got))
    verify(again)
    assert "GRAPH013" not in {f.rule for f in sabir.findings(again)}
    feeds = {"n": np.int64(3), "c": np.bool_(1), "x": np.float32([1, 1])}
    assert sabir.evaluate(again, feeds)["y"].tolist() == sabir.evaluate(model, feeds)["y"].tolist() == [4, 7]


def test_a_constant_of_a_body_stays_an_input_below_ir_4():
    (body,) = sabir.convert(sabir.parse(CONSTANT_OF_A_BODY), ir_version=3).graph[0].graphs
    assert [v.name for v in body.inputs] == ["i", "k", "s", "w"]
