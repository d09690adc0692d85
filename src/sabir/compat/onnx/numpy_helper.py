"""Arrays of numpy, lists, dictionaries and optionals, to messages and back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import ml_dtypes
import numpy as np

from sabir.base import WireError
from sabir.compat.onnx import helper
from sabir.compat.onnx._tensors import number_of
from sabir.compat.onnx.external_data_helper import read_external_data, uses_external_data
from sabir.compat.onnx.onnx_ml_pb2 import (
    OptionalProto,
    SequenceProto,
    TensorProto,
)
from sabir.elements import FLOAT8E8M0, STRING, element, find_element, from_field, pack, unpack
from sabir.opsets.families.numbers.casting import converted

if TYPE_CHECKING:
    from sabir.elements import ElementType

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def to_array(tensor: Any, base_dir: str = "") -> _Array:
    """Return the elements of a TensorProto as an array of its shape; strings are `str` objects.

    `base_dir` is the directory of external data. Raises TypeError for an undefined element type, and
    ValueError for data that does not fit the type and the shape, and for segments.
    """
    if tensor.HasField("segment"):
        raise ValueError(f"the tensor {tensor.name!r} is a segment of a larger one; join the segments first")
    if tensor.data_type == TensorProto.UNDEFINED:
        raise TypeError(f"the tensor {tensor.name!r} has the element type UNDEFINED; set `data_type`")
    kind = find_element(tensor.data_type)
    if kind is None:
        raise TypeError(
            f"the tensor {tensor.name!r} has the element type {tensor.data_type}, which ONNX does not have; "
            "set one of TensorProto.DataType"
        )
    shape = tuple(tensor.dims)
    count = math.prod(shape)
    if kind is STRING:
        return _strings(tensor.string_data, shape)
    try:
        flat = _flat(tensor, kind, count, base_dir)
    except WireError as error:
        raise ValueError(f"the tensor {tensor.name!r}: {error}") from error
    # writable, as programs change in place what they get
    return flat.reshape(shape).copy()


def from_array(array: _Array, /, name: str | None = None) -> Any:
    """Return the TensorProto of an array: numbers in `raw_data`, strings in `string_data`.

    Raises NotImplementedError for objects that are no text, ValueError for a dtype that has no element type.
    """
    given: Any = array
    if not isinstance(given, (np.ndarray, np.generic)):
        raise TypeError(f"array must be a numpy array, and is a {type(given).__name__}")
    tensor = TensorProto(dims=array.shape)
    if name:
        tensor.name = name
    values = np.asarray(cast("Any", given))
    if values.dtype == object:
        tensor.data_type = TensorProto.STRING
        tensor.string_data.extend(map(_encoded, values.ravel()))
        return tensor
    tensor.data_type = number_of(values.dtype)
    kind = element(values.dtype)
    if kind is STRING:
        tensor.string_data.extend(map(_encoded, values.ravel().tolist()))
    else:
        native = values.astype(values.dtype.newbyteorder("="), copy=False)
        tensor.raw_data = bytes(pack(kind, native))
    return tensor


def to_list(sequence: Any) -> list[Any]:
    """Return the elements of a SequenceProto; raises TypeError for elements of no type."""
    readers = {
        SequenceProto.TENSOR: ("tensor_values", to_array),
        SequenceProto.SPARSE_TENSOR: ("sparse_tensor_values", _sparse_to_array),
        SequenceProto.SEQUENCE: ("sequence_values", to_list),
        SequenceProto.MAP: ("map_values", to_dict),
        SequenceProto.OPTIONAL: ("optional_values", to_optional),
    }
    if sequence.elem_type not in readers:
        raise TypeError(
            f"the sequence {sequence.name!r} has the element type {sequence.elem_type}, and cannot be read; "
            "set one of SequenceProto.DataType other than UNDEFINED"
        )
    field, read = readers[sequence.elem_type]
    return [read(item) for item in getattr(sequence, field)]


def from_list(lst: list[Any], name: str | None = None, dtype: int | None = None) -> Any:
    """Return the SequenceProto of a list of arrays, numbers, lists or dictionaries of one kind.

    `dtype` is a SequenceProto.DataType: the kind of the elements of an empty list. Raises TypeError for
    elements of different kinds.
    """
    kind = _kind_of_items(lst, dtype)
    if lst and any(isinstance(item, dict) != isinstance(lst[0], dict) for item in lst):
        raise TypeError(_MIXED.format("element", "list"))
    if kind == SequenceProto.TENSOR:
        arrays = [np.asarray(item) for item in lst]
        if len({array.dtype for array in arrays}) > 1:
            raise TypeError(_MIXED.format("element", "list"))
        values = [from_array(array) for array in arrays]
    else:
        kinds: set[Any] = {type(item) for item in lst}
        if len(kinds) > 1:
            raise TypeError(_MIXED.format("element", "list"))
        make: dict[Any, Any] = {
            SequenceProto.SEQUENCE: from_list,
            SequenceProto.MAP: from_dict,
            SequenceProto.OPTIONAL: from_optional,
        }
        if kind not in make:
            raise TypeError(
                f"a list cannot be a sequence of the type {kind}; take TENSOR, SEQUENCE, MAP or OPTIONAL"
            )
        values = [make[kind](item) for item in lst]
    return _named(helper.make_sequence("", kind, values), name)


def to_dict(map_proto: Any) -> dict[Any, Any]:
    """Return the keys and values of a MapProto; raises IndexError where their numbers differ."""
    keys = (
        [key.decode("utf-8") for key in map_proto.string_keys]
        if map_proto.key_type == TensorProto.STRING
        else list(map_proto.keys)
    )
    values = to_list(map_proto.values)
    if len(keys) != len(values):
        raise IndexError(
            f"the map {map_proto.name!r} has {len(keys)} keys and {len(values)} values; give each key one"
        )
    return dict(zip(keys, values, strict=True))


def from_dict(dict_: dict[Any, Any], name: str | None = None) -> Any:
    """Return the MapProto of a dictionary with integer or text keys and values of one kind.

    Raises TypeError for keys or values of different types, and for other keys.
    """
    keys = list(dict_)
    if len({np.asarray(key).dtype if not isinstance(key, str) else str for key in keys}) > 1:
        raise TypeError(_MIXED.format("key", "dictionary"))
    if len({_value_kind(value) for value in dict_.values()}) > 1:
        raise TypeError(_MIXED.format("value", "dictionary"))
    if not keys:
        raise ValueError("an empty dictionary has no key type; make a MapProto with `helper.make_map`")
    text = isinstance(keys[0], str)
    key_type = TensorProto.STRING if text else number_of(np.asarray(keys[0]).dtype)
    if not text and np.asarray(keys[0]).dtype.kind not in "iu":
        raise TypeError(
            f"the keys of a map are integers or text, and these are of type {type(keys[0]).__name__}"
        )
    return _named(helper.make_map("", key_type, keys, from_list(list(dict_.values()))), name)


def to_optional(optional: Any) -> Any | None:
    """Return the value of an OptionalProto, None for an empty one; raises TypeError for an unknown kind."""
    readers = {
        OptionalProto.TENSOR: ("tensor_value", to_array),
        OptionalProto.SPARSE_TENSOR: ("sparse_tensor_value", _sparse_to_array),
        OptionalProto.SEQUENCE: ("sequence_value", to_list),
        OptionalProto.MAP: ("map_value", to_dict),
        OptionalProto.OPTIONAL: ("optional_value", to_optional),
    }
    if optional.elem_type == OptionalProto.UNDEFINED:
        return None
    if optional.elem_type not in readers:
        raise TypeError(
            f"the optional {optional.name!r} has the element type {optional.elem_type}, and cannot be read; "
            "set one of OptionalProto.DataType"
        )
    field, read = readers[optional.elem_type]
    return read(getattr(optional, field))


def from_optional(opt: Any | None, name: str | None = None, dtype: int | None = None) -> Any:
    """Return the OptionalProto of an array, a list, a dictionary, or None.

    `dtype` is an OptionalProto.DataType. Raises TypeError for another one.
    """
    if dtype is not None and dtype not in OptionalProto.DataType.values():
        raise TypeError(f"an optional has no element type {dtype}; take one of OptionalProto.DataType")
    if opt is None:
        return _named(helper.make_optional("", OptionalProto.UNDEFINED, None), name)
    kind = dtype
    if not kind:
        kind = {dict: OptionalProto.MAP, list: OptionalProto.SEQUENCE}.get(
            cast("Any", type(opt)), OptionalProto.TENSOR
        )
    make: dict[Any, Any] = {
        OptionalProto.TENSOR: _from_value,
        OptionalProto.SEQUENCE: from_list,
        OptionalProto.MAP: from_dict,
        OptionalProto.OPTIONAL: from_optional,
    }
    if kind not in make:
        raise TypeError(
            f"a value cannot be an optional of the type {kind}; take TENSOR, SEQUENCE, MAP or OPTIONAL"
        )
    return _named(helper.make_optional("", kind, make[kind](opt)), name)


def create_random_int(input_shape: tuple[int], dtype: np.dtype[Any], seed: int = 1) -> _Array:
    """Return random integers of a shape, within the range of `dtype` and of 32 bits."""
    if np.dtype(dtype).kind not in "iu":
        raise TypeError(f"the dtype {dtype} has no integers; take one such as int32")
    # the generator that recorded test data was made with
    generator = np.random.RandomState(seed)
    limits, wide = np.iinfo(dtype), np.iinfo(np.int32)
    low, high = max(limits.min, wide.min), min(limits.max, wide.max)
    return generator.randint(low, high, size=input_shape).astype(dtype)


def saturate_cast(x: _Array, dtype: np.dtype[Any]) -> _Array:
    """Return numbers rounded to the nearest one of `dtype`, with those out of range at its bounds."""
    kind = element(np.dtype(dtype))
    if kind.is_integer:
        least, most = _bounds(kind.bits, signed=kind.is_signed)
        return np.clip(np.round(x), least, most).astype(dtype)
    find: Any = ml_dtypes.finfo  # its stubs know no dtype of ml_dtypes
    info = find(dtype)
    least, most = float(info.min), float(info.max)
    return np.clip(x, least, most).astype(dtype)


def to_float8e8m0(x: _Array, saturate: bool = True, round_mode: str = "up") -> _Array:
    """Return numbers as float8e8m0, powers of two; infinity as NaN.

    `round_mode` is `up`, `down` or `nearest`. Raises ValueError for another one.
    """
    if round_mode not in {"up", "down", "nearest"}:
        raise ValueError(f"there is no round_mode {round_mode!r}; take up, down or nearest")
    numbers = np.asarray(x, np.float32)
    finite = np.where(np.isinf(numbers), np.float32(np.nan), numbers)
    return converted(finite, FLOAT8E8M0, saturate=saturate, round_mode=round_mode)


def tobytes_little_endian(array: _Array) -> bytes:
    """Return the elements of an array as little-endian bytes."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and not _IS_LITTLE):
        return array.astype(array.dtype.newbyteorder("<")).tobytes()
    return array.tobytes()


