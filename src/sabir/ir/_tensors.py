"""Tensors: constants whose data stays where it is until someone asks for an array.

A tensor has no name. `array()` and `raw()` read its data: an array, a part of a file, or a typed field.
"""

from __future__ import annotations

import math
import pickle  # ruff: ignore[suspicious-pickle-import]  for its buffers; nothing is unpickled here
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import (
    ExternalDataError,
    FileError,
    UnsupportedError,
    WireError,
    check_constant,
    hinted,
    hints,
    quote,
)
from sabir.elements import (
    ElementType,
    element,
    element_count,
    find_element,
    from_field,
    pack,
    packed_size,
    unpack,
)
from sabir.files import untruncated
from sabir.ir._contents import same_contents
from sabir.ir._types import TensorType, unknown_element

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Buffer: TypeAlias = bytes | memoryview

MAX_RANK = 64  # numpy's own limit
_MOST_BYTES = 2**63 - 1  # another limit of numpy, which applies to an array without elements too
_OUT_OF_BAND = 5  # the first pickle protocol with buffers
_LOCATING = frozenset({"location", "offset", "length", "checksum"})


class _Constant:
    """What dense and sparse tensors have in common: both are immutable, and convert to numpy arrays."""

    __slots__ = ()

    def array(self) -> Array:
        """Return the elements as an array."""
        raise NotImplementedError

    def numpy(self) -> Array:
        """Return the elements as `array` does, under the name that onnx_ir and torch have for it."""
        return self.array()

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument, bad-dunder-method-name] - numpy's protocol
        """Return the elements for numpy: `np.asarray(tensor)` shares memory where it can."""
        array = self.array()
        if copy:
            return array.astype(array.dtype if dtype is None else dtype, copy=True)
        if dtype is None or array.dtype == dtype:
            return array
        if copy is False:
            raise ValueError(f"{array.dtype} elements become {dtype} only in a copy")
        return array.astype(dtype)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


@hints(
    dtype="the element type is `element`, and its numpy dtype `element.dtype`",
    data_type=hinted("element"),
    dims=hinted("shape"),
    raw_data="raw() returns the packed elements",
    tobytes="raw() returns the packed elements",
    name="a tensor has no name; the value or attribute that it belongs to has one",
)
class Tensor(_Constant):
    """A constant: an element type, a shape of numbers, and data that is read on demand.

    Two tensors are equal where element type, shape and contents are, bit by bit; to compare or hash them
    reads their data. `np.asarray(tensor)` returns the array.
    """

    __slots__ = ()

    @property
    def element(self) -> ElementType:
        """The element type."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        raise NotImplementedError

    def array(self) -> Array:
        """Return the elements as a read-only array of the element type's dtype."""
        raise NotImplementedError

    def raw(self) -> Buffer:
        """Return the elements packed as in `raw_data`; raises WireError for strings."""
        return pack(self.element, self.array())

    @property
    def size(self) -> int:
        """The number of elements."""
        return element_count(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes of the packed elements; for strings, of their UTF-8."""
        if self.element.name == "string":
            return sum(len(s.encode()) for s in self.array().ravel().tolist())
        return packed_size(self.element, self.size)

    @property
    def type(self) -> TensorType:
        """The tensor's type."""
        return TensorType(self.element, self.shape)

    @property
    def sound_type(self) -> TensorType | None:
        """The tensor's type, or None for an unknown element type or a negative dimension."""
        type_ = self.type
        return type_ if _is_sound(type_.element.number, self.shape) else None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tensor):
            return NotImplemented
        return self.element == other.element and self.shape == other.shape and same_contents(self, other)

    def __hash__(self) -> int:
        return hash((self.element.number, self.shape))  # reads no data, which may be large or missing

    def __repr__(self) -> str:
        shown = str(TensorType(self.element, self.shape))
        if self.element.name != "string" and min(self.shape, default=0) >= 0:  # strings are not read
            shown += f", {self.nbytes:,} bytes"
        return f"{type(self).__name__}({shown})"


class ArrayTensor(Tensor):
    """A tensor over a numpy array, which must not change afterwards."""

    __slots__ = ("_array", "_element")

    def __init__(self, array: Array | np.generic) -> None:
        """Take an array of a dtype that ONNX has; raises UnsupportedError for another."""
        data = np.asarray(array)
        self._element = element(data.dtype)
        if data.dtype != self._element.dtype:
            data = data.astype(self._element.dtype)
        view = data.view()
        view.flags.writeable = False
        self._array: Array = view

    @property
    def element(self) -> ElementType:
        return self._element

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    def array(self) -> Array:
        return self._array

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayTensor, (self._array,)


