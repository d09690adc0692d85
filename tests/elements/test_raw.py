# ruff: file-ignore[banned-api]  onnx is the oracle
"""Elements in raw bytes, compared with onnx and with bytes computed by hand."""

import mmap

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sabir.elements as se
from sabir.base import WireError
from sabir.elements import ELEMENTS, element_count, pack, packed_size, unpack

RAW = [kind for kind in ELEMENTS if kind is not se.STRING]
WHOLE = [kind for kind in RAW if not kind.is_packed]
SMALL = [kind for kind in RAW if kind.is_packed]
every_raw = pytest.mark.parametrize("kind", RAW, ids=str)
every_whole = pytest.mark.parametrize("kind", WHOLE, ids=str)
every_small = pytest.mark.parametrize("kind", SMALL, ids=str)


def bits_of(array):
    """Return the codes of an array's elements, for comparing NaNs and signed zeros."""
    return np.ascontiguousarray(array).view(np.uint8).tolist()


def sample(kind, count, seed=0):
    """Return `count` elements of random bit patterns, every pattern alike likely."""
    rng = np.random.default_rng(seed)
    if kind is se.BOOL:
        return rng.integers(0, 2, count).astype(np.bool_)
    codes = rng.integers(0, 256, count * kind.dtype.itemsize, np.uint8)
    return (codes & ((1 << min(kind.bits, 8)) - 1)).view(kind.dtype)


def onnx_tensor(kind, array):
    return onnx.helper.make_tensor("x", kind.number, array.shape, array, raw=True)


@every_raw
@given(seed=st.integers(0, 1 << 32), count=st.integers(0, 33))
def test_pack_then_unpack_keeps_every_bit(kind, seed, count):
    array = sample(kind, count, seed)
    packed = pack(kind, array)
    assert packed.nbytes == packed_size(kind, count)
    back = unpack(kind, packed, count)
    assert back.dtype == kind.dtype
    assert back.shape == (count,)
    assert bits_of(back) == bits_of(array)


@every_raw
@given(data=st.binary(min_size=48, max_size=48))
def test_unpack_then_pack_keeps_every_byte(kind, data):
    data = bytes(b & 1 for b in data) if kind is se.BOOL else data
    count = len(data) * 8 // kind.bits
    assert bytes(pack(kind, unpack(kind, data, count))) == data


@every_raw
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1001])
def test_pack_writes_what_onnx_writes(kind, count):
    array = sample(kind, count)
    assert bytes(pack(kind, array)) == onnx_tensor(kind, array).raw_data


@every_raw
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 1001])
def test_unpack_reads_what_onnx_reads(kind, count):
    tensor = onnx_tensor(kind, sample(kind, count, seed=1))
    ours = unpack(kind, tensor.raw_data, count)
    assert bits_of(ours) == bits_of(onnx.numpy_helper.to_array(tensor))


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (se.INT4, [1, 0, 1, 1, 1], "01 11 01"),
        (se.INT4, [-1, -8, 7], "8f 07"),
        (se.UINT4, [15, 8, 7], "8f 07"),
        (se.INT2, [1, -1, -2, 0, 1], "2d 01"),
        (se.UINT2, [1, 3, 2, 0, 1], "2d 01"),
        (se.FLOAT4E2M1, [1, 0, 1, 1, 1], "02 22 02"),
        (se.FLOAT4E2M1, [-0.0, 6], "78"),
        (se.FLOAT6E2M3, [7.5, 0.125, -7.5, -0.0], "5f f0 83"),
        (se.FLOAT6E3M2, [28], "1f"),
        (se.FLOAT6E3M2, [0.0625, 28], "c1 07"),
        (se.FLOAT6E3M2, [0.0625, 28, 1], "c1 c7 00"),
        (se.FLOAT8E8M0, [1, 2, 0.5], "7f 80 7e"),
        (se.FLOAT8E4M3FN, [448, -0.0], "7e 80"),
        (se.BFLOAT16, [1, -2], "80 3f 00 c0"),
        (se.FLOAT16, [1], "00 3c"),
        (se.FLOAT, [1], "00 00 80 3f"),
        (se.COMPLEX64, [1 - 2j], "00 00 80 3f 00 00 00 c0"),
        (se.UINT32, [0x01020304], "04 03 02 01"),
        (se.BOOL, [True, False], "01 00"),
    ],
    ids=str,
)
def test_bytes_by_hand(kind, values, expected):
    wide = np.array(values)
    array = wide.astype(np.float32).astype(kind.dtype) if kind.is_float else wide.astype(kind.dtype)
    assert bytes(pack(kind, array)) == bytes.fromhex(expected)
    back = unpack(kind, bytes.fromhex(expected), len(values))
    assert back.tolist() == array.tolist()
    assert bits_of(back) == bits_of(array)


@pytest.mark.parametrize("kind", [se.INT4, se.INT2], ids=str)
def test_unpacked_negatives_equal_made_ones(kind):
    low = -(1 << (kind.bits - 1))
    assert unpack(kind, bytes([0xFF]), 1)[0] == np.array([-1]).astype(kind.dtype)[0]
    assert int(unpack(kind, bytes([1 << (kind.bits - 1)]), 1)[0]) == low


@every_small
def test_pack_drops_bits_above_the_elements_own(kind):
    dirty = np.full(9, 0xFF, np.uint8).view(kind.dtype)
    clean = np.full(9, (1 << kind.bits) - 1, np.uint8).view(kind.dtype)
    assert bytes(pack(kind, dirty)) == bytes(pack(kind, clean))
    assert pack(kind, dirty)[-1] < 0xFF


