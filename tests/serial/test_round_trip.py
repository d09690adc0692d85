# ruff: file-ignore[banned-api]  onnx is the oracle
"""Load then save gives the same message, field by field."""

import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import sabir
from sabir.ir import verify

WHEEL = pathlib.Path(onnx.__file__).parent
FILES = sorted(WHEEL.rglob("*.onnx"))


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(WHEEL / "backend")) for p in FILES])
def test_every_model_of_the_wheel(path):
    model = sabir.load(path)
    verify(model)

    assert onnx.ModelProto.FromString(sabir.dumps(model)) == onnx.load(path, load_external_data=False)


def test_there_are_models():
    assert len(FILES) > 100


def value_info(name, shape=("N", 2)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def full_model():
    """A model that uses every message of IR 14."""
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["r"], name="relu", doc_string="why", domain=""),
            helper.make_node("If", ["c"], ["y"], then_branch=branch("r", "t"), else_branch=branch("x", "e")),
            helper.make_node("Custom", ["y", ""], ["z", "", "w"], domain="d", overload="o", **attributes()),
        ],
        "g",
        [value_info("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [value_info("z"), value_info("w", None)],
        [numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "init")],
        doc_string="a graph",
        value_info=[value_info("w2"), value_info("r"), value_info("nowhere"), value_info("init")],
        sparse_initializer=[sparse()],
    )
    graph.quantization_annotation.add(tensor_name="r").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="init"
    )
    for owner in (graph, graph.node[0], graph.input[0], graph.initializer[0]):
        owner.metadata_props.add(key="k", value="v")
    function = helper.make_function(
        "d", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 20)], ["p"],
        [helper.make_attribute("q", 1.5)], "a function", "o", [value_info("b")],
    )  # fmt: skip
    function.metadata_props.add(key="k", value="v")
    ref = function.node[0].attribute.add(name="alpha", ref_attr_name="p", type=onnx.AttributeProto.FLOAT)
    assert ref.name == "alpha"
    model = helper.make_model(
        graph, functions=[function], opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("d", 1)],
        producer_name="p", producer_version="1", domain="dom", model_version=7, doc_string="doc", ir_version=14,
    )  # fmt: skip
    model.metadata_props.add(key="author", value="me")
    training = model.training_info.add()
    training.algorithm.CopyFrom(
        helper.make_graph([helper.make_node("Neg", ["init"], ["new"])], "alg", [], [value_info("new")])
    )
    training.initialization.CopyFrom(
        helper.make_graph([helper.make_node("Abs", ["init"], ["first"])], "ini", [], [value_info("first")])
    )
    training.initialization_binding.add(key="init", value="first")
    training.update_binding.add(key="init", value="new")
    model.configuration.add(name="conf", num_devices=2, device=["a", "b"])
    device = model.graph.node[0].device_configurations.add(configuration_id="conf", pipeline_stage=3)
    spec = device.sharding_spec.add(tensor_name="x", device=[0, 1])
    spec.index_to_device_group_map.add(key=0, value=[1, 2])
    axis = spec.sharded_dim.add(axis=1)
    axis.simple_sharding.add(dim_param="N", num_shards=2)
    axis.simple_sharding.add(dim_value=4, num_shards=2)
    return model


def branch(name, out):
    return helper.make_graph([helper.make_node("Neg", [name], [out])], "branch", [], [value_info(out)])


def sparse():
    values = numpy_helper.from_array(np.array([1.0], np.float32), "sparse")
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([2])), [5])


def attributes():
    tensor = numpy_helper.from_array(np.array([1, 2], np.int8), "named")
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", None])
    return {
        "f": 1.5, "i": -3, "s": b"text", "t": tensor, "g": branch("x", "q"), "floats": [0.5, 2.0], "ints": [1, -1],
        "strings": ["a", "b"], "tensors": [tensor], "graphs": [branch("x", "q1")], "tp": kind,
        "type_protos": [kind, helper.make_sequence_type_proto(kind), helper.make_optional_type_proto(kind),
                        helper.make_map_type_proto(TensorProto.INT64, kind)],
        "sparse_tensor": sparse(), "bytes": b"\xff\x00",
    }  # fmt: skip


def trip(proto):
    return onnx.ModelProto.FromString(sabir.dumps(sabir.loads(proto.SerializeToString())))


def test_every_message():
    proto = full_model()
    assert trip(proto) == proto


def each_message(message):
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if field.is_repeated else [value]:
                yield from each_message(one)


def test_unknown_fields_survive_in_every_message():
    proto = full_model()
    marked = 0
    for message in each_message(proto):
        message.MergeFromString(b"\xf8\xff\x3f\x07\xc2\xff\x3f\x02hi")
        marked += 1
    assert marked > 80
    assert trip(proto).SerializeToString(deterministic=True) == proto.SerializeToString(deterministic=True)


def test_empty_is_not_absent():
    proto = full_model()
    for message in each_message(proto):
        for field in message.DESCRIPTOR.fields:
            plain = field.message_type is None and not field.is_repeated and field.containing_oneof is None
            if (
                plain
                and field.name
                in {
                    "doc_string",
                    "name",
                    "domain",
                    "overload",
                    "producer_name",
                    "denotation",
                }
                and not message.HasField(field.name)
            ):
                setattr(message, field.name, "")
    assert trip(proto) == proto


def test_what_comes_twice_survives():
    proto = full_model()
    proto.opset_import.add(domain="d", version=2)
    proto.metadata_props.add(key="author", value="you")
    proto.graph.node[0].attribute.extend([helper.make_attribute("a", 1), helper.make_attribute("a", 2)])
    proto.graph.metadata_props.add(key="k", value="again")
    again = trip(proto)
    assert sorted(str(o) for o in again.opset_import) == sorted(str(o) for o in proto.opset_import)
    assert sorted(p.value for p in again.metadata_props) == ["me", "you"]
    assert list(again.graph.node[0].attribute) == list(proto.graph.node[0].attribute)
    assert [p.value for p in again.graph.metadata_props] == ["v", "again"]


