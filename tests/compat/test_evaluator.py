"""The evaluator: values, custom operators, what it prints, and its errors."""

import numpy as np
import pytest

from sabir.compat import onnx as compat
from sabir.compat.onnx import helper, parser
from sabir.compat.onnx.backend import base
from sabir.compat.onnx.reference import ReferenceEvaluator
from sabir.compat.onnx.reference.op_run import OpRun, OpRunExpand
from sabir.compat.onnx.reference.ops import _op_list, load_op
from sabir.compat.onnx.reference.shape_annotation_checker import ShapeAnnotationError

X = np.float32([-1, 2])
MODEL = '<ir_version: 10, opset_import: ["" : 21, "acme" : 1]> g (float[N] x) => (float[N] y) { t = Neg (x) y = OP (t) }'


def model(op="Relu"):
    return parser.parse_model(MODEL.replace("OP", op))


def test_every_kind_of_message_runs(tmp_path):
    whole = model()
    compat.save(whole, tmp_path / "m.onnx")
    function = helper.make_function("d", "f", ["x"], ["y"], whole.graph.node, whole.opset_import)
    for given in (whole, whole.SerializeToString(), tmp_path / "m.onnx", whole.graph, function):
        evaluator = ReferenceEvaluator(given)
        assert (evaluator.input_names, evaluator.output_names) == (["x"], ["y"])
        np.testing.assert_array_equal(evaluator.run(None, {"x": X})[0], [1, 0])
    np.testing.assert_array_equal(ReferenceEvaluator(whole.graph.node[0]).run(None, {"x": X})[0], -X)
    with pytest.raises(TypeError, match="this is of type ValueInfoProto"):
        ReferenceEvaluator(whole.graph.input[0])


def test_other_types_and_shapes_than_declared_run():
    got = ReferenceEvaluator(model()).run(["y"], {"x": np.float64([[-1.0], [2.0]])})[0]
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, [[1], [0]])


def test_all_values_are_returned_and_printed(capsys):
    values = ReferenceEvaluator(model(), verbose=4).run(None, {"x": X}, intermediate=True)
    assert list(values) == ["x", "t", "y"]
    assert capsys.readouterr().out.splitlines() == [
        " +I x: float32:(2,):[-1.0, 2.0]", "Neg(x) -> t", " + t: float32:(2,):[1.0, -2.0]",
        "Relu(t) -> y", " + y: float32:(2,):[1.0, 0.0]",
    ]  # fmt: skip


class Plus(OpRun):
    """Adds a number."""

    op_domain = "acme"

    def _run(self, x, n=None):
        return (x + (n or self.n),)


def test_a_custom_operator():
    custom = model("acme.Plus <n = 3>")
    with pytest.raises(NotImplementedError, match=r"acme\.Plus"):
        ReferenceEvaluator(custom)
    np.testing.assert_array_equal(ReferenceEvaluator(custom, new_ops=[Plus]).run(None, {"x": X})[0], [4, 1])


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (X, TypeError, "returned an object of type ndarray; return a tuple"),
        ((), ValueError, "returned an empty tuple"),
        (((X,),), TypeError, "output 0 of `_run` of Plus has the type tuple"),
        ((object(),), TypeError, "output 0 of `_run` of Plus has the type object"),
    ],
)
def test_a_custom_operator_returns_a_tuple_of_values(result, error, message):
    class Plus(OpRun):
        op_domain = "acme"

        def _run(self, *inputs, **attributes):
            assert inputs
            assert not attributes
            return result

    with pytest.raises(error, match=message):
        ReferenceEvaluator(model("acme.Plus <n = 3>"), new_ops=[Plus]).run(None, {"x": X})


def test_an_operator_is_replaced_by_its_body():
    class Softplus(OpRunExpand):
        op_domain = ""

    expected = ReferenceEvaluator(model("Softplus")).run(None, {"x": X})[0]
    got = ReferenceEvaluator(model("Softplus"), new_ops=[Softplus]).run(None, {"x": X})[0]
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    with pytest.raises(TypeError, match="not a subclass of OpRun; derive it"):
        ReferenceEvaluator(model(), new_ops=[type("Other", (), {"op_domain": ""})])


