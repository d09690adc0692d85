"""Tables of LabelEncoder and CategoryMapper that contradict themselves."""

import numpy as np
import pytest

import sabir
from sabir import Builder, InferenceError
from sabir.ir import ArrayTensor


def infer(operator, **attributes):
    b = Builder(21, opsets={"ai.onnx.ml": 4}, check=False)
    b.output(b.op(operator, b.input("x", "string", ["N"]), domain="ai.onnx.ml", **attributes), "y")
    return sabir.infer(b.model(), strict=True)


@pytest.mark.parametrize("columns", [{}, {"cats_int64s": [1]}, {"cats_strings": ["a"]}])
def test_a_category_needs_both_columns(columns):
    with pytest.raises(
        InferenceError, match="needs both columns of the table, `cats_int64s` and `cats_strings`"
    ):
        infer("CategoryMapper", **columns)


def test_columns_have_one_length():
    with pytest.raises(InferenceError, match="differ in length"):
        infer("CategoryMapper", cats_int64s=[1], cats_strings=["a", "b"])


def test_the_default_is_one_element_of_the_type_of_the_values():
    table = {"keys_tensor": ArrayTensor(np.array(["a"], object)), "values_tensor": ArrayTensor(np.array([1]))}
    with pytest.raises(InferenceError, match="`default_tensor` is int32, and the values are int64"):
        infer("LabelEncoder", **table, default_tensor=ArrayTensor(np.array([0], np.int32)))
    with pytest.raises(InferenceError, match="`default_tensor` has the shape .1, 2., and needs one element"):
        infer("LabelEncoder", **table, default_tensor=ArrayTensor(np.array([[0, 1]])))
    infer("LabelEncoder", **table, default_tensor=ArrayTensor(np.array([0])))
