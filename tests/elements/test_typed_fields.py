# ruff: file-ignore[banned-api]  onnx is the oracle
"""Elements in typed fields, compared with onnx and with entries computed by hand."""

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sabir.elements as se
from sabir.base import WireError
from sabir.elements import ELEMENTS, field_size, from_field, to_field

NUMERIC = [kind for kind in ELEMENTS if kind is not se.STRING]
every_number = pytest.mark.parametrize("kind", NUMERIC, ids=str)
counts = pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8, 101])


def bits_of(array):
    return np.ascontiguousarray(array).view(np.uint8).tolist()


def sample(kind, count, seed=0):
    rng = np.random.default_rng(seed)
    if kind is se.BOOL:
        return rng.integers(0, 2, count).astype(np.bool_)
    codes = rng.integers(0, 256, count * kind.dtype.itemsize, np.uint8)
    return (codes & ((1 << min(kind.bits, 8)) - 1)).view(kind.dtype)


def writable_by_onnx(kind, array):
    """Return `array` less the float8 values that onnx's writer, which converts them anew, changes.

    These are NaNs, and the least of E8M0, whose float32 is subnormal and comes out doubled.
    """
    if not kind.name.startswith("float8"):
        return array
    changed = np.isnan(array) | ((kind is se.FLOAT8E8M0) & (array.view(np.uint8) == 0))
    return np.where(changed, np.ones_like(array), array)


def entries(kind, tensor):
    return list(getattr(tensor, kind.field))


@every_number
@given(seed=st.integers(0, 1 << 32), count=st.integers(0, 33))
def test_to_field_then_from_field_keeps_every_bit(kind, seed, count):
    array = sample(kind, count, seed)
    stored = to_field(kind, array)
    assert len(stored) == field_size(kind, count)
    back = from_field(kind, stored, count)
    assert back.dtype == kind.dtype
    assert back.shape == (count,)
    assert bits_of(back) == bits_of(array)


@every_number
@counts
def test_to_field_writes_what_onnx_writes(kind, count):
    array = writable_by_onnx(kind, sample(kind, count))
    tensor = onnx.helper.make_tensor("x", kind.number, array.shape, array)
    np.testing.assert_array_equal(to_field(kind, array), entries(kind, tensor))


@every_number
@counts
def test_from_field_reads_what_onnx_reads(kind, count):
    array = writable_by_onnx(kind, sample(kind, count, seed=1))
    tensor = onnx.helper.make_tensor("x", kind.number, array.shape, array)
    expected = onnx.numpy_helper.to_array(tensor)
    for values in (getattr(tensor, kind.field), entries(kind, tensor), tuple(entries(kind, tensor))):
        back = from_field(kind, values, count)
        assert back.dtype == kind.dtype
        if kind.is_complex:  # a NaN half may lose its payload in Python's floats
            np.testing.assert_array_equal(back, expected)
        else:
            assert bits_of(back) == bits_of(expected)