def test_operators_are_classes():
    elu = load_op("", "Elu")
    np.testing.assert_allclose(elu.eval(X, alpha=2.0), [2 * np.expm1(-1), 2], rtol=1e-6)
    assert elu.create(alpha=2).alpha == 2
    assert _op_list.Clip_6.create().min == np.float32(-3.4028235e38)
    with pytest.raises(
        NotImplementedError, match="operator 'Eluu' of the domain '' has no implementation; is it 'Elu'"
    ):
        load_op("", "Eluu")
    with pytest.raises(AttributeError, match="no operator 'Eluu'"):
        _ = _op_list.Eluu
    nodes = ReferenceEvaluator(model()).rt_nodes_
    assert [node.op_type for node in nodes] == ["Neg", "Relu"]
    np.testing.assert_array_equal(nodes[0].run(X)[0], -X)


def test_inputs_may_be_absent():
    clip = load_op("", "Clip")
    np.testing.assert_array_equal(clip.eval(X, None, np.float32(1)), [-1, 1])
    np.testing.assert_array_equal(clip.eval(X, np.float32(0), None), [0, 2])


def test_an_operator_of_the_standard_is_extended():
    class Relu(load_op("", "Relu")):
        def _run(self, x, **attributes):
            (y,) = super()._run(x, **attributes)
            return (y + 1,)

    np.testing.assert_array_equal(ReferenceEvaluator(model(), new_ops=[Relu]).run(None, {"x": X})[0], [2, 1])


class Fill(OpRun):
    """Returns the tensor of an attribute."""

    op_domain = "acme"

    def _run(self, x):
        return (self.value.reshape(x.shape),)


def test_a_custom_operator_reads_tensors_and_no_graphs():
    got = ReferenceEvaluator(model("acme.Fill <value = float[2] {5, 6}>"), new_ops=[Fill]).run(
        None, {"x": X}
    )[0]
    np.testing.assert_array_equal(got, [5, 6])
    graph = "acme.Fill <body = b () => (z) { z = Relu (x) }>"
    with pytest.raises(NotImplementedError, match="the class of Fill cannot have a graph as an attribute"):
        ReferenceEvaluator(model(graph), new_ops=[Fill])


def test_nodes_of_graph_attributes_have_classes():
    branch = "If (c) <then_branch = a () => (z) { z = Neg (t) }, else_branch = b () => (z) { z = Abs (t) }>"
    source = MODEL.replace("y = OP (t)", f"c = Constant <value = bool {{1}}> () y = {branch}")
    evaluator = ReferenceEvaluator(parser.parse_model(source))
    np.testing.assert_array_equal(evaluator.run(None, {"x": X})[0], X)
    assert [node.op_type for node in evaluator.rt_nodes_[-1].then_branch.rt_nodes_] == ["Neg"]


def test_shapes_are_compared_on_request():
    evaluator = ReferenceEvaluator(
        parser.parse_model(MODEL.replace("OP", "Relu").replace("float[N] y", "float[3] y"))
    )
    assert len(evaluator.run(None, {"x": X})[0]) == 2
    with pytest.raises(ShapeAnnotationError, match="the size is 2, and the declared dimension value is 3"):
        evaluator.run(None, {"x": X}, check_shape_annotations=True)


def test_the_classes_of_a_backend():
    assert base.Device("CUDA:2").device_id == 2
    pair = base.namedtupledict("Pair", ["a", "b"])(1, 2)
    assert (pair["b"], pair[0]) == (2, 1)
    assert base.Backend.prepare(model()) is None
    assert base.Backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [X]) is None
    with pytest.raises(compat.checker.ValidationError, match="is it 'Relu'"):
        base.Backend.run_node(helper.make_node("Reluu", ["x"], ["y"]), [X])
    with pytest.raises(RuntimeError, match="prepare returned no model"):
        base.Backend.run_model(model(), [X])
