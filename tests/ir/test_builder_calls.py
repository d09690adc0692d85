"""The methods of a builder: looked up, documented, and checked when a node is built."""

import inspect

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.base import SchemaError
from sabir.elements import FLOAT16
from sabir.ir import Attribute, Function, SparseTensor, Value, tensor_type
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output
from sabir.schema import Attribute as Formal


def builder(opset=21, **options):
    b = sabir.Builder(opset, **options)
    return b, b.input("x", "float", ["N", 4])


def ramp():
    operator = Operator("Ramp", "example", summary="Clips.")
    t = Constraint("T", FLOATS)
    operator.first(
        1,
        inputs=[Input("x", t)],
        outputs=[Output("y", t)],
        attributes=[Formal("top", "float", "The upper end.", default=1.0)],
    )
    return STANDARD.with_operators(operator)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b, x: b.Softmax(x, x), "Softmax:13 takes 1 input, but the node has 2"),
        (lambda b, _: b.Softmax(), "Softmax:13 requires the input 'input'"),
        (lambda b, x: b.Softmax(x, axes=1), "Softmax:13 has no attribute 'axes'; is it 'axis'"),
        (lambda b, x: b.Softmax(x, axis=1.0), "Softmax:13: attribute 'axis' must be int, and '1.0' is not"),
        (lambda b, x: b.Softmax(x, axis=[1]), "attribute 'axis' must be int"),
        (lambda b, x: b.Softmax(x, axis=lambda g: x), "attribute 'axis' must be int, and a function is not"),
        (lambda b, x: b.Softmax(x, axis=Attribute.of("axis", 1.0)), "'axis' is float, and must be int"),
        (lambda b, x: b.LeakyRelu(x, alpha="a"), "attribute 'alpha' must be float"),
        (lambda b, x: b.LeakyRelu(x, alpha=True), "attribute 'alpha' must be float"),
        (lambda b, x: b.Transpose(x, perm=1), "attribute 'perm' must be ints"),
        (lambda b, x: b.Transpose(x, perm="10"), "attribute 'perm' must be ints"),
        (lambda b, x: b.Transpose(x, perm=[1.0, 0.0]), "attribute 'perm' must be ints"),
        (lambda b, x: b.Transpose(x, perm=np.zeros((1, 2), int)), "attribute 'perm' must be ints"),
        (lambda b, x: b.DepthToSpace(x, blocksize=2, mode=1), "attribute 'mode' must be string"),
        (lambda b, _: b.Constant(sparse_value=1.0), "attribute 'sparse_value' must be sparse_tensor"),
        (lambda b, _: b.Optional(type=1), "attribute 'type' must be type"),
        (lambda b, _: b.If(True, then_branch=1, else_branch=1), "attribute 'then_branch' must be graph"),
        (lambda b, x: b.Cast(x, to="float17"), "attribute 'to' must name an element type: .*'float17'"),
        (lambda b, x: b.Cast(x), "Cast:21 requires the attribute 'to'"),
        (
            lambda b, x: b.Squeeze(x, axes=[0]),
            "Squeeze:21: 'axes' is its input number 1; pass it by position",
        ),
        (lambda b, x: b.op("TopK", x, 2), "TopK:11 requires the output 'Indices'"),
        (lambda b, x: b.Relu(x, outputs=2), "Relu:14 takes 1 output"),
        (lambda b, x: b.op("Softmaxx", x), "Softmaxx is not an operator that Sabir knows; is it 'Softmax'"),
        (lambda b, x: b.op("Upsample", x, x), "Upsample was removed from ai.onnx with opset 10"),
        (lambda b, x: b.op("Swish", x), "ai.onnx.Swish came with opset 24"),
        (
            lambda b, x: b.op("Normalizer", x, domain="ai.onnx.ml"),
            "no operator set of 'ai.onnx.ml' is imported; pass `opsets=",
        ),
    ],
)
def test_an_invalid_call_is_an_error_where_it_is_written(call, message):
    b, x = builder()
    with pytest.raises(SchemaError, match=message):
        call(b, x)
    assert len(b.graph) == 0
    assert not b.graph.initializers


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Softmaxx", "ai.onnx.Softmaxx is not an operator that Sabir knows; is it 'Softmax'"),
        ("outputs", "a builder has no 'outputs'; is it 'output'"),
        ("lstm", "is not an operator that Sabir knows; is it 'LSTM'"),
        ("Zzzzzzzz", "ai.onnx.Zzzzzzzz is not an operator that Sabir knows"),
        ("Upsample", "Upsample was removed"),
        ("_private", "_private"),
    ],
)
def test_a_name_that_is_no_operator_is_an_attribute_error(name, message):
    b, _ = builder()
    assert not hasattr(b, name)
    with pytest.raises(AttributeError, match=message):
        getattr(b, name)


