"""Operators on values: what they append, and that they compute what numpy does."""

import gc

import numpy as np
import pytest

import sabir
from sabir.base import SchemaError
from sabir.ir import SequenceType, Value, tensor_type

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7


def computed(build, opset=21, **feeds):
    b = sabir.Builder(opset)
    x = b.input("x", "float", [None, None, None])
    more = [b.input(n, str(v.dtype).replace("float32", "float"), list(v.shape)) for n, v in feeds.items()]
    b.output(build(x, *more), "y")
    model = b.model()
    sabir.check(model)
    return sabir.evaluate(model, {"x": X, **feeds})["y"]


@pytest.mark.parametrize(
    "expression",
    [
        lambda x: x + 1, lambda x: 1 + x, lambda x: x - 0.5, lambda x: 2 - x, lambda x: x * x, lambda x: 3 * x,
        lambda x: x / 2, lambda x: 2 / (x * x + 1), lambda x: x**2, lambda x: 2**x, lambda x: -x, abs,
        lambda x: x < 1.5, lambda x: x <= 2, lambda x: x > 1.5, lambda x: x >= 3, lambda x: x @ np.ones((4, 2), np.float32),
        lambda x: np.ones((5, 3), np.float32) @ x, lambda x: np.float32(2) * x, lambda x: np.ones(4, np.float32) - x,
    ],
)  # fmt: skip
def test_an_operator_computes_what_numpy_does(expression):
    found, expected = computed(expression), expression(X)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


INDICES = [
    0, -1, (0, 1), (0, 1, 2), (-1, -1), slice(None), slice(1, None), slice(None, -1), slice(None, None, -1),
    (slice(None), slice(None, None, 2)), (slice(None), slice(2, None, -2), 1), (..., 0), (..., 1, slice(1, 3)),
    (0, ..., -1), (1, ..., slice(None, 2)), None, (None, ...), (..., None), (slice(None), None, 0), (0, None, 1),
    (None, 0, None, ..., None, 1, None), [0, 1, 1], (slice(None), [2, 0]), (..., [0, 3]), (0, [1, 2]), ([1, 0], 2),
    (0, [[0, 1], [1, 2]], slice(1, None)), (slice(None), 1, [0, 1]), np.array([1, 0]), np.int32(1), (), ...,
    (None, [1], slice(None), None), (slice(np.int64(1), 2), 0),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("opset", [11, 21])
def test_an_index_means_what_it_does_in_numpy(index, opset):
    np.testing.assert_array_equal(computed(lambda x: x[index], opset), X[index])


@pytest.mark.parametrize(
    "index", [0, (0, 1), slice(1, 2), (..., slice(0, 2)), (None, 0, ..., slice(1, None))], ids=str
)
def test_the_first_opsets_slice_with_attributes(index):
    b = sabir.Builder(7)
    x = b.input("x", "float", [2, 3, 4])
    b.output(x[index], "y")
    np.testing.assert_array_equal(sabir.evaluate(b.model(), {"x": X})["y"], X[index])


def test_values_are_indices_and_bounds():
    i, n = np.int64(1), np.int32(2)
    np.testing.assert_array_equal(computed(lambda x, i: x[i], i=np.array(i)), X[1])
    np.testing.assert_array_equal(
        computed(lambda x, i: x[:, i, None], i=np.array([2, 0])), X[:, [2, 0], None]
    )
    np.testing.assert_array_equal(computed(lambda x, n: x[:, :n], n=np.array(n)), X[:, :2])
    found = computed(lambda x, i, n: x[:, i:, 1:n], i=np.array(i), n=np.array(n))
    np.testing.assert_array_equal(found, X[:, 1:, 1:2])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((0, 0, 0, 0), "the index has 4 items, and .* has rank 3"),
        ((..., ...), "at most one"),
        (1.0, "1.0 is no index"),
        ("a", "'a' is no index"),
        (True, "True is no index"),
        ([True, False], "is no index"),
        ([0.5], "is no index"),
        (([0], [1]), "at most one list, array or value; use `b.GatherND`"),
        ((0, slice(None), [1]), "index in two steps"),
        (([0], ..., 1), "index in two steps"),
        (slice(0, 1.5), "1.5 is no bound of a slice"),
        (slice(None, None, 0), "the step of a slice is not 0"),
    ],
    ids=str,
)
def test_an_index_that_no_node_expresses_is_an_error(index, message):
    b = sabir.Builder()
    x = b.input("x", "float", [2, 3, 4])
    with pytest.raises(SchemaError, match=message):
        _ = x[index]


def test_masks_sequences_and_old_opsets_are_refused():
    b = sabir.Builder()
    x, n = b.input("x", "float", [2, 3]), b.input("n", "int64", [])
    with pytest.raises(SchemaError, match=r"use `b.Compress`"):
        _ = x[x > 0]
    with pytest.raises(SchemaError, match="needs both bounds"):
        _ = x[::n]
    with pytest.raises(SchemaError, match=r"b.SequenceAt"):
        _ = b.input("s", SequenceType(tensor_type("float")))[0]
    b = sabir.Builder(9)
    x = b.input("x", "float", [2, 3])
    with pytest.raises(SchemaError, match="from opset 10 on"):
        _ = x[::2]
    with pytest.raises(SchemaError, match="from opset 11 on"):
        _ = x[-1]


def test_equality_is_identity_and_a_value_is_no_sequence():
    b = sabir.Builder()
    x, y = b.input("x", "float", [2]), b.input("y", "float", [2])
    assert x == x
    assert x != y
    assert len({x, y, x}) == 2
    with pytest.raises(TypeError):
        iter(x)
    with pytest.raises(TypeError):
        _ = 1 in x  # pyright: ignore[reportOperatorIssue]  the error is tested
    assert len(b.graph) == 0


def test_a_value_without_a_builder_says_so():
    with pytest.raises(SchemaError, match=r"<Value a: \?> is in no graph that a Builder is building"):
        _ = Value("a") + 1
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    y = model.graph.outputs[0]
    with pytest.raises(SchemaError, match=r"Builder\(graph=model.graph"):
        _ = y * 2
    b = sabir.Builder(graph=model.graph, opsets=model.opsets)
    assert (y * 2).node.graph is model.graph
    del b
    gc.collect()
    with pytest.raises(SchemaError, match="is in no graph"):
        _ = y * 2


def test_the_builder_of_either_operand_serves():
    b = sabir.Builder()
    x = b.input("x", "float", [2])
    assert (Value("free", tensor_type("float")) + x).node.graph is b.graph
