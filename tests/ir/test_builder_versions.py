"""The Builder writes models that the checker accepts, of the oldest IR version that will do."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.checking import findings
from sabir.ir import (
    ArrayTensor,
    Attribute,
    DeviceConfiguration,
    Function,
    Node,
    NodeDevice,
    OptionalType,
    SequenceType,
    SparseTensor,
    TrainingInfo,
    Value,
    tensor_type,
)


def plain(b):
    b.output(b.Relu(b.input("x", "float", ["N"])), "y")


def constant(b):
    b.output(b.Add(b.input("x", "float", [2]), b.initializer("w", np.float32([1, 2]))), "y")


def int4(b):
    plain(b)
    b.input("i", "int4", ["N"])


def inner_int4(b):
    plain(b)
    b.op(
        "Identity",
        b.initializer("w", ArrayTensor(np.zeros(2, np.int8))),
        attribute=tensor_type("int4", [2]),
        domain="d",
    )


def float8_constant(b):
    plain(b)
    b.op("Constant", value=np.zeros(2, ml_dtypes.float8_e4m3fn), domain="d")


def forest(b):
    plain(b)


def optional(b):
    b.output(b.input("x", OptionalType(tensor_type("float", ["N"]))), "x")


def optional_result(b):
    b.output(b.Optional(b.input("x", "float", ["N"])), "y")


def sequence(b):
    b.output(b.input("x", SequenceType(tensor_type("float", ["N"]))), "x")


def sparse(b):
    plain(b)
    data = SparseTensor(ArrayTensor(np.float32([1])), ArrayTensor(np.int64([1])), (3,))
    b.graph.add_initializer("s", data)


def sparse_constant(b):
    data = SparseTensor(ArrayTensor(np.float32([1])), ArrayTensor(np.int64([1])), (3,))
    b.output(b.Constant(sparse_value=data), "y")


def metadata(b):
    plain(b)
    b.graph.metadata = {"k": "v"}


def metadata_of_a_node(b):
    plain(b)
    next(iter(b.graph)).metadata = {"k": "v"}


def metadata_inside(b):
    x, c = b.input("x", "float", ["N"]), b.input("c", "bool", [])
    branches = []
    for name in ("a", "b"):
        inner = sabir.Builder(b.opset, name=name)
        inner.output(inner.Neg(x), f"{name}_out", "float", ["N"])
        inner.graph.metadata = {"k": "v"}
        branches.append(inner.graph)
    b.output(b.If(c, then_branch=branches[0], else_branch=branches[1]), "y", "float", ["N"])


def devices(b):
    plain(b)
    next(iter(b.graph)).devices = (NodeDevice("two", ()),)


def accepted(model):
    return [str(f) for f in findings(model) if f.rule != "NODE007"]


@pytest.mark.parametrize(
    ("opset", "opsets", "build", "lowest"),
    [
        (8, {}, plain, 3),
        (8, {}, constant, 4),
        (9, {}, plain, 4),
        (21, {}, plain, 10),
        (9, {}, int4, 10),
        (9, {"d": 1}, inner_int4, 10),
        (9, {"d": 1}, float8_constant, 9),
        (11, {"ai.onnx.ml": 4}, forest, 9),
        (11, {"ai.onnx.ml": 2}, forest, 6),
        (9, {"ai.onnx.preview": 1}, plain, 13),
        (9, {}, optional, 8),
        (15, {}, optional_result, 8),
        (9, {}, sequence, 6),
        (9, {"ai.onnx.ml": 1}, sequence, 4),
        (9, {}, sparse, 6),
        (11, {}, sparse_constant, 6),
        (9, {}, metadata, 10),
        (9, {}, metadata_of_a_node, 10),
        (11, {}, metadata_inside, 10),
        (28, {}, plain, 14),
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_the_ir_version_has_all_that_the_model_uses(opset, opsets, build, lowest):
    b = sabir.Builder(opset, opsets=opsets)
    build(b)
    model = b.model()
    assert model.ir_version == lowest
    assert accepted(model) == []


def function(**fields):
    made = Function("f", "d", opsets={"": 13}, **fields)
    a = made.graph.add_input("a")
    made.graph.outputs.append(made.graph.append(Node("Relu", [a], [Value("b")])).output)
    return made


def called(overload=""):
    b = sabir.Builder(13, opsets={"d": 1})
    b.output(b.op("f", b.input("x", "float", ["N"]), domain="d", overload=overload), "y", "float", ["N"])
    return b


def test_functions_training_and_devices_count():
    assert called().model(functions=[function()]).ir_version == 8
    default = {"k": Attribute.of("k", 1)}
    assert called().model(functions=[function(attributes=default)]).ir_version == 9
    overloaded = called("o").model(functions=[function(overload="o")])
    assert overloaded.ir_version == 10
    b = sabir.Builder(9)
    devices(b)
    placed = b.model(devices=[DeviceConfiguration("two", 1, ("cpu",))])
    assert placed.ir_version == 11
    b = sabir.Builder(9)
    plain(b)
    trained = b.model(training=[TrainingInfo()])
    assert trained.ir_version == 7
    for model in (overloaded, placed):
        assert accepted(model) == []


def test_a_stated_ir_version_stays():
    b = sabir.Builder(21)
    plain(b)
    assert b.model(ir_version=13).ir_version == 13


def test_the_producer_has_its_version():
    b = sabir.Builder(21)
    plain(b)
    model = b.model()
    assert (model.producer_name, model.producer_version) == ("sabir", sabir.__version__)
    assert b.model(producer_version="7").producer_version == "7"


def test_the_default_domain_has_one_version_under_both_names():
    b = sabir.Builder(opsets={"ai.onnx": 13, "ai.onnx.ml": 1})
    assert b.opsets == {"": 13, "ai.onnx.ml": 1}
    assert b.opset == 13
    assert sabir.Builder(opsets={"ai.onnx": 13, "": 14}).opset == 14
    assert sabir.Builder(11).opsets == {"": 11}
