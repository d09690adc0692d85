"""What a family learns from an operator's room about the opset of a graph under construction."""

import pytest

from sabir import Builder
from sabir.opsets.families.calls import has_attribute


@pytest.mark.parametrize(
    ("name", "attribute", "last"),
    [
        ("Unsqueeze", "axes", 12),
        ("ReduceSum", "axes", 12),
        ("ReduceMax", "axes", 17),
        ("Clip", "min", 10),
        ("Add", "broadcast", 6),
    ],
)
def test_an_attribute_that_became_an_input_or_was_removed(name, attribute, last):
    assert has_attribute(Builder(last), name, attribute)
    assert not has_attribute(Builder(last + 1), name, attribute)


def test_what_the_standard_does_not_have():
    assert not has_attribute(Builder(21), "Add", "axis")
    assert not has_attribute(Builder(21), "NoSuchOperator", "axis")
