"""Tensors: constants that stay where they are until someone asks for an array.

A tensor has no name. Its data may be an array, a stretch of the mapped model file, a range of another
file, or values in a typed field; `array()` and `raw()` are the only ways in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sabir.base import ExternalDataError, FileError, UnsupportedError, WireError, check_constant, quote
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
from sabir.ir._types import TensorType, unknown_element

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Buffer: TypeAlias = bytes | memoryview

MAX_RANK = 64  # numpy's own limit
_MOST_BYTES = 2**63 - 1  # another one, which holds for an array without elements too
_LOCATING = frozenset({"location", "offset", "length", "checksum"})


class Tensor:
    """A constant: an element type, a shape of numbers, and data that is read on demand."""

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
        """Return the elements packed as `raw_data` holds them; strings raise UnsupportedError."""
        return pack(self.element, self.array())

    @property
    def size(self) -> int:
        """The number of elements."""
        return element_count(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes the packed elements take; for strings, of their texts."""
        if self.element.name == "string":
            return sum(len(s.encode()) for s in self.array().ravel().tolist())
        return packed_size(self.element, self.size)

    @property
    def type(self) -> TensorType:
        """The tensor's type."""
        return TensorType(self.element, self.shape)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.type}>"


class ArrayTensor(Tensor):
    """A tensor over a numpy array, which must not change afterwards."""

    __slots__ = ("_array", "_element")

    def __init__(self, array: Array | np.generic) -> None:
        """Take any array whose dtype ONNX knows; raises UnsupportedError for another."""
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


class WireTensor(Tensor):
    """A tensor as a file holds it: a `TensorProto`, whose large data may lie in a mapped file.

    Nothing is decoded before it is asked for, and everything that a `TensorProto` may say beside the data
    (its name, doc string, metadata, segment, unknown fields) stays in `proto` for the next save.
    """

    __slots__ = ("proto", "view")

    def __init__(self, proto: Any, view: Buffer | None = None) -> None:
        """Take a `TensorProto`, and its raw data where that was kept out of it."""
        self.proto = proto
        self.view: Buffer | None = view

    @property
    def element(self) -> ElementType:
        return find_element(self.proto.data_type) or unknown_element(self.proto.data_type)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.proto.dims)

    def array(self) -> Array:
        """Return the elements; raises WireError where the data does not fit the type and shape."""
        kind, shape = self._decodable()
        raw = self._stored()
        if raw is not None:
            flat = unpack(kind, raw, math.prod(shape))
        else:
            flat = from_field(kind, getattr(self.proto, kind.field), math.prod(shape))
        flat.flags.writeable = False
        return flat.reshape(shape)

    def raw(self) -> Buffer:
        raw = self._stored()
        return super().raw() if raw is None else raw

    def _stored(self) -> Buffer | None:
        """Return the raw bytes where the tensor has them; raises FileError where their file was cut short."""
        if self.view is not None:
            return untruncated(self.view)
        return self.proto.raw_data if self.proto.HasField("raw_data") else None

    def _decodable(self) -> tuple[ElementType, tuple[int, ...]]:
        kind, shape = find_element(self.proto.data_type), self.shape
        if kind is None:
            raise WireError(f"{self._told()}: element type {self.proto.data_type} is not in the standard")
        if min(shape, default=0) < 0:
            raise WireError(f"{self._told()}: the dimension {min(shape)} is negative")
        if len(shape) > MAX_RANK:
            raise UnsupportedError(f"{self._told()}: rank {len(shape)} is above {MAX_RANK}")
        whole = shape if 0 not in shape else [d or 1 for d in shape]
        if math.prod(whole) * kind.dtype.itemsize > _MOST_BYTES:
            raise UnsupportedError(f"{self._told()}: no array has a shape of so many elements")
        return kind, shape

    def _told(self) -> str:
        return f"tensor {quote(self.proto.name)}"


class ExternalTensor(WireTensor):
    """A tensor whose data lies in another file, opened and mapped when it is first read."""

    __slots__ = ("opener",)

    def __init__(self, proto: Any, opener: Callable[[Mapping[str, str], int], Buffer]) -> None:
        """Take a `TensorProto` and what opens its data, given the entries and the bytes it must have."""
        super().__init__(proto)
        self.opener = opener

    @property
    def entries(self) -> dict[str, str]:
        """Where the data lies: `location`, and maybe `offset`, `length`, `checksum`."""
        return {e.key: e.value for e in self.proto.external_data}

    def place(self) -> tuple[dict[str, str], int]:
        """Return the entries, and how many bytes must lie there.

        Raises ExternalDataError for entries that say two things, WireError for a type or shape without size.
        """
        kind, shape = self._decodable()
        keys = [e.key for e in self.proto.external_data]
        entries: dict[Any, Any] = self.entries
        for key, value in entries.items():
            if type(key) is not str or type(value) is not str:
                raise ExternalDataError(f"external data: the entry {quote(key)} is not UTF-8")
            if key in _LOCATING and keys.count(key) > 1:
                raise ExternalDataError(f"external data: there is more than one `{key}`")
        return entries, packed_size(kind, math.prod(shape))

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
        """Return an error that says which tensor it is about, where the tensor has a name."""
        return error.within(f"tensor {quote(self.proto.name)}") if self.proto.name else error


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor:
    """A tensor given by its non-default elements.

    `values` has shape [NNZ]; `indices` is int64, either [NNZ] of positions in the flattened tensor or
    [NNZ, rank] of coordinates, ascending. `shape` is that of the dense tensor.
    """

    values: Tensor
    indices: Tensor
    shape: tuple[int, ...]
    wire: bytes = b""

    @property
    def element(self) -> ElementType:
        """The element type of the values."""
        return self.values.element

    def array(self) -> Array:
        """Return the dense tensor; raises WireError for indices or a shape that cannot be."""
        self._require_shape()
        values, indices = self.values.array(), self.indices.array()
        needed = math.prod(self.shape) * values.itemsize
        check_constant(needed, values.nbytes + indices.nbytes, what="the sparse tensor, made dense,")
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
        """Raise where no array can have the dense shape."""
        if any(d < 0 for d in self.shape):
            raise WireError(f"sparse tensor: the dimension {min(self.shape)} is negative")
        if len(self.shape) > MAX_RANK:
            raise UnsupportedError(f"sparse tensor: rank {len(self.shape)} is above {MAX_RANK}")
        if math.prod(d or 1 for d in self.shape) * max(self.element.dtype.itemsize, 1) > _MOST_BYTES:
            raise UnsupportedError("sparse tensor: no array has a shape of so many elements")
