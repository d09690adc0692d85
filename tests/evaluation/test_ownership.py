"""Results belong to the caller: they share memory with no feed, no constant and no other result.

tests/backend/test_official.py holds the same for every official case.
"""

import numpy as np
import pytest

import sabir
from sabir.ir import ArrayTensor, SparseTensor

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model_of(text, **initializers):
    model = sabir.parse(HEAD + text)
    for name, data in initializers.items():
        tensor = data if isinstance(data, SparseTensor) else ArrayTensor(np.asarray(data))
        model.graph.set_initializer(next(v for v in model.graph.inputs if v.name == name), tensor)
    return model


def unaligned(model):
    """The bytes of a model, at each of the eight places that an address may have."""
    data = sabir.dumps(model)
    for shift in range(8):
        buffer = bytearray(len(data) + 8)
        buffer[shift : shift + len(data)] = data
        yield bytes(memoryview(buffer)[shift : shift + len(data)]), shift


VIEWS = [
    "Identity (x)",
    "Transpose (x)",
    "Reshape (x, s)",
    "Clip (x, , )",
    "Squeeze (x, )",
    "Dropout (x)",
    "Cast <to = 1> (x)",
]


@pytest.mark.parametrize("call", VIEWS)
def test_an_edited_result_changes_neither_the_constant_nor_the_feed(call):
    model = model_of(
        f"g (float[2,3] x) => (y) {{ s = Constant <value_ints = [3, 2]> ()  y = {call} }}", x=X.copy()
    )
    session = sabir.Session(sabir.dumps(model))
    first = session.run({})["y"]
    expected = first.copy()
    first[...] = -1
    np.testing.assert_array_equal(session.run({})["y"], expected)
    feed = X.copy()
    earlier = session.run({"x": feed})["y"]
    feed[...] = 7
    np.testing.assert_array_equal(earlier, expected)
    earlier[...] = 9
    assert (feed == 7).all()


def test_unaligned_constants_of_a_file_stay_as_they_are():
    b = sabir.Builder(21)
    w = b.initializer("w", X)
    b.output(b.Transpose(w), "t")
    b.output(w, "w")
    for data, _ in unaligned(b.model()):
        session = sabir.Session(data)
        for result in session.run({}).values():
            result[...] = -1
        again = session.run({})
        np.testing.assert_array_equal(again["t"], X.T)
        np.testing.assert_array_equal(again["w"], X)


def test_a_sparse_constant_and_a_constant_node_stay_as_they_are():
    b = sabir.Builder(21)
    sparse = SparseTensor(ArrayTensor(X[0]), ArrayTensor(np.array([0, 2, 5])), (6,))
    b.output(b.Identity(b.initializer("s", sparse)), "y")
    b.output(b.Constant(value=X), "c")
    b.output(b.Constant(sparse_value=sparse), "d")
    session = sabir.Session(b.model())
    before = {name: result.copy() for name, result in session.run({}).items()}
    for result in session.run({}).values():
        result[...] = -1
    for name, result in session.run({}).items():
        np.testing.assert_array_equal(result, before[name])


def test_two_results_share_no_memory():
    model = model_of("g (float[2,3] x) => (y, z, u) { y = Relu (x)  z = Transpose (y)  u = Identity (y) }")
    y, z, u = sabir.evaluate(model, {"x": X}).values()
    y[...] = -1
    np.testing.assert_array_equal(z, X.T)
    np.testing.assert_array_equal(u, X)


def test_the_items_of_a_sequence_are_the_callers_own():
    model = model_of("g (float[2,3] x) => (y) { a = Identity (x)  y = SequenceConstruct (a, x) }")
    feed = X.copy()
    first, second = sabir.evaluate(model, {"x": feed})["y"]
    feed[...] = 7
    first[...] = 8
    np.testing.assert_array_equal(second, X)


def test_a_fed_sequence_is_not_the_result():
    model = model_of("g (seq(float[3]) s) => (seq(float[3]) s) { }")
    given = [np.zeros(3, np.float32)]
    result = sabir.evaluate(model, {"s": given})["s"]
    given[0][...] = 5
    given.append(given[0])
    assert [x.tolist() for x in result] == [[0, 0, 0]]