class WireTensor(Tensor):
    """A tensor from a file: a `TensorProto`, whose large data may be in a mapped file.

    Nothing is decoded before it is asked for, and everything that a `TensorProto` says beside the data (its
    name, doc string, metadata, segment, unknown fields) stays in `proto` for the next save.
    """

    __slots__ = ("_type", "proto", "view")

    def __init__(self, proto: Any, view: Buffer | None = None) -> None:
        """Take a `TensorProto`, and its raw data where the message does not contain it."""
        self.proto = proto
        self.view: Buffer | None = view
        self._type: TensorType | None = None

    @property
    def element(self) -> ElementType:
        return self.type.element

    @property
    def shape(self) -> tuple[int, ...]:
        return cast("tuple[int, ...]", self.type.shape)

    @property
    def type(self) -> TensorType:
        if self._type is None:
            self._type = _type_of(self.proto.data_type, tuple(self.proto.dims))
        return self._type

    def array(self) -> Array:
        """Return the elements; raises WireError where the data does not fit the type and shape."""
        element, shape = self._decodable()
        raw = self._stored()
        if raw is not None:
            flat = unpack(element, raw, math.prod(shape))
        else:
            flat = from_field(element, getattr(self.proto, element.field), math.prod(shape))
        flat.flags.writeable = False
        return flat.reshape(shape)

    def raw(self) -> Buffer:
        raw = self._stored()
        return super().raw() if raw is None else raw

    def _stored(self) -> Buffer | None:
        """Return the raw bytes, None for a typed field; raises FileError where the file became shorter."""
        if self.view is not None:
            return untruncated(self.view)
        return self.proto.raw_data if self.proto.HasField("raw_data") else None

    def _decodable(self) -> tuple[ElementType, tuple[int, ...]]:
        element, shape = find_element(self.proto.data_type), self.shape
        if element is None:
            raise WireError(f"{self._label()}: element type {self.proto.data_type} is not in the standard")
        if min(shape, default=0) < 0:
            raise WireError(f"{self._label()}: the dimension {min(shape)} is negative")
        if len(shape) > MAX_RANK:
            raise UnsupportedError(f"{self._label()}: rank {len(shape)} is above {MAX_RANK}")
        whole = shape if 0 not in shape else [d or 1 for d in shape]
        if math.prod(whole) * element.dtype.itemsize > _MOST_BYTES:
            raise UnsupportedError(f"{self._label()}: no array can have so many elements")
        return element, shape

    def _label(self) -> str:
        return f"tensor {quote(self.proto.name)}" if self.proto.name else "a tensor without a name"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        view = self.view and untruncated(self.view)
        return _unpickled, (self.proto.SerializeToString(), _pickled(view, protocol))