@every_number
def test_entries_fit_the_protobuf_field(kind):
    tensor = onnx.TensorProto(data_type=kind.number, dims=[9])
    array = sample(kind, 9, seed=2)
    getattr(tensor, kind.field).extend(to_field(kind, array).tolist())
    onnx.checker.check_tensor(tensor)
    assert bits_of(onnx.numpy_helper.to_array(tensor)) == bits_of(array)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (se.INT4, [1, 0, 1, 1, 1], [0x01, 0x11, 0x01]),
        (se.INT2, [1, -1, -2, 0, 1], [0x2D, 0x01]),
        (se.FLOAT4E2M1, [1, 0, 1, 1, 1], [0x02, 0x22, 0x02]),
        (se.FLOAT6E2M3, [7.5, -0.125], [0x1F, 0x21]),
        (se.FLOAT6E3M2, [28, -0.0625], [0x1F, 0x21]),
        (se.FLOAT16, [1, -0.0], [0x3C00, 0x8000]),
        (se.BFLOAT16, [1, -2], [0x3F80, 0xC000]),
        (se.FLOAT8E8M0, [1, 2], [0x7F, 0x80]),
        (se.FLOAT8E5M2, [-np.inf], [0xFC]),
        (se.COMPLEX64, [1 + 2j, 3j], [1, 2, 0, 3]),
        (se.COMPLEX128, [1 + 2j, 3j], [1, 2, 0, 3]),
        (se.UINT32, [0xFFFFFFFF], [0xFFFFFFFF]),
        (se.UINT64, [(1 << 64) - 1], [(1 << 64) - 1]),
        (se.INT8, [-128, 127], [-128, 127]),
        (se.BOOL, [True, False], [1, 0]),
    ],
    ids=str,
)
def test_entries_by_hand(kind, values, expected):
    wide = np.array(values)
    array = wide.astype(np.float32).astype(kind.dtype) if kind.is_float else wide.astype(kind.dtype)
    assert to_field(kind, array).tolist() == expected
    assert bits_of(from_field(kind, expected, len(values))) == bits_of(array)


FIELD_DTYPES = {
    "float_data": np.float32,
    "double_data": np.float64,
    "int32_data": np.int32,
    "int64_data": np.int64,
    "uint64_data": np.uint64,
}


@every_number
def test_entries_have_the_fields_dtype(kind):
    assert to_field(kind, sample(kind, 3)).dtype == FIELD_DTYPES[kind.field]


@every_number
def test_results_refuse_writes_and_leave_the_callers_array_alone(kind):
    stored = to_field(kind, sample(kind, 5)).copy()
    assert not from_field(kind, stored, 5).flags.writeable
    assert stored.flags.writeable


@pytest.mark.parametrize(
    "kind", [se.FLOAT, se.DOUBLE, se.INT32, se.INT64, se.UINT64, se.COMPLEX64, se.COMPLEX128], ids=str
)
def test_no_copy_where_the_layouts_agree(kind):
    array = sample(kind, 6)
    stored = to_field(kind, array)
    assert np.shares_memory(stored, array)
    assert np.shares_memory(from_field(kind, stored, 6), array)


def test_signalling_nans_survive_in_arrays():
    array = np.array([0x7FA00001], np.uint32).view(np.float32)
    assert bits_of(from_field(se.FLOAT, to_field(se.FLOAT, array), 1)) == bits_of(array)


def test_arrays_of_any_layout():
    array = np.arange(6, dtype=">i8").reshape(2, 3).T
    assert to_field(se.INT64, array).tolist() == [0, 3, 1, 4, 2, 5]
    assert from_field(se.INT8, np.arange(6, dtype=">i8")[::2], 3).tolist() == [0, 2, 4]
    assert from_field(se.FLOAT, np.arange(6, dtype=">f4")[::2], 3).tolist() == [0, 2, 4]
    assert from_field(se.COMPLEX64, np.arange(8, dtype="<f4")[::2], 2).tolist() == [0 + 2j, 4 + 6j]


def test_bytes_are_a_sequence_of_integers():
    assert from_field(se.UINT8, b"\1\2\3\4\5\6\7\10", 8).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    "number", [list, lambda values: np.array(values, dtype=np.int64)], ids=["list", "array"]
)
@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (se.INT8, -128, 127),
        (se.UINT8, 0, 255),
        (se.INT16, -(1 << 15), (1 << 15) - 1),
        (se.UINT16, 0, (1 << 16) - 1),
        (se.INT32, -(1 << 31), (1 << 31) - 1),
        (se.UINT32, 0, (1 << 32) - 1),
        (se.BOOL, 0, 1),
        (se.FLOAT16, 0, 0xFFFF),
        (se.BFLOAT16, 0, 0xFFFF),
        (se.FLOAT8E8M0, 0, 0xFF),
        (se.FLOAT6E2M3, 0, 63),
        (se.FLOAT6E3M2, 0, 63),
    ],
    ids=str,
)
def test_range_limits(kind, low, high, number):
    assert from_field(kind, number([low, high]), 2).shape == (2,)
    for value in (low - 1, high + 1):
        told = rf"entry 1 of {kind.field} is {value}, outside the {low} to {high} that {kind} elements"
        with pytest.raises(WireError, match=told):
            from_field(kind, number([low, value]), 2)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (se.INT64, 1 << 63),
        (se.UINT64, -1),
        (se.UINT64, 1 << 64),
        (se.INT8, 70000),
        (se.INT8, 1 << 80),
        (se.UINT2, 256),
        (se.INT4, -1),
        (se.FLOAT4E2M1, 1 << 31),
    ],
)
def test_out_of_range_entries_are_named(kind, value):
    with pytest.raises(WireError, match=rf"entry 0 of {kind.field} is {value}, .* {kind} elements"):
        from_field(kind, [value], 1)


