"""Feeds: what is converted, and what is refused because it would mean something else."""

import ml_dtypes
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_matrix

import sabir
from sabir.base import FeedError
from sabir.ir import (
    ArrayTensor,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    tensor_type,
)


def model_of(kind):
    b = sabir.Builder(21, opsets={"ai.onnx.ml": 3})
    b.output(b.input("x", kind), "x")
    return b.model()


def fed(kind, value):
    """What a run makes of a feed."""
    return sabir.evaluate(model_of(kind), {"x": value})["x"]


def vector(element):
    return tensor_type(element, [None])


@pytest.mark.parametrize(
    ("element", "value", "expected"),
    [
        ("float", [1, 2.5], [1, 2.5]),
        ("float16", [True], [1]),
        ("int64", [1, 2], [1, 2]),
        ("int4", [-8, 7], [-8, 7]),
        ("uint2", [0, 3], [0, 3]),
        ("bool", [1, 0], [True, False]),
        ("complex64", [1, 2j], [1, 2j]),
        ("string", ["a", "b"], ["a", "b"]),
        ("bfloat16", [0.5], [0.5]),
        ("uint64", [2**64 - 1], [2**64 - 1]),
        ("int8", [], []),
    ],
)
def test_python_values_become_arrays_of_the_declared_type(element, value, expected):
    array = fed(vector(element), value)
    assert array.dtype == vector(element).element.dtype
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("element", "value", "message"),
    [
        ("uint8", [300], "300 is not in 0 to 255"),
        ("uint8", [-1], "-1 is not in 0 to 255"),
        ("int4", [99], "99 is not in -8 to 7"),
        ("uint4", [16], "16 is not in 0 to 15"),
        ("int2", [2], "2 is not in -2 to 1"),
        ("bool", [2], "2 is not in 0 to 1"),
        ("int64", [2**63], "9223372036854775808 is not in"),
        ("int64", [2**70], "do not convert to int64"),
        ("int64", [1.5], "fractions do not convert to int64"),
        ("int64", [2.0], "fractions do not convert to int64"),
        ("float", ["1"], "texts do not convert to float"),
        ("int64", ["1"], "texts do not convert to int64"),
        ("float", [None], "such objects do not convert to float"),
        ("float", [1j], "complex numbers do not convert to float"),
        ("string", [1], "got an int; pass texts"),
        ("float", [[1], [1, 2]], "got a list"),
    ],
)
def test_python_values_that_mean_something_else_are_refused(element, value, message):
    with pytest.raises(FeedError, match=message):
        fed(vector(element), value)


def test_arrays_keep_their_type():
    with pytest.raises(FeedError, match=r"got double\[1\]; convert it with \.astype\(np\.float32\)"):
        fed(vector("float"), np.ones(1))
    with pytest.raises(FeedError, match="got int64"):
        fed(vector("float"), np.ones(1, np.int64))
    with pytest.raises(FeedError, match="got an int; pass texts"):
        fed(vector("string"), np.array([1, "a"], object))
    assert fed(vector("string"), np.array(["a"])).tolist() == ["a"]
    assert fed(vector("float"), np.ones(2, ">f4")).dtype == np.float32
    assert fed(vector("int4"), np.ones(2, ml_dtypes.int4)).dtype == ml_dtypes.int4


def test_the_advice_for_another_element_type_is_the_cast_to_write():
    for element, cast in (("bfloat16", "ml_dtypes.bfloat16"), ("int64", "np.int64"), ("string", "str")):
        message = rf"is declared {element}\[\?\], and got float\[1\]; convert it with \.astype\({cast}\)$"
        with pytest.raises(FeedError, match=message):
            fed(vector(element), np.float32([1]))
    with pytest.raises(
        FeedError, match=r"got an array of datetime64\[D\]; convert it with \.astype\(np\.float32\)"
    ):
        fed(vector("float"), np.array(["2000-01-01"], "datetime64[D]"))


def test_a_tensor_is_the_array_of_its_data():
    assert fed(vector("float"), ArrayTensor(np.float32([1, 2]))).tolist() == [1, 2]
    with pytest.raises(FeedError, match="got double"):
        fed(vector("float"), ArrayTensor(np.float64([1])))


