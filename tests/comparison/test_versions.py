"""The declared versions: semantic ones, simple numbers, and which are enough."""

import pytest

import sabir
from sabir.comparison import version_text
from sabir.comparison._versions import is_enough, least_version, semantic
from sabir.ir import ModelVersion


def packed(major, minor, patch):
    return ModelVersion(major, minor, patch).packed


def test_the_example_of_the_standard():
    assert semantic(0x0001_0002_0000_0159) == ModelVersion(1, 2, 345)
    assert version_text(0x0001_0002_0000_0159) == "1.2.345"


def test_the_upper_four_bytes_tell_the_scheme():
    assert semantic(0xFFFF_FFFF) is None
    assert version_text(7) == "7"
    assert semantic(1 << 32) == ModelVersion(0, 1, 0)
    assert semantic(-1) == ModelVersion(0xFFFF, 0xFFFF, 0xFFFF_FFFF)  # the field is signed


@pytest.mark.parametrize(
    ("old", "new", "major", "minor", "patch"),
    [
        ((1, 2, 3), (2, 0, 0), True, True, True),
        ((1, 2, 3), (1, 3, 0), False, True, True),
        ((1, 2, 3), (1, 2, 4), False, False, True),
        ((1, 2, 3), (1, 2, 3), False, False, False),
        ((1, 2, 3), (1, 1, 9), False, False, False),
        ((1, 2, 3), (0, 9, 9), False, False, False),
        ((0, 1, 0), (0, 2, 0), False, True, True),  # MAJOR 0 is no exception
    ],
)
def test_semantic_versions(old, new, major, minor, patch):
    enough = [is_enough(packed(*old), packed(*new), bump) for bump in ("major", "minor", "patch")]
    assert enough == [major, minor, patch]
    assert is_enough(packed(*old), packed(*new), None)


def test_simple_numbers_increase():
    for bump in ("major", "minor", "patch"):
        assert is_enough(7, 8, bump)
        assert not is_enough(7, 7, bump)
        assert not is_enough(7, 6, bump)
        assert is_enough(7, packed(1, 0, 0), bump)
        assert not is_enough(packed(1, 0, 0), 8, bump)


def test_the_least_version_that_is_enough():
    old = packed(1, 2, 3)
    assert [version_text(least_version(old, b)) for b in ("major", "minor", "patch")] == [
        "2.0.0",
        "1.3.0",
        "1.2.4",
    ]
    assert least_version(7, "major") == 8
    assert least_version(0xFFFF_FFFF, "patch") is None  # one more would be MAJOR 0, MINOR 1
    assert least_version(packed(0xFFFF, 1, 0), "major") is None
    for bump in ("major", "minor", "patch"):
        assert is_enough(old, least_version(old, bump), bump)


def models(old_version, new_version, *, op="Neg"):
    header = '<ir_version: 10, opset_import: ["" : 21], model_version: {}> g (float[2] x) => (float[2] y) '
    return [
        sabir.parse(header.format(version) + f"{{ y = {name} (x) }}")
        for version, name in ((old_version, "Relu"), (new_version, op))
    ]


def test_a_comparison_says_what_to_declare():
    comparison = sabir.compare(*models(packed(1, 2, 3), packed(1, 2, 3)))
    assert (comparison.required, comparison.is_enough) == ("patch", False)
    assert comparison.declared == (packed(1, 2, 3), packed(1, 2, 3))
    assert str(comparison).splitlines() == [
        "patch  graph/node[0] 'Neg': Neg is new",
        "patch  graph/node[0] 'Relu': Relu is gone",
        "the version must increase PATCH, and does not: 1.2.3, then 1.2.3; declare 1.2.4 or later",
    ]
    assert sabir.compare(*models(packed(1, 2, 3), packed(1, 2, 4))).is_enough
    assert sabir.compare(*models(5, 6)).is_enough
    assert "no version is large enough" in str(sabir.compare(*models(0xFFFF_FFFF, 0xFFFF_FFFF)))


def test_without_a_change_any_version_is_enough():
    comparison = sabir.compare(*models(9, 3, op="Relu"))
    assert (comparison.changes, comparison.required, comparison.reasons) == ((), None, ())
    assert comparison.is_enough
    assert str(comparison) == "no change; nothing requires another version (declared: 9, then 3)"


def test_many_changes_of_a_kind_are_counted():
    old, new = models(1, 2)
    for index in range(8):
        new.graph.add_input(f"z{index}", sabir.ir.tensor_type("float"))
    comparison = sabir.compare(old, new)
    shown = str(comparison).splitlines()
    assert len(comparison.reasons) == 8
    assert len(list(comparison.report())) == 11
    assert shown[4].endswith("the input 'z4' is new, and has no default")
    assert shown[5] == "major  3 more changes of this kind: a new input without a default"
    assert len(shown) == 9
