# ruff: file-ignore[banned-api]  its messages cross
"""Model objects to and from protobuf messages, of Sabir's classes and of those of `onnx`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings

import sabir
from sabir import proto
from sabir.elements import FLOAT
from sabir.ir import ArrayTensor, Attribute, ExternalTensor, SequenceType, SparseTensor, TensorType
from sabir.syntax import parse_function, parse_graph, parse_node
from support.messages import models, wire_of

FLOATS = TensorType(FLOAT, (2,))
LIGHT = sorted(Path(onnx.__file__).parent.glob("backend/test/data/**/*.onnx"))[::10]


def model_of(size: int = 3) -> sabir.Model:
    b = sabir.Builder(21)
    b.output(b.Add(b.input("x", "float", [size]), b.initializer("w", np.arange(size, dtype=np.float32))), "y")
    return b.model()


def require_crossing(data):
    """Let a model cross both ways, and compare it with the file."""
    model = sabir.loads(data, format="protobuf")
    ours, foreign = sabir.to_proto(model), sabir.to_proto(model, onnx.ModelProto)
    assert type(ours) is proto.ModelProto
    assert type(foreign) is onnx.ModelProto
    for message in (ours, foreign):
        assert wire_of(proto.ModelProto.FromString(message.SerializeToString())) == wire_of(
            proto.ModelProto.FromString(data)
        )
        assert sabir.dumps(sabir.from_proto(message)) == sabir.dumps(model)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(models(unknown=True))
def test_any_model_crosses_unchanged(message):
    require_crossing(message.SerializeToString())


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.parent.name)
def test_the_models_of_the_onnx_package_cross_unchanged(path):
    require_crossing(path.read_bytes())


def items():
    w = ArrayTensor(np.float32([1, 2]))
    return {
        "GraphProto": parse_graph("g (float[2] x) => (y) <float[2] w = {1, 2}> { y = Add (x, w) }"),
        "FunctionProto": parse_function('<domain: "d", opset_import: ["" : 21]> f <a> (x) => (y) { y = Relu (x) }'),
        "NodeProto": parse_node("y = If <then_branch = g () => (z) { z = Relu (outer) }> (c)"),
        "AttributeProto": Attribute("value", "tensor", w),
        "TensorProto": w,
        "SparseTensorProto": SparseTensor(w, ArrayTensor(np.int64([0, 5])), (9,)),
        "TypeProto": SequenceType(FLOATS),
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(items()))
def test_the_parts_of_a_model_cross(name):
    item = items()[name]
    ours, foreign = sabir.to_proto(item), sabir.to_proto(item, getattr(onnx, name))
    assert type(ours) is getattr(proto, name)
    assert type(foreign) is getattr(onnx, name)
    assert ours.SerializeToString() == foreign.SerializeToString()
    for message in (ours, foreign):
        assert sabir.to_proto(sabir.from_proto(message)) == ours


def test_what_a_part_becomes():
    graph = sabir.from_proto(onnx.parser.parse_graph("g (float[2] x) => (float[2] y) { y = d.Relu (x) }"))
    assert str(graph) == "g (float[2] x) => (float[2] y) {\n   y = d.Relu (x)\n}"
    assert sabir.from_proto(onnx.numpy_helper.from_array(np.int64([7]))).array().tolist() == [7]
    assert sabir.from_proto(onnx.helper.make_attribute("axis", 1)) == Attribute("axis", "int", 1)
    assert sabir.from_proto(onnx.helper.make_tensor_type_proto(1, [2])) == FLOATS
    assert sabir.from_proto(onnx.helper.make_node("Relu", ["x"], ["y"])).op == "Relu"
    assert sabir.from_proto(sabir.to_proto(items()["FunctionProto"])).key == ("d", "f", "")


def test_the_types_of_a_function_alone_are_written():
    function = parse_function('<opset_import: ["" : 21]> f (float[2] x) => (y) { y = Relu (x) }')
    assert sabir.to_proto(function).value_info[0].name == "x"


def test_a_message_and_a_model_share_nothing():
    message = sabir.to_proto(model_of(10_000))
    model = sabir.from_proto(message)
    before = sabir.dumps(model)
    message.graph.initializer[0].raw_data = bytes(40_000)
    message.graph.name = "other"
    assert sabir.dumps(model) == before


def test_external_data_is_referred_to_and_found_again(tmp_path):
    sabir.save(model_of(1000), tmp_path / "m.onnx", external="w.bin")
    message = sabir.to_proto(sabir.load(tmp_path / "m.onnx"), onnx.ModelProto)
    assert message.graph.initializer[0].external_data[0].value == "w.bin"
    (tensor,) = sabir.from_proto(message, folder=tmp_path).graph.initializers.values()
    assert isinstance(tensor, ExternalTensor)
    assert tensor.array()[-1] == 999
    (tensor,) = sabir.from_proto(message).graph.initializers.values()
    with pytest.raises(sabir.ExternalDataError, match="pass the `folder` of its data"):
        tensor.array()


def test_another_message_is_refused():
    for message in (onnx.ValueInfoProto(), proto.ValueInfoProto(), onnx.TrainingInfoProto()):
        name = message.DESCRIPTOR.full_name
        with pytest.raises(
            sabir.UnsupportedError,
            match=f"cannot read an {name} alone; it reads ModelProto, OperatorSetProto, Graph",
        ):
            sabir.from_proto(message)
    with pytest.raises(sabir.WireError, match="it has no graph"):
        sabir.from_proto(onnx.ModelProto(producer_name="p"))
    for item in ("model.onnx", b"", onnx.ModelProto):
        with pytest.raises(TypeError, match="from_proto takes a protobuf message, not .*`load` takes a path"):
            sabir.from_proto(item)


def test_another_object_becomes_no_message():
    with pytest.raises(TypeError, match="becomes a message, and this is a dict"):
        sabir.to_proto({})
    with pytest.raises(
        TypeError, match=r"a Model becomes an onnx\.ModelProto, and `kind` is onnx\.GraphProto"
    ):
        sabir.to_proto(model_of(), onnx.GraphProto)
    with pytest.raises(TypeError, match=r"and `kind` is <class 'dict'>"):
        sabir.to_proto(model_of(), dict)


def test_graphs_nested_too_deep_for_a_message_are_refused():
    text = "y = Relu (x)"
    for _ in range(40):
        text = f"y = If <then_branch = g () => (y) {{ {text} }}> (c)"
    with pytest.raises(
        sabir.WireError, match=r"the onnx\.NodeProto cannot be built: graphs or types nested too deep"
    ):
        sabir.to_proto(parse_node(text, limits=sabir.Limits(depth=64)), limits=sabir.Limits(depth=64))


def test_a_model_of_more_than_two_gib_is_no_message(monkeypatch):
    monkeypatch.setattr("sabir.serial._messages._LARGEST_MESSAGE", 100)
    with pytest.raises(
        sabir.WireError, match="has at most 2 GiB, and this one .* keep its data in external files"
    ):
        sabir.to_proto(model_of())


def test_sabir_does_not_import_onnx():
    code = "import sys, sabir; sabir.to_proto, sabir.from_proto; assert 'onnx' not in sys.modules"
    # ruff: ignore[subprocess-without-shell-equals-true]  our own code
    subprocess.run([sys.executable, "-c", code], check=True)
