"""Versions of models: the packing of versioning.txt, and what a model cannot store."""

import copy
import pickle  # ruff: ignore[suspicious-pickle-import]  our own objects

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sabir
from sabir import ModelVersion, SchemaError

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
SEMVER_NUMBERS = NUMBERS.filter(lambda number: not 0 <= number < 1 << 32)
VERSIONS = SEMVER_NUMBERS.map(ModelVersion.unpack)
PACKED = [
    ((1, 2, 345), 0x0001000200000159),  # the example of the text
    ((0, 1, 0), 0x0000000100000000),
    ((1, 0, 0), 0x0001000000000000),
    ((0, 1, 4294967295), 0x00000001FFFFFFFF),
    ((32767, 65535, 4294967295), 0x7FFFFFFFFFFFFFFF),
    ((32768, 0, 0), -0x8000000000000000),  # the sign bit is the highest of the major version
    ((32768, 0, 1), -0x7FFFFFFFFFFFFFFF),
    ((65535, 0, 0), -0x0001000000000000),
    ((65535, 65535, 4294967295), -1),
]


@pytest.mark.parametrize(("parts", "number"), PACKED)
def test_packing(parts, number):
    version = ModelVersion(*parts)
    assert version.packed == int(version) == number
    assert ModelVersion.unpack(number) == version
    assert (version.major, version.minor, version.patch) == parts


@given(SEMVER_NUMBERS)
def test_every_number_that_is_not_simple_is_one_version(number):
    version = ModelVersion.unpack(number)
    assert version.packed == number
    assert ModelVersion.parse(str(version)) == version


@given(st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 4294967295))
def test_every_version_is_one_number(major, minor, patch):
    if not major and not minor:
        major = 1
    version = ModelVersion(major, minor, patch)
    number = version.packed
    assert -(1 << 63) <= number < 1 << 63
    assert not ModelVersion.is_simple(number)
    # the bytes of the field, from the most significant one
    assert number.to_bytes(8, "big", signed=True) == (
        major.to_bytes(2, "big") + minor.to_bytes(2, "big") + patch.to_bytes(4, "big")
    )
    assert ModelVersion.unpack(number) == version


@given(st.integers(0, (1 << 32) - 1))
def test_simple_numbers(number):
    assert ModelVersion.is_simple(number)
    model = sabir.Model(version=number)
    assert model.semver is None
    assert model.version == number
    with pytest.raises(SchemaError, match=f"{number} is a simple number"):
        ModelVersion.unpack(number)


def test_text():
    assert str(ModelVersion(1, 2, 345)) == f"{ModelVersion(1, 2, 345)}" == "1.2.345"
    assert repr(ModelVersion(1, 2, 345)) == "ModelVersion(major=1, minor=2, patch=345)"
    assert ModelVersion.parse("1.2.345") == ModelVersion(1, 2, 345)
    assert ModelVersion.parse("65535.65535.4294967295").packed == -1


def test_order_is_that_of_the_parts():
    texts = ["0.1.0", "0.1.1", "0.2.0", "0.10.0", "1.0.0", "1.2.345", "1.10.0", "2.0.0", "32768.0.0"]
    versions = [ModelVersion.parse(text) for text in texts]
    assert sorted([*versions[4:], *versions[:4]]) == versions
    assert versions[-1] > versions[0]
    assert versions[-1].packed < versions[0].packed  # the numbers have another order
    with pytest.raises(TypeError):
        _ = versions[0] < 3  # pyright: ignore[reportOperatorIssue]  the error is tested


