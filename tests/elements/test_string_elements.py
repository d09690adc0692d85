# ruff: file-ignore[banned-api]  onnx is the oracle
"""Strings: UTF-8 bytes in `string_data`, `str` in arrays."""

import numpy as np
import onnx.numpy_helper
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabir.base import WireError
from sabir.elements import STRING, from_field, to_field

text = st.text(st.characters(codec="utf-8"))


@given(st.lists(text))
def test_round_trip(values):
    array = np.empty(len(values), object)
    array[:] = values
    stored = to_field(STRING, array)
    assert stored == [value.encode() for value in values]
    back = from_field(STRING, stored, len(values))
    assert back.dtype == np.dtype(object)
    assert back.shape == (len(values),)
    assert back.tolist() == values
    assert not back.flags.writeable


def test_onnx_agrees():
    array = np.array([["a", ""], ["é", "日本"]], object)
    tensor = onnx.numpy_helper.from_array(array)
    assert to_field(STRING, array) == list(tensor.string_data)
    assert from_field(STRING, tensor.string_data, 4).tolist() == array.reshape(-1).tolist()


@pytest.mark.parametrize(
    "array", [np.array(["ab", "c"]), np.array(["ab", "c"], object), np.array(["ab", "c"])[:, None]]
)
def test_arrays_that_hold_text(array):
    assert to_field(STRING, array) == [b"ab", b"c"]


def test_any_bytes_are_taken():
    assert from_field(STRING, (b"a", bytearray(b"b"), memoryview(b"c")), 3).tolist() == ["a", "b", "c"]


def test_invalid_utf8_tells_where():
    with pytest.raises(WireError, match=r"string 1 is not UTF-8 at byte 2: invalid start byte in b'ab\\xff'"):
        from_field(STRING, [b"fine", b"ab\xff"], 2)


def test_surrogates_are_not_utf8():
    with pytest.raises(WireError, match="string 0 is not UTF-8 at byte 0"):
        from_field(STRING, [b"\xed\xa0\x80"], 1)
    with pytest.raises(WireError, match="string 1 has no UTF-8 form"):
        to_field(STRING, np.array(["a", "\ud800"], object))


@pytest.mark.parametrize("value", ["text", 3, None])
def test_entries_must_be_bytes(value):
    with pytest.raises(WireError, match="string 0 should be bytes"):
        from_field(STRING, [value], 1)


@pytest.mark.parametrize("value", [b"bytes", 3, None])
def test_elements_must_be_str(value):
    with pytest.raises(WireError, match="string 1 should be str"):
        to_field(STRING, np.array(["a", value], object))


@pytest.mark.parametrize("dtype", ["S1", "f4"])
def test_arrays_of_other_dtypes(dtype):
    with pytest.raises(WireError, match="string elements are str in numpy's object, found"):
        to_field(STRING, np.zeros(1, dtype))


@pytest.mark.parametrize("count", [0, 2])
def test_wrong_counts(count):
    with pytest.raises(
        WireError, match=f"{count} elements of string take {count} entries of string_data, found 1"
    ):
        from_field(STRING, [b"a"], count)