@pytest.mark.parametrize("kind", [se.INT32, se.UINT64, se.FLOAT16, se.FLOAT], ids=str)
@pytest.mark.parametrize("value", ["1", None, b"1"])
def test_entries_of_another_kind(kind, value):
    with pytest.raises(WireError, match=f"{kind.field} of {kind} has an entry it cannot hold"):
        from_field(kind, [value], 1)


def test_fractions_are_not_cut_to_integers():
    with pytest.raises(WireError, match="int32_data of int8 has an entry it cannot hold"):
        from_field(se.INT8, [1.5], 1)


def test_integers_too_large_for_a_float():
    with pytest.raises(WireError, match="double_data of double has an entry it cannot hold"):
        from_field(se.DOUBLE, [10**400], 1)


@pytest.mark.parametrize(
    ("kind", "dtype"), [(se.INT8, np.float32), (se.FLOAT, np.float64), (se.FLOAT16, np.float16)], ids=str
)
def test_arrays_of_another_kind(kind, dtype):
    with pytest.raises(WireError, match=rf"{kind.field} of {kind} holds .*, found '{np.dtype(dtype)}'"):
        from_field(kind, np.zeros(1, dtype), 1)


@every_number
@pytest.mark.parametrize("extra", [-1, 1])
@pytest.mark.parametrize("holder", [list, np.array], ids=["list", "array"])
def test_wrong_entry_counts(kind, extra, holder):
    size = field_size(kind, 9)
    found = size + extra
    told = f"9 elements of {kind} take {size} entries of {kind.field}, found {found}$"
    with pytest.raises(WireError, match=told):
        from_field(kind, holder([0] * found), 9)


def test_entries_of_an_array_are_counted_whatever_its_shape():
    with pytest.raises(WireError, match="2 elements of int32 take 2 entries of int32_data, found 6"):
        from_field(se.INT32, np.zeros((2, 3), np.int32), 2)


@pytest.mark.parametrize("kind", [se.INT4, se.UINT2], ids=str)
def test_one_small_element_an_entry_is_refused(kind):
    with pytest.raises(WireError, match="found 8"):
        from_field(kind, [1] * 8, 8)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (se.INT4, [0, 1, 1, 2, 2, 3]),
        (se.UINT2, [0, 1, 1, 1, 1, 2]),
        (se.FLOAT6E2M3, [0, 1, 2, 3, 4, 5]),
        (se.COMPLEX64, [0, 2, 4, 6, 8, 10]),
        (se.STRING, [0, 1, 2, 3, 4, 5]),
    ],
    ids=str,
)
def test_field_size(kind, sizes):
    assert [field_size(kind, n) for n in range(6)] == sizes


def test_field_size_of_a_negative_count():
    with pytest.raises(WireError, match="cannot have -2 elements"):
        field_size(se.FLOAT, -2)


def test_wrong_dtype_names_both():
    with pytest.raises(WireError, match="int8 elements are numpy's int8, found 'int16'"):
        to_field(se.INT8, np.zeros(2, np.int16))
