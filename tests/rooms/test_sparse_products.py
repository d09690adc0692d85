"""SparseToDenseMatMul: how its sparse operand is passed, and what it refuses."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import sabir
from sabir.elements import FLOAT
from sabir.elements import element as element_of
from sabir.ir import ArrayTensor, SparseTensor, SparseTensorType

DOMAIN = "com.microsoft"
A, B = np.array([[0, 2, 0], [0, 0, 3]], np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
STORED = SparseTensor(ArrayTensor(np.float32([2, 3])), ArrayTensor(np.int64([[0, 1], [1, 2]])), (2, 3))


def product(a, b_type, attributes=None):
    """A model with one product; `a` is the type of an input, or a tensor."""
    b = sabir.Builder(21, opsets={DOMAIN: 1})
    x = b.initializer("a", a) if isinstance(a, SparseTensor) else b.input("a", a)
    b.output(b.op("SparseToDenseMatMul", x, b.input("b", *b_type), domain=DOMAIN, **attributes or {}), "y")
    return b.model()


@pytest.mark.parametrize("feed", [csr_array(A), STORED, A], ids=["scipy", "sabir", "dense"])
def test_feeds(feed, engine):
    model = product(SparseTensorType(FLOAT, (2, 3)), ("float", [3, "N"]))
    assert not [f for f in sabir.findings(model) if f.rule == "NODE017"]
    y = sabir.Session(model, engine=engine).run({"a": feed, "b": B})["y"]
    np.testing.assert_array_equal(y, A @ B)


def test_an_initializer_runs_with_a_warning(engine):
    model = product(STORED, ("float", [3, "N"]))
    assert [f.rule for f in sabir.findings(model) if "onnxruntime refuses" in f.message] == ["NODE017"]
    np.testing.assert_array_equal(sabir.Session(model, engine=engine).run({"b": B})["y"], A @ B)


@pytest.mark.parametrize(
    ("element", "b_type", "attributes", "message"),
    [
        ("float", ("double", [3, 2]), {}, "one element type, and have float and double"),
        ("int64", ("int64", [3, 2]), {"alpha": 1.5}, "alpha must be 1 for a product of integers, and is 1.5"),
        ("float", ("float", [3]), {}, "B must be a matrix, and has rank 1"),
        ("float", ("float", [2, 3]), {}, "the inner dimensions of a matrix product"),
    ],
)
def test_what_is_refused(element, b_type, attributes, message):
    kind = SparseTensorType(element_of(element), (2, 3))
    with pytest.raises(sabir.SabirError, match=message):
        sabir.infer(product(kind, b_type, attributes), strict=True)
