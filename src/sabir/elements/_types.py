"""The 28 element types: their names, widths and fields."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import ml_dtypes
import numpy as np

Kind = Literal["float", "integer", "complex", "bool", "string"]
Field = Literal["float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"]


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class ElementType:
    """The type of the elements of a tensor; each type has one instance, so `is` may compare them.

    `name` is the standard's spelling in type strings, `number` its TensorProto.DataType,
    `bits` the width of one element in `raw_data` (0 for strings, which are never there),
    `dtype` the numpy dtype of its arrays (object for strings, whose elements are `str`), and
    `field` the TensorProto field that has its values when `raw_data` does not.

    >>> FLOAT16.number, FLOAT16.name, FLOAT16.dtype, INT4.bits
    (10, 'float16', dtype('float16'), 4)
    """

    number: int
    name: str = dataclasses.field(compare=False)
    bits: int = dataclasses.field(compare=False)
    dtype: np.dtype[Any] = dataclasses.field(compare=False)
    field: Field = dataclasses.field(compare=False)
    kind: Kind = dataclasses.field(compare=False)
    is_signed: bool = dataclasses.field(compare=False)

    @property
    def is_float(self) -> bool:
        """Whether values are real floating-point numbers, of whatever width."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether values are integers; bool is none."""
        return self.kind == "integer"

    @property
    def is_complex(self) -> bool:
        """Whether values are complex numbers."""
        return self.kind == "complex"

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte of `raw_data`."""
        return 0 < self.bits < 8  # ruff: ignore[magic-value-comparison]  a byte has eight bits

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name.upper()

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Copy and pickle as the module constant, so that each type stays one instance.

        The type of a number that the standard does not define has no constant.
        """
        if 0 < self.number <= len(ELEMENTS):
            return self.name.upper()
        return ElementType, tuple(getattr(self, f.name) for f in dataclasses.fields(self))


def _float(number: int, name: str, scalar: type, bits: int, *, signed: bool = True) -> ElementType:
    """Return a type whose bit patterns are in `int32_data`."""
    return ElementType(number, name, bits, np.dtype(scalar), "int32_data", "float", signed)


def _integer(number: int, name: str, scalar: type, bits: int, stored: Field = "int32_data") -> ElementType:
    signed = not name.startswith("u")
    return ElementType(number, name, bits, np.dtype(scalar), stored, "integer", signed)


FLOAT = ElementType(1, "float", 32, np.dtype(np.float32), "float_data", "float", is_signed=True)
UINT8 = _integer(2, "uint8", np.uint8, 8)
INT8 = _integer(3, "int8", np.int8, 8)
UINT16 = _integer(4, "uint16", np.uint16, 16)
INT16 = _integer(5, "int16", np.int16, 16)
INT32 = _integer(6, "int32", np.int32, 32)
INT64 = _integer(7, "int64", np.int64, 64, "int64_data")
STRING = ElementType(8, "string", 0, np.dtype(object), "string_data", "string", is_signed=False)
BOOL = ElementType(9, "bool", 8, np.dtype(np.bool_), "int32_data", "bool", is_signed=False)
FLOAT16 = _float(10, "float16", np.float16, 16)
DOUBLE = ElementType(11, "double", 64, np.dtype(np.float64), "double_data", "float", is_signed=True)
UINT32 = _integer(12, "uint32", np.uint32, 32, "uint64_data")
UINT64 = _integer(13, "uint64", np.uint64, 64, "uint64_data")
COMPLEX64 = ElementType(14, "complex64", 64, np.dtype(np.complex64), "float_data", "complex", is_signed=True)
COMPLEX128 = ElementType(
    15, "complex128", 128, np.dtype(np.complex128), "double_data", "complex", is_signed=True
)
BFLOAT16 = _float(16, "bfloat16", ml_dtypes.bfloat16, 16)
FLOAT8E4M3FN = _float(17, "float8e4m3fn", ml_dtypes.float8_e4m3fn, 8)
FLOAT8E4M3FNUZ = _float(18, "float8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 8)
FLOAT8E5M2 = _float(19, "float8e5m2", ml_dtypes.float8_e5m2, 8)
FLOAT8E5M2FNUZ = _float(20, "float8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 8)
UINT4 = _integer(21, "uint4", ml_dtypes.uint4, 4)
INT4 = _integer(22, "int4", ml_dtypes.int4, 4)
FLOAT4E2M1 = _float(23, "float4e2m1", ml_dtypes.float4_e2m1fn, 4)
FLOAT8E8M0 = _float(24, "float8e8m0", ml_dtypes.float8_e8m0fnu, 8, signed=False)
UINT2 = _integer(25, "uint2", ml_dtypes.uint2, 2)
INT2 = _integer(26, "int2", ml_dtypes.int2, 2)
FLOAT6E2M3 = _float(27, "float6e2m3", ml_dtypes.float6_e2m3fn, 6)
FLOAT6E3M2 = _float(28, "float6e3m2", ml_dtypes.float6_e3m2fn, 6)

ELEMENTS: tuple[ElementType, ...] = (
    FLOAT,
    UINT8,
    INT8,
    UINT16,
    INT16,
    INT32,
    INT64,
    STRING,
    BOOL,
    FLOAT16,
    DOUBLE,
    UINT32,
    UINT64,
    COMPLEX64,
    COMPLEX128,
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    UINT4,
    INT4,
    FLOAT4E2M1,
    FLOAT8E8M0,
    UINT2,
    INT2,
    FLOAT6E2M3,
    FLOAT6E3M2,
)
