"""What contradicts itself is an error where it is written, and leaves the graph as it was."""

import numpy as np
import pytest

import sabir
from sabir import Builder, SchemaError


def test_a_call_of_contradicting_types_is_refused_and_leaves_no_node():
    b = Builder(21)
    x = b.input("x", "float", ["N", 3, 8, 8])
    weights = np.zeros((4, 5, 3, 3), np.float32)
    with pytest.raises(SchemaError, match="^Conv"):
        b.Conv(x, weights)
    assert [node.op for node in b.graph] == []
    b.output(b.Conv(x, np.zeros((4, 3, 3, 3), np.float32)), "y")
    assert str(b.model().graph.outputs[0].type) == "float[N,4,6,6]"


def test_operators_on_values_are_checked_too():
    b = Builder(21)
    x = b.input("x", "float", ["N", 4])
    with pytest.raises(SchemaError, match="Add: dimensions 4 and 5 do not broadcast"):
        _ = x + np.zeros(5, np.float32)


def test_branches_are_checked_and_function_bodies_are_not():
    b = Builder(21)
    x = b.input("x", "float", [2])
    with pytest.raises(SchemaError, match="Concat: axis 1 is outside"):
        b.If(
            b.input("c", "bool", []),
            then_branch=lambda g: g.Concat(x, axis=1),
            else_branch=lambda g: g.Neg(x),
        )

    @b.function
    def f(g, a, *, axis: int):
        return g.Softmax(a, axis=axis)

    b.output(f(x, axis=0), "y")
    assert str(sabir.infer(b.model()).graph.outputs[0].type) == "float[2]"


def test_an_operator_set_that_does_not_exist():
    with pytest.raises(SchemaError, match=r"there is no operator set 99 of 'ai.onnx'; the newest is \d+"):
        Builder(99)
    with pytest.raises(SchemaError, match="'ai.onnx.ml'; the newest is"):
        Builder(21, opsets={"ai.onnx.ml": 77})
    assert Builder(99, check=False).opset == 99


def test_a_negative_dimension_names_what_to_write():
    b = Builder(21)
    with pytest.raises(SchemaError, match="-1 is no dimension; write a name such as 'N'"):
        b.input("x", "float", [-1, 3])
    assert not b.graph.inputs


def test_what_cannot_be_inferred_is_built():
    b = Builder(21, opsets={"org.acme": 1})
    unknown = b.op("Mystery", b.input("x", "float", [2]), domain="org.acme")
    b.output(b.Relu(unknown), "y")
    assert len(b.model().graph) == 2