def _pack_4bitx2(array: _Array) -> np.ndarray[Any, np.dtype[np.uint8]]:  # pyright: ignore[reportUnusedFunction]  programs import it
    return _packed(array, "uint4" if array.dtype.kind != "i" else "int4", 4)


def _pack_2bitx4(array: _Array) -> np.ndarray[Any, np.dtype[np.uint8]]:  # pyright: ignore[reportUnusedFunction]  programs import it
    return _packed(array, "uint2", 2)


def _pack_6bit(values: _Array) -> np.ndarray[Any, np.dtype[np.uint8]]:  # pyright: ignore[reportUnusedFunction]  programs import it
    return _packed(values, "float6e2m3", 6)


def _packed(array: _Array, name: str, bits: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    kind = element(name)
    codes = np.ascontiguousarray(array).view(np.uint8) & np.uint8((1 << bits) - 1)
    codes = codes.view(kind.dtype) if kind.is_float else codes.astype(kind.dtype)
    return np.frombuffer(pack(kind, codes), np.uint8).copy()


_IS_LITTLE = np.little_endian
_MIXED = "the {0}s of a {1} have one type, and these have several; convert them to one"


def _flat(tensor: Any, kind: ElementType, count: int, base_dir: str) -> _Array:
    """Return the elements of a tensor in one row."""
    if uses_external_data(tensor):
        return unpack(kind, read_external_data(tensor, base_dir), count)
    if tensor.HasField("raw_data"):
        return unpack(kind, tensor.raw_data, count)
    return from_field(kind, _entries(getattr(tensor, kind.field)), count)


def _entries(field: Any) -> Any:
    return np.array(field) if len(field) else []


def _strings(data: Any, shape: tuple[int, ...]) -> _Array:
    texts = [text.decode("utf-8") for text in data]
    return np.asarray(texts, dtype=object).reshape(shape)


def _encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, bytes):
        return value
    raise NotImplementedError(
        f"an array of objects has text or bytes, and this one has a value of type {type(value).__name__}; "
        "convert it to a numeric dtype or to text"
    )


