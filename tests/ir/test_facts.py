import numpy as np
import pytest

from sabir.base import UnsupportedError, WireError
from sabir.elements import FLOAT, INT64
from sabir.ir import (
    ArrayTensor,
    Attribute,
    Builder,
    Graph,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    minimum_ir,
    symbol,
    tensor_type,
)

N = symbol("N")
X = TensorType(FLOAT, (N, 3))


@pytest.mark.parametrize(
    ("kind", "text", "signature"),
    [
        (X, "float[N,3]", "tensor(float)"),
        (TensorType(FLOAT, ()), "float", "tensor(float)"),
        (TensorType(FLOAT), "float[]", "tensor(float)"),
        (TensorType(FLOAT, (None, N * 2 + 1)), "float[?,2*N+1]", "tensor(float)"),
        (SparseTensorType(FLOAT, (2,)), "sparse_tensor(float[2])", "sparse_tensor(float)"),
        (SequenceType(X), "seq(float[N,3])", "seq(tensor(float))"),
        (OptionalType(SequenceType(X)), "optional(seq(float[N,3]))", "optional(seq(tensor(float)))"),
        (MapType(INT64, X), "map(int64,float[N,3])", "map(int64, float)"),
        (OpaqueType("d", "n"), "opaque(d,n)", "opaque(d,n)"),
    ],
)
def test_types_read_well(kind, text, signature):
    assert str(kind) == text
    assert kind.signature == signature


def test_joining_keeps_what_both_say():
    assert X.join(TensorType(FLOAT, (N, 4))) == TensorType(FLOAT, (N, None))
    assert X.join(TensorType(FLOAT, (3,))) == TensorType(FLOAT)
    assert SequenceType(X).join(SequenceType(None)) == SequenceType(X)
    with pytest.raises(TypeError, match="no type in common"):
        X.join(TensorType(INT64, (N, 3)))
    with pytest.raises(TypeError, match="no type in common"):
        X.join(SequenceType(X))


def test_sizes():
    assert X.size == N * 3
    assert X.rank == 2
    assert not X.is_static
    assert TensorType(FLOAT).size is None
    assert tensor_type(np.float32, ["N", 3]) == X


@pytest.mark.parametrize(
    ("value", "kind", "held"),
    [
        (1, "int", 1),
        (True, "int", 1),
        (0.1, "float", float(np.float32(0.1))),
        ("a", "string", "a"),
        (b"\xff", "string", b"\xff"),
        ([1, 2], "ints", (1, 2)),
        ([1, 2.5], "floats", (1.0, 2.5)),
        (["a"], "strings", ("a",)),
        (X, "type", X),
        ([X], "types", (X,)),
    ],
)
def test_attributes_take_the_type_of_their_value(value, kind, held):
    attribute = Attribute.of("a", value)
    assert (attribute.name, attribute.type, attribute.value) == ("a", kind, held)


def test_attributes_of_tensors_and_graphs():
    array = np.arange(3)
    assert Attribute.of("t", array).value.array().tolist() == [0, 1, 2]
    assert Attribute.of("g", Graph("g")).graphs[0].name == "g"
    assert [g.name for g in Attribute.of("gs", [Graph("a"), Graph("b")]).graphs] == ["a", "b"]


@pytest.mark.parametrize("value", [[], {}, object(), [1, "a"], np.array([1 + 1j], np.clongdouble)])
def test_values_that_no_attribute_holds_are_refused(value):
    with pytest.raises(UnsupportedError, match="attribute 'a'|no ONNX|ONNX has no"):
        Attribute.of("a", value)


def test_an_array_tensor_cannot_be_changed_through_its_array():
    tensor = ArrayTensor(np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        tensor.array()[0] = 1
    assert tensor.type == TensorType(FLOAT, (2,))
    assert (tensor.size, tensor.nbytes, bytes(tensor.raw())) == (2, 8, bytes(8))


def test_sparse_tensors_become_dense():
    values = ArrayTensor(np.array([5.0, 7.0], np.float32))
    flat = SparseTensor(values, ArrayTensor(np.array([1, 5])), (2, 3))
    coordinates = SparseTensor(values, ArrayTensor(np.array([[0, 1], [1, 2]])), (2, 3))
    expected = [[0, 5, 0], [0, 0, 7]]
    assert flat.array().tolist() == coordinates.array().tolist() == expected


@pytest.mark.parametrize("indices", [[1, 6], [-1, 2], [[0, 1], [2, 0]], [[0], [1]], [1]])
def test_bad_sparse_indices_are_refused(indices):
    values = ArrayTensor(np.array([5.0, 7.0], np.float32))
    with pytest.raises(WireError, match="sparse tensor"):
        SparseTensor(values, ArrayTensor(np.array(indices)), (2, 3)).array()


def test_the_builder_gives_fresh_names_and_the_oldest_ir_that_will_do():
    b = Builder(17)
    x = b.input("x", "float", ["N"])
    y = b.Relu(b.Relu(x))
    assert b.output(y, "x").name == "x_1"
    top, bottom = b.Split(x, outputs=2, axis=0)
    assert top.node is bottom.node
    model = b.model()
    assert (model.ir_version, model.opset(), model.opset("ai.onnx"), model.opset("other")) == (
        8,
        17,
        17,
        None,
    )
    assert b.op("Foo", x, domain="d", alpha=1).node.domain == "d"


@pytest.mark.parametrize(
    ("opset", "ir"), [(1, 3), (8, 3), (9, 4), (10, 5), (15, 8), (18, 8), (19, 9), (21, 10), (28, 14)]
)
def test_minimum_ir(opset, ir):
    assert minimum_ir(opset) == ir
