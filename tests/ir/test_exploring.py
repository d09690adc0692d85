"""Lookups, lengths and representations of the model objects."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError, UnsupportedError
from sabir.ir import (
    ArrayTensor,
    Attribute,
    Builder,
    Function,
    Graph,
    MapType,
    Node,
    SequenceType,
    SparseTensor,
    TensorType,
    TrainingInfo,
    Value,
    WireTensor,
    symbol,
    tensor_type,
)
from sabir.proto import TensorProto


@pytest.fixture
def model():
    b = Builder(18)
    x = b.input("x", "float", ["N", 3])
    w = b.initializer("w", np.ones((3, 4), np.float32))
    y = b.MatMul(x, w, name="dense")
    b.output(b.Softmax(y, name="last", axis=1), "y")
    return b.model()


def test_keys_of_initializers_are_accepted_by_the_lookups(model):
    graph = model.graph
    assert [graph.value(value).name for value in graph.initializers] == ["w"]
    assert [graph.initializers.value(value).name for value in graph.initializers] == ["w"]
    assert graph.node(graph[0]) is graph[0]
    with pytest.raises(NotFoundError, match=r"<Value elsewhere: \?> is no value of <Graph"):
        graph.value(Value("elsewhere"))
    with pytest.raises(NotFoundError, match="is no initializer of <Graph"):
        graph.initializers.value(graph.inputs[0])
    with pytest.raises(NotFoundError, match="is no node of <Graph"):
        graph.node(Node("Relu", []))


def test_objects_by_name(model):
    graph = model.graph
    assert graph.node("dense").op == "MatMul"
    assert graph.value("x") is graph.inputs[0]
    assert graph.value("y").node is graph.node("last")
    assert graph.initializers["w"].shape == (3, 4)
    assert graph.initializers[graph.value("w")] is graph.initializers["w"]
    assert "w" in graph.initializers
    assert "x" not in graph.initializers
    assert graph.initializers.get("q", 7) == 7
    assert [v.name for v in graph.initializers] == ["w"]
    assert graph.node("last").attributes["axis"].value == 1


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (lambda g: g.node("dens"), "has no node named 'dens'; is it 'dense'?"),
        (lambda g: g.value("W"), "has no value named 'W'; is it 'w'?"),
        (lambda g: g.initializers["ww"], "has no initializer named 'ww'; is it 'w'?"),
        (lambda g: g.node("nothing like it"), "has no node named 'nothing like it'$"),
    ],
)
def test_a_name_that_nothing_has(model, find, message):
    with pytest.raises(NotFoundError, match=message.replace("?", r"\?")):
        find(model.graph)


def test_a_name_that_several_have(model):
    model.graph.node("last").name = "dense"
    with pytest.raises(NotFoundError, match="2 nodes named 'dense': <Node MatMul 'dense'>, <Node Softmax"):
        model.graph.node("dense")
    with pytest.raises(TypeError, match="a node is found by its name, not by the int 3"):
        model.graph.node(3)


def test_a_graph_is_a_sequence_of_nodes(model):
    graph = model.graph
    assert [graph[0].op, graph[1].op, graph[-1].op, len(graph)] == ["MatMul", "Softmax", "Softmax", 2]
    assert graph[0] in graph
    with pytest.raises(IndexError, match="has no node 2"):
        _ = graph[2]
    with pytest.raises(TypeError, match=r"graph\.node finds a node by its name"):
        _ = graph["dense"]


def test_a_value_knows_its_shape_and_element_type(model):
    again = sabir.loads(sabir.dumps(model))
    w, x = again.graph.value("w"), again.graph.value("x")
    assert (w.type, w.shape, str(w.element)) == (TensorType(w.element, (3, 4)), (3, 4), "float")
    assert (x.shape, x.element) == ((symbol("N"), 3), x.type.element)
    assert Value("v").shape is None
    assert sabir.dumps(again) == sabir.dumps(model)


def test_an_output_that_the_file_does_not_type_stays_without_type(model):
    w = model.graph.value("w")
    w.type = None
    model.graph.outputs.append(w)
    again = sabir.loads(sabir.dumps(model))
    assert again.graph.outputs[1].type is None
    assert again.graph.outputs[1].shape == (3, 4)


def test_new_data_of_a_constant_brings_its_type(model):
    w = model.graph.value("w")
    model.graph.set_initializer(w, np.zeros((3, 5)))
    assert w.type == tensor_type("double", [3, 5])
    model.graph.initializers["w"] = [1, 2]
    assert w.type == tensor_type("int64", [2])
    del model.graph.initializers["w"]
    assert w.source is None


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (ArrayTensor(np.zeros((3, 4), np.float32)), "ArrayTensor(float[3,4], 48 bytes)"),
        (ArrayTensor(np.array(["a"], object)), "ArrayTensor(string[1])"),
        (TensorType(tensor_type("float").element, (symbol("N"), 3)), "TensorType(float[N,3])"),
        (tensor_type("int64", [2]).with_known((1, symbol("N"))), "TensorType(int64[2], known=(1, Expr('N')))"),
        (SequenceType(tensor_type("float")), "SequenceType(seq(float[]))"),
        (Attribute.of("axis", 1), "Attribute(axis: int = 1)"),
        (Attribute.of("mode", "linear"), "Attribute(mode: string = 'linear')"),
        (Attribute.of("p", range(10) and list(range(10))), "Attribute(p: ints = [0, 1, 2, 3, 4, 5, 6, 7, ... 10 in all])"),
        (Attribute("a", "int", None, ref="b"), "Attribute(a: int = @b)"),
        (Value("x", tensor_type("float", ["N"])), "<Value x: float[N]>"),
        (Node("Add", name="n"), "<Node Add 'n'>"),
        (Graph("g"), "<Graph 'g': 0 nodes>"),
        (Function("F", "d"), "<Function d.F>"),
        (TrainingInfo(algorithm=Graph("a")), "<TrainingInfo: algorithm 0 nodes>"),
        (symbol("N") + 1, "Expr('N+1')"),
    ],
)  # fmt: skip
def test_representations(made, shown):
    assert repr(made) == shown


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda m: m.graph[0].op_type, "Node has no 'op_type': it is called 'op'"),
        (lambda m: m.graph.nodes, "the graph itself is the sequence of its nodes"),
        (lambda m: m.opset_import, "Model has no 'opset_import': it is called 'opsets'"),
        (lambda m: m.graph.inputs[0].dtype, "the element type is `element`"),
        (lambda m: m.graph.initializers["w"].dtype, "its numpy dtype `element.dtype`"),
        (lambda m: m.graph[1].attributes["axis"].i, "the content is the `value`"),
        (lambda m: m.graph.inputs[0].type.elem_type, "it is called 'element'"),
        (lambda m: m.SerializeToString, "sabir.dumps"),
    ],
)
def test_habits_get_a_hint(model, use, message):
    with pytest.raises(AttributeError, match=message):
        use(model)


def test_tensors_are_arrays_for_numpy():
    tensor = ArrayTensor(np.arange(3, dtype=np.float32))
    assert np.asarray(tensor) is not None
    assert np.shares_memory(np.asarray(tensor), tensor.numpy())
    assert np.asarray(tensor, np.int64).dtype == np.int64
    copied = np.array(tensor, copy=True)
    copied[0] = 5
    assert tensor.numpy()[0] == 0
    with pytest.raises(ValueError, match="only in a copy"):
        np.array(tensor, np.int64, copy=False)
    assert np.add(tensor, 1).tolist() == [1, 2, 3]


def test_tensors_are_equal_by_contents():
    nan = ArrayTensor(np.array([np.nan, 1]))
    assert nan == ArrayTensor(np.array([np.nan, 1]))
    assert hash(nan) == hash(ArrayTensor(np.array([np.nan, 1])))
    assert ArrayTensor(np.array([0.0])) != ArrayTensor(np.array([-0.0]))
    assert ArrayTensor(np.zeros((2, 3))) != ArrayTensor(np.zeros((3, 2)))
    assert ArrayTensor(np.zeros(2)) != ArrayTensor(np.zeros(2, np.float32))
    assert ArrayTensor(np.array(["a"], object)) == ArrayTensor(np.array(["a"], object))
    assert ArrayTensor(np.array(["a"], object)) != ArrayTensor(np.array(["b"], object))
    assert ArrayTensor(np.zeros(0)) == ArrayTensor(np.zeros(0))
    assert nan != 3
    large = np.zeros(3 << 20, np.uint8)
    other = large.copy()
    other[-5] = 1
    assert ArrayTensor(large) == ArrayTensor(large.copy())
    assert ArrayTensor(large) != ArrayTensor(other)


def test_tensors_of_a_file_equal_those_of_arrays(model):
    again = sabir.loads(sabir.dumps(model))
    ours, read = model.graph.initializers["w"], again.graph.initializers["w"]
    assert ours == read
    assert {ours: 1}[read] == 1
    sparse = SparseTensor(ours, ArrayTensor(np.arange(3)), (9,))
    assert sparse == SparseTensor(read, ArrayTensor(np.arange(3)), (9,))


def test_spare_bits_and_truth_values_are_no_contents():
    def wire(number, raw, *dims):
        return WireTensor(TensorProto(data_type=number, dims=dims, raw_data=raw))

    three = ArrayTensor(np.array([1, 2, 3], ml_dtypes.uint4))
    assert wire(21, b"\x21\xf3", 3) == three
    assert hash(wire(21, b"\x21\xf3", 3)) == hash(three)
    assert wire(21, b"\x21\x04", 3) != three
    assert wire(9, b"\x07\x00", 2) == ArrayTensor(np.array([True, False]))
    assert hash(wire(9, b"\x07\x00", 2)) == hash(ArrayTensor(np.array([True, False])))


def test_wrong_kinds_are_refused(model):
    graph, x = model.graph, model.graph.inputs[0]
    float_ = x.type.element
    for action, error, message in [
        (lambda: Node("Relu", ["x"]), TypeError, r"a Value is expected, not the str 'x'; graph\.value"),
        (lambda: Node("Relu", x), TypeError, r"not a list of values; write \[value\]"),
        (lambda: Node("Relu", [graph[0]]), TypeError, "its results are its `outputs`"),
        (lambda: Node("Relu", [x, np.zeros(1)]), TypeError, "add_initializer makes a value of an array"),
        (lambda: Node("Relu", [x], ["y"]), TypeError, "a Value is expected"),
        (lambda: Node("Relu", [x], 1, {"a": object()}), UnsupportedError, "no attribute type fits"),
        (lambda: x.replace_with("y"), TypeError, "a Value is expected"),
        (lambda: graph.append(x), TypeError, "a Node is expected, not the Value"),
        (lambda: graph.outputs.append("y"), TypeError, "a Value is expected"),
        (lambda: graph.inputs.append(None), TypeError, "an input of a graph is a Value, not None"),
        (
            lambda: graph.inputs.append(graph[0].output),
            ValueError,
            "belongs to <Node MatMul 'dense'> already",
        ),
        (lambda: setattr(x, "type", "float[N]"), TypeError, r"sabir\.ir\.tensor_type\('float'"),
        (lambda: Value("v", "float"), TypeError, "a type is an object such as"),
        (lambda: TensorType("float", (3,)), TypeError, "an element type is an ElementType"),
        (lambda: TensorType(float_, [3]), TypeError, "a shape is a tuple"),
        (lambda: TensorType(float_, ("N",)), TypeError, "converts text, lists and dtypes"),
        (lambda: MapType(float_, x.type).dims, AttributeError, "dims"),
    ]:
        uses = x.uses
        with pytest.raises(error, match=message):
            action()
        assert x.uses == uses
    sabir.ir.verify(model)


def test_a_shape_takes_symbols_by_name():
    assert tensor_type("float").with_shape("N", 3) == tensor_type("float", ["N", 3])