def test_the_operators_of_the_opset_are_listed():
    assert {"Softmax", "GroupNormalization", "LSTM", "input", "model"} <= set(dir(builder(21)[0]))
    assert not {"Swish", "Upsample"} & set(dir(builder(21)[0]))
    assert "Upsample" in dir(builder(9)[0])
    b, _ = builder(opsets={"ai.onnx.ml": 4, "example": 1}, registry=ramp())
    assert "Normalizer" in dir(b.ml)
    assert "TreeEnsemble" not in dir(b.ml)
    assert dir(b.domain("example")) == ["Ramp"]
    assert dir(b.preview) == []


def test_a_method_has_the_signature_and_documentation_of_the_version_that_applies():
    b, _ = builder()
    assert str(inspect.signature(b.Softmax)) == "(input, /, *, axis: int = -1)"
    assert str(inspect.signature(builder(11)[0].Softmax)) == "(input, /, *, axis: int = 1)"
    assert str(inspect.signature(b.Clip)) == "(input, min=None, max=None, /)"
    assert str(inspect.signature(b.Concat)) == "(*inputs, axis: int)"
    assert b.Softmax.__name__ == "Softmax"
    assert b.Softmax.__doc__.startswith("Softmax:13: ")
    assert "axis (int, default -1): The dimension" in str(b.Softmax.__doc__)
    assert "input: A tensor of any rank." in str(b.Softmax.__doc__)


def test_every_operator_has_a_signature_and_documentation():
    opsets = {d: STANDARD.newest_opset(d) for d in STANDARD.domains}
    b = sabir.Builder(opsets=opsets)
    methods = [getattr(b.domain(d), name) for d in opsets for name in b.operator_names(d)]
    assert len(methods) > 200
    for method in methods:
        assert inspect.signature(method).parameters is not None
        assert f"{method.__name__}:" in method.__doc__


def test_a_method_returns_every_output_that_the_operator_always_has():
    b, x = builder()
    values, indices = b.TopK(x, [2])
    assert isinstance(values, Value)
    assert isinstance(indices, Value)
    image = b.input("image", "float", [1, 1, 4, 4])
    assert isinstance(b.MaxPool(image, kernel_shape=[1, 1]), Value)
    assert len(b.MaxPool(image, kernel_shape=[1, 1], outputs=2)) == 2


def test_attributes_are_converted():
    b, x = builder(opsets={"": 21, "ai.onnx.ml": 4})
    assert [b.Cast(x, to=t).node.attributes["to"].value for t in ("float16", np.float16, FLOAT16, 10)] == [
        10
    ] * 4
    assert b.EyeLike(x, dtype=np.dtype("int32")).node.attributes["dtype"].value == 6
    assert b.Softmax(x, axis=np.int64(1)).node.attributes["axis"] == Attribute("axis", "int", 1)
    assert b.ReduceSum(x, keepdims=False).node.attributes["keepdims"] == Attribute("keepdims", "int", 0)
    assert b.ReduceSum(x, keepdims=np.bool_(True)).node.attributes["keepdims"].value == 1
    assert b.LeakyRelu(x, alpha=1).node.attributes["alpha"] == Attribute("alpha", "float", 1.0)
    for perm in ((1, 0), [np.int32(1), 0], np.array([1, 0]), range(1, -1, -1)):
        assert b.Transpose(x, perm=perm).node.attributes["perm"] == Attribute("perm", "ints", (1, 0))
    empty = b.op("MeanVarianceNormalization", x, axes=np.zeros(0)).node.attributes
    assert empty["axes"] == Attribute("axes", "ints", ())
    assert b.Constant(value=[1, 2]).node.attributes["value"].value.array().dtype == np.int64
    assert b.Constant(value=1.5).node.attributes["value"].value.array().dtype == np.float32
    assert b.Softmax(x, axis=None).node.attributes == {}
    kind = tensor_type("float", [1])
    assert b.Optional(type=kind).node.attributes["type"].value is kind


def test_the_first_cast_names_its_element_type():
    b, x = builder(1)
    assert b.Cast(x, to=np.float16).node.attributes["to"] == Attribute("to", "string", "FLOAT16")


