"""What families learn from operators' rooms: attributes in an opset, and versions that refusals name."""

import pytest

from sabir import Builder
from sabir.opsets import STANDARD
from sabir.opsets.families.building.calls import has_attribute
from sabir.schema import Unconvertible


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


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("And", (None, [2]), "an operand of And is unknown, and And:1 broadcasts only one way"),
        ("Sub", ([2], [3, 2]), "Sub:6 cannot broadcast its first operand"),
        ("Max", ([2], [3, 2]), "one shape, and Max:6 does not broadcast"),
    ],
)
def test_a_refused_downgrade_names_the_older_version(name, shapes, expected):
    newer = next(v for v in STANDARD.find("", name).versions if v.since in {7, 8})
    b = Builder(6)
    inputs = [b.input("x", "bool" if name == "And" else "float", shape) for shape in shapes]
    with pytest.raises(Unconvertible, match=expected):
        newer.behaviours["downgrade"](b, *inputs)