def test_a_masked_array_is_refused():
    with pytest.raises(FeedError, match="got a MaskedArray; fill it"):
        fed(vector("float"), np.ma.masked_array(np.float32([1, 2]), [True, False]))
    with pytest.raises(FeedError, match="item 0.*MaskedArray"):
        fed(SequenceType(vector("float")), [np.ma.masked_array(np.float32([1, 2]), [True, False])])


def test_whatever_gives_an_array_counts_as_that_array():
    class Framework:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):  # ruff: ignore[bad-dunder-method-name]  numpy's protocol
            return self.array

    class OnDevice:
        def __array__(self, dtype=None, copy=None):  # ruff: ignore[bad-dunder-method-name]  numpy's protocol
            raise RuntimeError("copy it to the host first")

    assert fed(vector("float"), Framework(np.float32([1]))).tolist() == [1]
    with pytest.raises(
        FeedError, match="input 'x' got an OnDevice that is no array: copy it to the host first"
    ):
        fed(vector("float"), OnDevice())
    with pytest.raises(FeedError, match="got double"):
        fed(vector("float"), Framework(np.float64([1])))


def test_maps_have_keys_and_values_of_the_declared_types():
    names = MapType(tensor_type("string").element, tensor_type("float", []))
    assert fed(names, {"a": 1, "b": np.float32(2)}) == {"a": 1, "b": 2}
    with pytest.raises(FeedError, match="has the key 1: pass string keys"):
        fed(names, {1: 1.0})
    with pytest.raises(FeedError, match="key 'a'.*texts do not convert"):
        fed(names, {"a": "1"})
    with pytest.raises(FeedError, match="key 'a'.*got double"):
        fed(names, {"a": np.float64(1)})
    numbers = MapType(tensor_type("int64").element, SequenceType(tensor_type("float", [2])))
    assert [x.tolist() for x in fed(numbers, {7: [[1, 2]]})[7]] == [[1, 2]]
    for key in ("7", 7.0, True):
        with pytest.raises(FeedError, match="pass int64 keys"):
            fed(numbers, {key: []})
    with pytest.raises(FeedError, match="key 7.*pass a list"):
        fed(numbers, {7: 1.0})
    with pytest.raises(FeedError, match="pass a dict"):
        fed(numbers, [1])


def test_sparse_inputs_take_sparse_and_dense_tensors_and_nothing_else():
    kind = SparseTensorType(tensor_type("float").element, (2, 2))
    sparse = SparseTensor(ArrayTensor(np.float32([5])), ArrayTensor(np.int64([3])), (2, 2))
    assert fed(kind, sparse).tolist() == [[0, 0], [0, 5]]
    assert fed(kind, np.eye(2, dtype=np.float32)).tolist() == [[1, 0], [0, 1]]
    twice = coo_array((np.float32([5, 2, 1]), ([1, 0, 1], [0, 1, 0])), shape=(2, 2))
    for summed in (twice, twice.tocsr(), csr_matrix(twice)):
        assert fed(kind, summed).tolist() == [[0, 2], [6, 0]]
    for value, message in (
        ("junk", "got a str; pass a sparse array of scipy, a sabir.ir.SparseTensor, or a dense array"),
        (coo_array((3, 2), dtype=np.float32), "axis 0 is 3, and must be 2"),
        (coo_array((2, 2), dtype=np.float64), "got double"),
        (np.eye(2), "got double"),
        (np.eye(3, dtype=np.float32), "axis 0 is 3, and must be 2"),
        (
            SparseTensor(ArrayTensor(np.float32([5])), ArrayTensor(np.int64([9])), (2, 2)),
            "indices do not match",
        ),
    ):
        with pytest.raises(FeedError, match=message):
            fed(kind, value)


def test_optionals_are_nothing_or_their_item():
    kind = OptionalType(tensor_type("float", [2]))
    assert fed(kind, None) is None
    assert fed(kind, [1, 2]).tolist() == [1, 2]
    with pytest.raises(FeedError, match="axis 0 is 3"):
        fed(kind, [1, 2, 3])