def test_an_unknown_domain_is_not_checked():
    b, x = builder(opsets={"example": 1})
    node = b.op("Ramp", x, 2.5, [1], domain="example", top=1, mode="m", body=lambda g: g.Neg(x)).node
    assert [a.type for a in node.attributes.values()] == ["int", "string", "graph"]
    assert [v.type for v in node.inputs[1:]] == [tensor_type("float", []), tensor_type("int64", [1])]
    b.domain("example").Ramp(x)


def test_a_builder_without_checks_builds_anything():
    b, x = builder(check=False)
    node = b.Softmaxx(x, 1.5, axes="a").node
    assert node.attributes["axes"].value == "a"
    assert node.inputs[1].constant.array().dtype == np.float32


def test_a_registry_makes_own_operators_known():
    b, x = builder(opsets={"example": 1}, registry=ramp())
    assert b.domain("example").Ramp(x, top=2).node.attributes["top"] == Attribute("top", "float", 2.0)
    with pytest.raises(SchemaError, match="example.Ramp:1 has no attribute 'topp'; is it 'top'"):
        b.op("Ramp", x, domain="example", topp=2)
    with pytest.raises(
        AttributeError, match="example.Rampp is not an operator that Sabir knows; is it 'Ramp'"
    ):
        _ = b.domain("example").Rampp


def test_the_functions_of_a_model_may_be_called():
    function = Function("Twice", "d", opsets={"": 21})
    v = function.graph.add_input("v")
    inner = sabir.Builder(graph=function.graph)
    inner.output(inner.Add(v, v))
    b, x = builder(opsets={"d": 1}, functions=[function])
    b.output(b.op("Twice", x, domain="d"), "y", "float", ["N", 4])
    model = b.model()
    assert model.functions == [function]
    sabir.check(model)


def _two(g):
    g.input("i", "int64", [])
    going = g.input("going", "bool", [])
    return going, g.input("a", "float", [None, None]), g.input("b", "int64", [])


@pytest.mark.parametrize(
    ("call", "element", "value"),
    [
        (lambda b, x: b.Add(x, 1), "float", 1.0),
        (lambda b, x: b.Add(x, True), "float", 1.0),
        (lambda b, x: b.Add(x, np.array([[1.0], [2.0]])), "float", [[1.0], [2.0]]),
        (lambda b, x: b.Add(b.Relu(b.Cast(x, to="float16")), 0.1), "float16", np.float16(0.1)),
        (lambda b, x: b.Add(b.Cast(x, to="bfloat16"), 3), "bfloat16", 3),
        (lambda b, x: b.Add(b.Cast(x, to="uint8"), 255.0), "uint8", 255),
        (lambda b, x: b.Reshape(x, [1, -1]), "int64", [1, -1]),
        (lambda b, x: b.Reshape(b.ReduceSum(x, keepdims=0), []), "int64", []),
        (lambda b, x: b.Reshape(x, np.int32([4])), "int64", [4]),
        (lambda b, x: b.Clip(x, None, 6), "float", 6.0),
        (lambda b, x: b.Concat(x, [[1, 2, 3, 4]], axis=0), "float", [[1, 2, 3, 4]]),
        (lambda b, x: b.Pow(x, 2), "float", 2.0),
        (lambda b, x: b.Pow(b.Shape(x), 2), "int64", 2),
        (lambda b, x: b.Loop(2, True, x, 0, body=_two, outputs=2)[0], "int64", 0),
        (lambda b, x: b.Pow(b.Cast(x, to="double"), 0.1), "double", 0.1),
        (lambda b, x: b.Gather(x, np.int32(1)), "int32", 1),
        (lambda b, x: b.Sqrt(2), "float", 2.0),
        (lambda b, x: b.Not(True), "bool", True),
        (lambda b, x: b.Identity("text"), "string", "text"),
        (lambda b, x: b.Identity([b"text"]), "string", ["text"]),
        (lambda b, x: b.Identity(np.array(["a", "b"])), "string", ["a", "b"]),
        (lambda b, x: b.Identity(ml_dtypes.bfloat16(1)), "bfloat16", 1),
        (lambda b, x: b.QuantizeLinear(x, 0.5, np.uint8(3)), "uint8", 3),
        (lambda b, x: b.Range(0, b.Gather(b.Shape(x), 0), 1), "int64", 1),
        (lambda b, x: b.Sum(1, 2.5), "float", 2.5),
    ],
)
def test_constants_take_the_element_type_that_the_operator_needs(call, element, value):
    b, x = builder()
    constant = call(b, x).node.inputs[-1]
    assert constant.type.element.name == element
    assert constant.constant.array().tolist() == np.asarray(value, constant.constant.array().dtype).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b, x: b.Add(b.Shape(x), 1.5), "Add:14: the constant for input 'B' must be int64, and '1.5'"),
        (lambda b, x: b.Add(b.Shape(x), [1, np.inf]), "must be int64, and 'inf'"),
        (lambda b, x: b.Add(b.Cast(x, to="uint8"), 256), "must be uint8, and '256'"),
        (lambda b, x: b.Add(b.Cast(x, to="uint8"), -1), "must be uint8, and '-1'"),
        (lambda b, x: b.Add(x, 2**24 + 1), "must be float, and '16777217'"),
        (lambda b, x: b.Add(x, 1e39), "must be float, and '1e\\+39'"),
        (lambda b, x: b.Add(x, 1j), "must be float, and '1j'"),
        (lambda b, x: b.Add(x, "1"), "must be float, and '1'"),
        (lambda b, x: b.Not(2), "must be bool, and '2'"),
        (lambda b, x: b.Identity(np.array([1, None])), "must be string, and '1' is not"),
        (lambda b, x: b.Add(x, [[1], [2, 3]]), "is no array"),
        (lambda b, x: b.Add(x, [x]), "a list of values is no constant; pass the values one by one"),
        (lambda b, x: b.Add(x, {}), "must be a value, a number, a text, a list or an array, not a dict"),
        (lambda b, x: b.Add(x, Attribute.of("a", 1)), "not an attribute; `Constant"),
        (lambda b, x: b.Add(x, np.zeros(1, "datetime64[s]")), "ONNX has no element type"),
        (lambda b, x: b.Add(x, [None]), "has no element type"),
        (lambda b, x: b.Identity([]), "element type of the constant does not follow"),
        (lambda b, x: b.QuantizeLinear(x, 0.5, 3), "'y_zero_point'.*pass an array of one of uint8, int8"),
        (lambda b, x: b.SequenceLength([1]), "'input_sequence' is no tensor; pass a value"),
    ],
)
def test_a_constant_that_the_operator_cannot_take_is_an_error(call, message):
    b, x = builder()
    with pytest.raises(SchemaError, match=message):
        call(b, x)