@hints(**dict.fromkeys(("location", "offset", "length"), "it is among the `entries`"))
class ExternalTensor(WireTensor):
    """A tensor with its data in another file, which is opened and mapped when it is first read."""

    __slots__ = ("opener",)

    def __init__(self, proto: Any, opener: Callable[[Mapping[str, str], int], Buffer]) -> None:
        """Take a `TensorProto` and the function that opens its data, by the entries and a size in bytes."""
        super().__init__(proto)
        self.opener = opener

    @property
    def entries(self) -> dict[str, str]:
        """Where the data is: `location`, and perhaps `offset`, `length`, `checksum`."""
        return {e.key: e.value for e in self.proto.external_data}

    def place(self) -> tuple[dict[str, str], int]:
        """Return the entries, and how many bytes must be there.

        Raises ExternalDataError for duplicate entries, WireError for a type or shape without size.
        """
        element, shape = self._decodable()
        keys = [e.key for e in self.proto.external_data]
        entries: dict[Any, Any] = self.entries
        for key, value in entries.items():
            if type(key) is not str or type(value) is not str:
                raise ExternalDataError(f"external data: the entry {quote(key)} is not UTF-8")
            if key in _LOCATING and keys.count(key) > 1:
                raise ExternalDataError(f"external data: there is more than one `{key}`")
        return entries, packed_size(element, math.prod(shape))

    def _stored(self) -> Buffer | None:
        try:
            if self.view is None:
                self.view = self.opener(*self.place())
            return untruncated(self.view)
        except FileError as error:
            raise self.named(ExternalDataError(str(error))) from error
        except ExternalDataError as error:
            raise self.named(error) from error

    def named(self, error: ExternalDataError) -> ExternalDataError:
        """Return the error with the name of the tensor in front, where it has one."""
        return error.located(f"tensor {quote(self.proto.name)}") if self.proto.name else error

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle the tensor with its data, as one that is not external; raises as `raw` does."""
        proto = type(self.proto)()
        proto.CopyFrom(self.proto)
        proto.ClearField("external_data")
        proto.ClearField("data_location")
        return _unpickled, (proto.SerializeToString(), _pickled(self.raw(), protocol))


@lru_cache(1 << 10)  # the tensors of a model have few types, and a file many tensors
def _type_of(data_type: int, dims: tuple[int, ...]) -> TensorType:
    return TensorType(find_element(data_type) or unknown_element(data_type), dims)


@lru_cache(1 << 10)
def _is_sound(data_type: int, dims: tuple[int, ...]) -> bool:
    return find_element(data_type) is not None and min(dims, default=0) >= 0


def _pickled(data: Buffer | None, protocol: int) -> object:
    """Return data for a pickle; a protocol with buffers copies none of it."""
    if data is None:
        return None
    if protocol < _OUT_OF_BAND:
        return bytes(data)
    # a memoryview that exports to another one ends the process when the collector finds both in one cycle
    return pickle.PickleBuffer(cast("Buffer", np.frombuffer(data, np.uint8)))


def _unpickled(message: bytes, data: Any) -> WireTensor:
    from sabir.proto import TensorProto  # ruff: ignore[import-outside-top-level]  protobuf, which few programs without files need

    view = data if data is None or isinstance(data, bytes) else memoryview(data)
    return WireTensor(TensorProto.FromString(message), view)


@dataclass(frozen=True, slots=True, repr=False)
class SparseTensor(_Constant):
    """A tensor that stores only its elements that are not zero.

    `values` has shape [NNZ]; `indices` is int64, either [NNZ] of positions in the flattened tensor or
    [NNZ, rank] of coordinates, ascending. `shape` is that of the dense tensor. Two are equal where these are.

    >>> SparseTensor(ArrayTensor(np.float32([5])), ArrayTensor(np.int64([1])), (3,)).array()
    array([0., 5., 0.], dtype=float32)
    """

    values: Tensor
    indices: Tensor
    shape: tuple[int, ...]
    wire: bytes = field(default=b"", compare=False)

    @property
    def element(self) -> ElementType:
        """The element type of the values."""
        return self.values.element

    def array(self) -> Array:
        """Return the dense form; raises WireError for an invalid shape or indices that do not fit it."""
        self._require_shape()
        values, indices = self.values.array(), self.indices.array()
        needed = math.prod(self.shape) * values.itemsize
        check_constant(needed, values.nbytes + indices.nbytes, what="the dense form of the sparse tensor")
        dense = np.zeros(math.prod(self.shape), values.dtype)
        if indices.ndim == 1:
            flat = indices
        elif indices.ndim == 2 and indices.shape[1] == len(self.shape):  # ruff: ignore[magic-value-comparison] - a matrix of coordinates
            if (indices < 0).any() or (indices >= np.array(self.shape)).any():
                raise WireError(f"sparse tensor of shape {list(self.shape)}: an index is out of range")
            flat = indices @ np.array(
                [math.prod(self.shape[i + 1 :]) for i in range(len(self.shape))], np.int64
            )
        else:
            raise WireError(
                f"sparse tensor: indices of shape {list(indices.shape)} fit no rank of {len(self.shape)}"
            )
        if flat.shape != values.shape or (flat < 0).any() or (flat >= dense.size).any():
            raise WireError(f"sparse tensor of shape {list(self.shape)}: indices do not match the values")
        dense[flat] = values
        return dense.reshape(self.shape)

    def _require_shape(self) -> None:
        """Raise WireError or UnsupportedError where no array can have the dense shape."""
        if any(d < 0 for d in self.shape):
            raise WireError(f"sparse tensor: the dimension {min(self.shape)} is negative")
        if len(self.shape) > MAX_RANK:
            raise UnsupportedError(f"sparse tensor: rank {len(self.shape)} is above {MAX_RANK}")
        if math.prod(d or 1 for d in self.shape) * max(self.element.dtype.itemsize, 1) > _MOST_BYTES:
            raise UnsupportedError("sparse tensor: no array can have so many elements")

    def __repr__(self) -> str:
        shown = f"{TensorType(self.element, self.shape)}, {self.values.size} stored"
        return f"SparseTensor({shown})"


Constant: TypeAlias = Tensor | SparseTensor