def test_it_is_a_value():
    version = ModelVersion(1, 2, 3)
    assert {version: "a"}[ModelVersion.parse("1.2.3")] == "a"
    assert version != (1, 2, 3)
    assert copy.deepcopy(version) == version
    assert pickle.loads(pickle.dumps(version)) == version  # ruff: ignore[suspicious-pickle-usage]  as above
    with pytest.raises(AttributeError):
        version.major = 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.2", "'1.2' is not a semantic version; write MAJOR.MINOR.PATCH, such as 1.2.345"),
        ("", "'' is not a semantic version"),
        ("v1.2.3", "'v1.2.3' is not a semantic version"),
        ("1.2.3.4", "'1.2.3.4' is not a semantic version"),
        (" 1.2.3", "' 1.2.3' is not a semantic version"),
        ("1.2.3\n", "is not a semantic version"),
        ("-1.2.3", "'-1.2.3' is not a semantic version"),
        ("1.2.٣", "is not a semantic version"),
        ("1.2.3-rc1+x", "stores no pre-release and no build metadata; leave out '-rc1\\+x'"),
        ("1.2.3+x", "'1.2.3\\+x': .* leave out '\\+x'"),
        ("1.02.3", "'1.02.3': the minor version must not start with a zero"),
        ("65536.0.0", "the major version must be from 0 to 65535"),
        ("1.65536.0", "the minor version must be from 0 to 65535"),
        ("1.0.4294967296", "the patch version must be from 0 to 4294967295"),
        ("1.0." + "9" * 10_000, "the patch version must be from 0 to 4294967295"),
        ("0.0.7", "the simple number 7; use 0.1.0 or a later version, or the simple number 7"),
        ("0.0.0", "a model cannot have the version 0.0.0"),
    ],
)
def test_what_is_no_version(text, message):
    with pytest.raises(SchemaError, match=message):
        ModelVersion.parse(text)


@pytest.mark.parametrize("parts", [(-1, 0, 0), (65536, 0, 0), (0, 65536, 0), (1, 0, 1 << 32), (1, 0, -1)])
def test_parts_out_of_range(parts):
    with pytest.raises(SchemaError, match="version must be from 0 to"):
        ModelVersion(*parts)


@pytest.mark.parametrize("parts", [("1", 0, 0), (1, 2.0, 0), (1, 0, None), (True, 0, 0)])
def test_parts_that_are_no_numbers(parts):
    with pytest.raises(TypeError, match="version must be an int"):
        ModelVersion(*parts)


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, 1 << 20_000], ids=lambda n: n.bit_length())
def test_numbers_beyond_the_field(number):
    with pytest.raises(SchemaError, match="a signed 64-bit number"):
        ModelVersion.unpack(number)
    with pytest.raises(SchemaError, match="a signed 64-bit number"):
        _ = sabir.Model(version=number).semver


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("1.2.345", "major", "2.0.0"),
        ("1.2.345", "minor", "1.3.0"),
        ("1.2.345", "patch", "1.2.346"),
        ("0.1.0", "major", "1.0.0"),
        ("1.65535.4294967295", "major", "2.0.0"),
        ("32767.0.0", "major", "32768.0.0"),
    ],
)
def test_bump(text, part, expected):
    version = ModelVersion.parse(text)
    assert str(version.bump(part)) == expected
    assert str(version) == text


@given(VERSIONS, st.sampled_from(["major", "minor", "patch"]))
def test_a_bump_is_a_later_version_or_refused(version, part):
    largest = 4294967295 if part == "patch" else 65535
    if getattr(version, part) == largest:
        with pytest.raises(
            SchemaError, match=f"the {part} version of {version} is at its maximum, {largest}"
        ):
            version.bump(part)
    else:
        assert version.bump(part) > version


def test_a_bump_of_no_part():
    with pytest.raises(SchemaError, match="no part 'minr'; is it 'minor'\\?"):
        ModelVersion(1, 0, 0).bump("minr")
    with pytest.raises(SchemaError, match="no part 'x'; the parts are major, minor, patch"):
        ModelVersion(1, 0, 0).bump("x")


def test_of_a_model():
    model = sabir.Model()
    assert (model.version, model.semver) == (0, None)
    model.semver = ModelVersion.parse("1.2.345")
    assert model.version == 0x0001000200000159
    assert model.semver == ModelVersion(1, 2, 345)
    assert model.clone().semver == model.semver
    with pytest.raises(TypeError, match=r"must be a ModelVersion, as ModelVersion\.parse returns it"):
        model.semver = "1.2.346"
    with pytest.raises(TypeError, match="a simple number is assigned to model.version"):
        model.semver = None
    assert model.version == 0x0001000200000159


@pytest.mark.parametrize("kind", ["protobuf", "textproto", "json", "onnxtxt"])
@pytest.mark.parametrize("text", ["1.2.345", "40000.0.1"])
def test_in_a_file(kind, text):
    b = sabir.Builder(17)
    b.output(b.Relu(b.input("x", "float", [2])), "y")
    model = b.model()
    model.semver = ModelVersion.parse(text)
    again = sabir.loads(sabir.dumps(model, format=kind), format=kind)
    assert str(again.semver) == text
    assert again.version == model.version
    sabir.check(again)