def _named(message: Any, name: str | None) -> Any:
    """Return a message with a name, or without one."""
    if name:
        message.name = name
    else:
        message.ClearField("name")
    return message


def _from_value(value: Any) -> Any:
    return from_array(np.asarray(value))


def _sparse_to_array(sparse: Any) -> Any:
    from sabir.serial import from_proto  # ruff: ignore[import-outside-top-level]  few values are sparse

    return from_proto(sparse).array()


def _kind_of_items(items: list[Any], dtype: int | None) -> int:
    if dtype:
        if dtype not in SequenceProto.DataType.values():
            raise TypeError(f"a sequence has no element type {dtype}; take one of SequenceProto.DataType")
        return dtype
    if not items:
        return SequenceProto.TENSOR
    return {dict: SequenceProto.MAP, list: SequenceProto.SEQUENCE}.get(
        cast("Any", type(items[0])), SequenceProto.TENSOR
    )


def _value_kind(value: Any) -> Any:
    kind = cast("Any", type(value))
    return kind if kind in {dict, list, str} else np.asarray(value).dtype


def _bounds(bits: int, *, signed: bool) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


__all__ = [
    "create_random_int",
    "from_array",
    "from_dict",
    "from_list",
    "from_optional",
    "saturate_cast",
    "to_array",
    "to_dict",
    "to_float8e8m0",
    "to_list",
    "to_optional",
    "tobytes_little_endian",
]
