"""Types of the values of a graph while it is built."""

import pytest

import sabir
from sabir.inference import GrowingTypes


def test_only_what_a_value_depends_on_is_inferred_and_nothing_is_written():
    b = sabir.Builder(21, check=False)
    x = b.input("x", "float", ["N", 4])
    y = b.Transpose(b.Relu(x), perm=[1, 0])
    wrong = b.MatMul(x, b.input("w", "float", [3, 3]))
    types = GrowingTypes(b.model())
    assert str(types.type_of(y)) == "float[4,N]"
    assert y.type is None
    assert y.node.inputs[0].type is None
    with pytest.raises(sabir.InferenceError, match="Node MatMul"):
        types.type_of(wrong)
    later = b.Shape(y)
    assert str(types.type_of(later)) == "int64[2]"


def test_values_of_unfinished_subgraphs_have_types():
    b = sabir.Builder(21)
    x = b.input("x", "float16", ["N"])
    found = []

    def branch(g):
        inner = g.Neg(g.Neg(x))
        found.append(str(g.type_of(inner)))
        return inner

    y = b.If(b.input("c", "bool", []), then_branch=branch, else_branch=lambda g: g.Abs(x))
    assert found == ["float16[N]"]
    assert str(b.type_of(b.Neg(y))) == "float16[N]"


def test_what_an_unknown_operator_computes_has_no_type():
    b = sabir.Builder(21, opsets={"example": 1})
    y = b.op("Thing", b.input("x", "float", [2]), domain="example")
    assert b.type_of(y) is None
    assert not b.type_of(b.Neg(y)).element.number
    assert str(b.type_of(b.Shape(y))) == "int64[?]"
