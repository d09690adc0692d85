# ruff: file-ignore[banned-api]  onnx is the oracle
"""What an element type says of itself, and how it is found."""

import copy
import pickle  # ruff: ignore[suspicious-pickle-import]  our own bytes only

import ml_dtypes
import numpy as np
import onnx
import onnx.helper
import pytest

import sabir.elements as se
from sabir.base import SabirError, UnsupportedError, WireError
from sabir.elements import ELEMENTS, element, find_element

ENUM = {name: number for name, number in onnx.TensorProto.DataType.items() if number}


def test_every_type_of_the_enum_stands_once_in_number_order():
    assert [e.number for e in ELEMENTS] == sorted(ENUM.values())


@pytest.mark.parametrize("spelling", ENUM)
def test_constant_has_the_enums_number_and_field(spelling):
    kind = getattr(se, spelling)
    assert kind.number == ENUM[spelling]
    assert kind.field == onnx.helper.tensor_dtype_to_field(kind.number)
    assert kind.dtype == onnx.helper.tensor_dtype_to_np_dtype(kind.number)
    assert spelling in se.__all__


@pytest.mark.parametrize("kind", ELEMENTS, ids=str)
def test_name_is_the_one_of_onnx_type_strings(kind):
    parsed = onnx.parser.parse_graph(f"g ({kind.name}[1] x) => ({kind.name}[1] x) {{}}")
    assert parsed.input[0].type.tensor_type.elem_type == kind.number


def test_bits_are_what_onnx_takes_for_eight_elements():
    for kind in ELEMENTS:
        if kind is se.STRING:
            continue
        tensor = onnx.numpy_helper.from_array(np.zeros(8, np.uint8).astype(kind.dtype))
        assert kind.bits == len(tensor.raw_data), kind


def test_string_has_no_bits():
    assert se.STRING.bits == 0
    assert not se.STRING.is_packed


@pytest.mark.parametrize("kind", ELEMENTS, ids=str)
def test_kinds_agree_with_the_names(kind):
    assert kind.is_integer == kind.name.startswith(("int", "uint"))
    assert kind.is_float == kind.name.startswith(("float", "bfloat", "double"))
    assert kind.is_complex == kind.name.startswith("complex")
    assert kind.is_packed == kind.name.endswith(("int2", "int4", "e2m1", "e2m3", "float6e3m2"))


def test_signs():
    unsigned = {e for e in ELEMENTS if not e.is_signed}
    integers = {se.UINT2, se.UINT4, se.UINT8, se.UINT16, se.UINT32, se.UINT64}
    assert unsigned == integers | {se.BOOL, se.STRING, se.FLOAT8E8M0}


@pytest.mark.parametrize("kind", ELEMENTS, ids=str)
def test_one_instance_survives_copies_and_pickles(kind):
    assert copy.deepcopy(kind) is kind
    assert copy.copy(kind) is kind
    assert pickle.loads(pickle.dumps(kind)) is kind  # ruff: ignore[suspicious-pickle-usage]  our own bytes


def test_equality_and_hash_follow_the_number():
    twin = se.ElementType(1, "other", 8, np.dtype(np.uint8), "int32_data", "integer", is_signed=False)
    assert twin == se.FLOAT
    assert hash(twin) == hash(se.FLOAT)
    assert len(set(ELEMENTS)) == 28
    assert se.FLOAT != 1


def test_types_are_frozen():
    with pytest.raises(AttributeError):
        se.FLOAT.name = "double"


def test_texts():
    assert str(se.FLOAT8E4M3FN) == "float8e4m3fn"
    assert repr(se.FLOAT8E4M3FN) == "FLOAT8E4M3FN"


@pytest.mark.parametrize("kind", ELEMENTS, ids=str)
def test_found_by_each_of_its_own_marks(kind):
    marks = [kind, kind.number, np.int64(kind.number), kind.name, kind.name.upper(), kind.dtype]
    assert all(element(mark) is kind for mark in marks)
    assert element(kind.dtype.type) is kind
    assert find_element(kind.number) is kind


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (np.dtype(">f4"), se.FLOAT),
        (np.dtype(">c16"), se.COMPLEX128),
        (np.dtype("longlong"), se.INT64),
        (np.longlong, se.INT64),
        (np.intc, se.INT32),
        (ml_dtypes.bfloat16, se.BFLOAT16),
        (np.dtype("U7"), se.STRING),
        (np.dtype(">U7"), se.STRING),
        (np.dtype("S7"), se.STRING),
        (np.str_, se.STRING),
        (np.bytes_, se.STRING),
        (np.object_, se.STRING),
        (object, se.STRING),
        (str, se.STRING),
        (bool, se.BOOL),
        (float, se.DOUBLE),
    ],
)
def test_found_by_other_spellings(key, expected):
    assert element(key) is expected


@pytest.mark.parametrize("number", [0, 29, -1, 1 << 40])
def test_unknown_number(number):
    assert find_element(number) is None
    with pytest.raises(WireError, match=f"{number} is not defined"):
        element(number)


@pytest.mark.parametrize(
    "key",
    [
        "float32",
        "Float",
        "",
        "undefined",
        np.dtype("m8[s]"),
        np.dtype("V1"),
        np.dtype([("a", "f4")]),
        np.longdouble,
        np.floating,
        ml_dtypes.float8_e3m4,
        ml_dtypes.int1,
        dict,
        None,
    ],
)
def test_types_that_onnx_lacks(key):
    with pytest.raises(UnsupportedError, match="ONNX has no element type"):
        element(key)


def test_errors_are_of_the_family():
    with pytest.raises(SabirError):
        element(0)
