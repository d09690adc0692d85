"""The fields of records: their places, and their loads in the text of native functions."""

import ctypes

import numpy as np
import pytest

from sabir.compilation.native import host
from sabir.compilation.native._records import Record, fields, native_function, with_fields

PAIR = fields("first", "second")


def test_fields_are_loaded_and_located_by_their_names():
    text = "  %a = field i64 %pair.first\n  %b = field ptr %pair.second\n  %c = field at %pair.second"
    assert with_fields(text, pair=PAIR).splitlines() == [
        "  %a = load i64, ptr %pair",
        "  %b_at = getelementptr i64, ptr %pair, i64 1",
        "  %b = load ptr, ptr %b_at",
        "  %c = getelementptr i64, ptr %pair, i64 1",
    ]


@pytest.mark.parametrize("access", ["%pair.third", "%other.first"])
def test_a_field_that_a_record_lacks_is_an_error(access):
    with pytest.raises(KeyError):
        with_fields(f"  %a = field i64 {access}", pair=PAIR)


def test_a_native_function_reads_the_numbers_of_a_record():
    text = """
define i64 @kernel(ptr %pair) {
  %a = field i64 %pair.first
  %b = field i64 %pair.second
  %d = sub i64 %a, %b
  ret i64 %d
}
"""
    function = native_function(with_fields(text, pair=PAIR), host(), ctypes.c_int64)
    record = Record([7, 9])
    assert function(record.address) == -2
    record.numbers[PAIR["second"]] = 3
    assert function(record.address) == 4
    assert native_function(with_fields(text, pair=PAIR), host(), ctypes.c_int64) is function
    assert np.frombuffer(record.numbers, np.int64).ctypes.data == record.address