@every_small
def test_unpack_looks_past_padding_bits(kind):
    assert bits_of(unpack(kind, b"\xff", 1)) == [(1 << kind.bits) - 1]


@every_whole
def test_unpack_is_a_view_that_refuses_writes(kind):
    data = bytearray(4 * kind.dtype.itemsize)
    array = unpack(kind, data, 4)
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0] = array[1]


@every_small
def test_expanded_elements_refuse_writes(kind):
    assert not unpack(kind, bytes(packed_size(kind, 4)), 4).flags.writeable


@every_whole
def test_pack_is_a_view_of_the_array(kind):
    array = sample(kind, 6).reshape(2, 3)
    packed = pack(kind, array)
    assert np.shares_memory(np.frombuffer(packed, np.uint8), array)
    assert packed.readonly
    assert packed.format == "B"
    assert packed.ndim == 1


@every_raw
def test_pack_reads_in_c_order(kind):
    array = sample(kind, 15).reshape(3, 5)
    expected = bytes(pack(kind, array))
    assert bytes(pack(kind, np.asfortranarray(array))) == expected
    assert bytes(pack(kind, np.repeat(array, 2, axis=1)[:, ::2])) == expected


@pytest.mark.parametrize("code", ["f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8", "c8", "c16"])
def test_pack_turns_big_endian_arrays(code):
    little = sample(se.element(np.dtype(code)), 5).astype(f"<{code}")
    big = little.astype(f">{code}")
    assert bytes(pack(se.element(big.dtype), big)) == little.tobytes()


def test_scalars_pack_as_one_element():
    assert bytes(pack(se.INT16, np.array(-2, np.int16))) == b"\xfe\xff"
    assert bytes(pack(se.INT4, np.array(-2).astype(se.INT4.dtype))) == b"\x0e"


@pytest.mark.parametrize("holder", [bytes, bytearray, memoryview], ids=lambda h: h.__name__)
def test_unpack_takes_any_bytes(holder):
    assert unpack(se.INT16, holder(b"\1\0\2\0"), 2).tolist() == [1, 2]


def test_unpack_takes_memory_maps_and_odd_offsets():
    with mmap.mmap(-1, 8) as mapped:
        mapped[:] = bytes(range(8))
        assert unpack(se.UINT32, mapped, 2).tolist() == [0x03020100, 0x07060504]
        assert unpack(se.UINT32, memoryview(mapped)[1:5], 1).tolist() == [0x04030201]


def test_odd_bool_bytes_become_true():
    array = unpack(se.BOOL, b"\0\1\2\xff", 4)
    assert bits_of(array) == [0, 1, 1, 1]
    assert not array.flags.writeable


@every_raw
def test_no_elements(kind):
    assert unpack(kind, b"", 0).shape == (0,)
    assert unpack(kind, b"", 0).dtype == kind.dtype
    assert bytes(pack(kind, np.empty((0, 3), kind.dtype))) == b""


@every_raw
@pytest.mark.parametrize("extra", [-1, 1])
def test_wrong_lengths(kind, extra):
    size = packed_size(kind, 7)
    found = size + extra
    with pytest.raises(WireError, match=f"7 elements of {kind} take {size} bytes, found {found}$"):
        unpack(kind, bytes(found), 7)


def test_lengths_are_counted_in_bytes_not_items():
    wide = memoryview(np.arange(2, dtype=np.int32))
    assert unpack(se.INT32, wide, 2).tolist() == [0, 1]
    with pytest.raises(WireError, match="take 2 bytes, found 8"):
        unpack(se.INT8, wide, 2)


def test_enormous_counts_are_refused_before_memory_is_taken():
    with pytest.raises(WireError, match=f"take {1 << 61} bytes, found 3"):
        unpack(se.INT4, b"abc", 1 << 62)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (se.UINT2, [0, 1, 1, 1, 1, 2]),
        (se.INT4, [0, 1, 1, 2, 2, 3]),
        (se.FLOAT6E3M2, [0, 1, 2, 3, 3, 4]),
        (se.BOOL, [0, 1, 2, 3, 4, 5]),
        (se.COMPLEX128, [0, 16, 32, 48, 64, 80]),
    ],
    ids=str,
)
def test_packed_size(kind, sizes):
    assert [packed_size(kind, n) for n in range(6)] == sizes


def test_packed_size_of_a_negative_count():
    with pytest.raises(WireError, match="cannot have -1 elements"):
        packed_size(se.FLOAT, -1)


def test_strings_have_no_raw_form():
    with pytest.raises(WireError, match="string_data"):
        packed_size(se.STRING, 1)
    with pytest.raises(WireError, match="string_data"):
        unpack(se.STRING, b"", 0)
    with pytest.raises(WireError, match="string_data"):
        pack(se.STRING, np.array(["a"], object))


@pytest.mark.parametrize(("kind", "dtype"), [(se.FLOAT, "float64"), (se.INT4, "int8"), (se.BOOL, "uint8")])
def test_wrong_dtype_names_both(kind, dtype):
    with pytest.raises(WireError, match=rf"{kind} elements are numpy's {kind.dtype}, found '{dtype}'"):
        pack(kind, np.zeros(2, dtype))


@pytest.mark.parametrize(
    ("shape", "count"), [((), 1), ((2, 3), 6), ((2**62, 0), 0), ((-2, 3), -6), ((2**32, 2**31), 2**63)]
)
def test_elements_are_counted(shape, count):
    assert element_count(shape) == count


def test_a_million_dimensions_are_too_many_at_once():
    assert element_count([2**62] * 1_000_000) > 2**64