def test_tensors_are_constants_unchanged():
    b, x = builder()
    data = sabir.ir.ArrayTensor(np.float32([1, 2, 3, 4]))
    assert b.Add(x, data).node.inputs[1].constant is data
    sparse = SparseTensor(sabir.ir.ArrayTensor(np.float32([1])), sabir.ir.ArrayTensor(np.int64([1])), (4,))
    assert b.op("Add", x, sparse).node.inputs[1].constant is sparse


def test_equal_small_constants_are_one():
    b, x = builder()
    first, second, other = b.Add(x, 1.0), b.Sub(x, [[1.0]][0][0]), b.Add(b.Shape(x), 1)
    assert first.node.inputs[1] is second.node.inputs[1]
    assert first.node.inputs[1].name == "const_1"
    assert other.node.inputs[1].name == "const_2"
    texts = [b.Equal(b.input(f"t{i}", "string", []), "a").node.inputs[1] for i in range(2)]
    assert texts[0] is texts[1]
    large = [b.Add(x, np.ones((9, 4))).node.inputs[1] for _ in range(2)]
    assert large[0] is not large[1]


def test_a_constant_that_was_removed_is_made_again():
    b, x = builder()
    y = b.Add(x, 1.0)
    constant = y.node.inputs[1]
    b.graph.erase(y.node)
    b.graph.set_initializer(constant, None)
    again = b.Add(x, 1.0).node.inputs[1]
    assert again is not constant
    assert again in b.graph.initializers


def test_an_invalid_node_before_a_constant_is_named():
    b, x = builder()
    wrong = sabir.Builder(graph=b.graph, check=False).MatMul(x, b.input("w", "float", [3, 3]))
    with pytest.raises(sabir.InferenceError, match="Node MatMul"):
        b.Add(wrong, 1.0)


def test_a_constant_beside_a_value_of_unknown_type_is_cast_when_the_model_runs():
    b, x = builder(opsets={"example": 1})
    y = b.op("Thing", x, domain="example")
    cast = b.Add(y, 1).node.inputs[1].node
    assert (cast.op, cast.inputs[1]) == ("CastLike", y)
    assert b.Concat(y, [1], axis=0, name="n").node.inputs[1].node.op == "CastLike"
    b, x = builder(14, opsets={"example": 1})
    assert b.Add(b.op("Thing", x, domain="example"), 1).node.inputs[1].type.element.name == "int64"