def test_odd_types_survive():
    proto = full_model()
    dim = proto.graph.input[0].type.tensor_type.shape.dim
    dim[0].dim_param = ""
    dim[1].denotation = "DATA_CHANNEL"
    dim.add().dim_value = -5
    dim.add().dim_param = "(H - 1)//2+1"
    proto.graph.input[0].type.denotation = "IMAGE"
    proto.graph.input.add(name="odd").type.tensor_type.elem_type = 99
    proto.graph.input.add(name="opaque").type.opaque_type.name = "o"
    proto.graph.input.add(name="untyped")
    proto.graph.input.add(name="void").type.SetInParent()
    proto.graph.input.add(name="sparse").type.sparse_tensor_type.elem_type = 1
    proto.graph.input.add(name="s").type.sequence_type.SetInParent()
    assert trip(proto) == proto


def test_odd_attributes_survive():
    proto = full_model()
    node = proto.graph.node[0]
    node.attribute.add(name="typeless").i = 3
    node.attribute.add(name="two", type=onnx.AttributeProto.INT, i=1, f=2.0)
    node.attribute.add(name="none")
    node.attribute.add(name="wrong", type=onnx.AttributeProto.FLOATS, ints=[1])
    node.attribute.add(name="empty", type=onnx.AttributeProto.INTS)
    assert trip(proto) == proto


def test_every_tensor_field_survives():
    proto = full_model()
    raw = {TensorProto.FLOAT: "float_data", TensorProto.INT32: "int32_data", TensorProto.INT64: "int64_data",
           TensorProto.DOUBLE: "double_data", TensorProto.UINT64: "uint64_data"}  # fmt: skip
    for kind, field in raw.items():
        tensor = proto.graph.initializer.add(name=field, data_type=kind, dims=[2], doc_string="d")
        getattr(tensor, field).extend([1, 2])
    proto.graph.initializer.add(name="s", data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"\xff"])
    proto.graph.initializer.add(name="seg", data_type=1, dims=[0]).segment.begin = 3
    external = proto.graph.initializer.add(
        name="ext", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL
    )
    external.external_data.add(key="location", value="nowhere.bin")
    model = sabir.loads(proto.SerializeToString())
    values = {v.name: t for v, t in model.graph.initializers.items()}
    assert values["double_data"].array().tolist() == [1.0, 2.0]
    del proto.graph.initializer[-1]
    model.graph.set_initializer(next(v for v in model.graph.initializers if v.name == "ext"), None)
    assert onnx.ModelProto.FromString(sabir.dumps(model)) == proto


def test_missing_and_clashing_names_are_made_unique_on_saving():
    b = sabir.Builder(18)
    x = b.input("x", "float", ["N"])
    first, second = b.Relu(x), b.Relu(x)
    first.name = second.name = "same"
    third = b.Add(first, second)
    third.name = ""
    b.output(third)
    proto = onnx.ModelProto.FromString(sabir.dumps(b.model()))
    names = [*proto.graph.node[0].output, *proto.graph.node[1].output, *proto.graph.node[2].output]
    assert len(set(names)) == 3
    assert all(names)
    assert list(proto.graph.node[2].input) == names[:2]
    assert proto.graph.output[0].name == names[2]
    assert first.name == "same"  # the model itself is as it was


def test_an_inner_name_that_would_hide_a_captured_value_is_changed():
    b = sabir.Builder(18)
    x = b.input("x", "float", ["N"])
    cond = b.input("c", "bool", [])
    inner = sabir.ir.Graph("then")
    hiding = inner.append(sabir.ir.Node("Relu", [x])).output
    hiding.name = "x"
    inner.outputs.append(inner.append(sabir.ir.Node("Add", [hiding, x])).output)
    b.output(b.If(cond, then_branch=inner, else_branch=inner_relu(x)), "y")
    again = sabir.loads(sabir.dumps(b.model()))
    (then,) = [
        g for n in again.graph for a, v in n.attributes.items() if a == "then_branch" for g in v.graphs
    ]
    relu, add = then
    assert list(add.inputs) == [relu.output, again.graph.inputs[0]]


def inner_relu(x):
    g = sabir.ir.Graph("else")
    g.outputs.append(g.append(sabir.ir.Node("Relu", [x])).output)
    return g


def test_names_are_resolved_through_scopes():
    proto = full_model()
    model = sabir.loads(proto.SerializeToString())
    relu, conditional, _ = model.graph
    then, other = conditional.graphs
    inner = next(iter(conditional.attributes["then_branch"].value))
    assert inner.inputs[0] is relu.output
    assert next(iter(conditional.attributes["else_branch"].value)).inputs[0] is model.graph.inputs[0]
    training = model.training[0]
    init = next(v for v in model.graph.initializers if v.name == "init")
    assert training.algorithm is not None
    assert next(iter(training.algorithm)).inputs[0] is init
    assert training.update_binding[0][0] is init
    assert training.update_binding[0][1] is training.algorithm.outputs[0]
    assert relu.devices[0].shardings[0].value is model.graph.inputs[0]
    assert {then.name, other.name} == {"branch"}


def test_a_value_read_before_its_definition_is_one_value():
    proto = full_model()
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    model = sabir.loads(proto.SerializeToString())
    custom, conditional, relu = model.graph
    assert custom.inputs[0] is conditional.outputs[0]
    assert next(iter(conditional.attributes["then_branch"].value)).inputs[0] is relu.output
    assert onnx.ModelProto.FromString(sabir.dumps(model)) == proto
