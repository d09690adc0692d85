"""The sets of types that the specification keeps reusing, as its type strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def tensors(*elements: str) -> frozenset[str]:
    """Return the tensor types over the named element types.

    >>> sorted(tensors('float', 'int64'))
    ['tensor(float)', 'tensor(int64)']
    """
    return frozenset(f"tensor({e})" for e in elements)


def sparse_tensors(types: frozenset[str]) -> frozenset[str]:
    """Return the sparse tensor types over the element types of some tensor types.

    >>> sorted(sparse_tensors(tensors('float')))
    ['sparse_tensor(float)']
    """
    return frozenset(f"sparse_{t}" for t in types)


def sequences(types: frozenset[str]) -> frozenset[str]:
    """Return the sequence types over some types.

    >>> sorted(sequences(tensors('float')))
    ['seq(tensor(float))']
    """
    return frozenset(f"seq({t})" for t in types)


def optionals(types: frozenset[str]) -> frozenset[str]:
    """Return the optional types over some types.

    >>> sorted(optionals(tensors('float')))
    ['optional(tensor(float))']
    """
    return frozenset(f"optional({t})" for t in types)


FLOATS = tensors("float16", "float", "double")
BFLOAT16 = tensors("bfloat16")
SIGNED = tensors("int8", "int16", "int32", "int64")
UNSIGNED = tensors("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED | UNSIGNED
NUMBERS = FLOATS | INTEGERS
BOOL = tensors("bool")
STRING = tensors("string")
COMPLEX = tensors("complex64", "complex128")
CLASSIC = NUMBERS | BOOL | STRING | COMPLEX  # every element type of the first release
FLOAT8 = tensors("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
INT4 = tensors("uint4", "int4")
FLOAT4 = tensors("float4e2m1")
FLOAT8E8M0 = tensors("float8e8m0")
INT2 = tensors("uint2", "int2")
FLOAT6 = tensors("float6e2m3", "float6e3m2")

# the element types that the standard admitted everywhere, one set an opset
SMALL_TYPES: Mapping[int, frozenset[str]] = {21: INT4, 23: FLOAT4, 24: FLOAT8E8M0, 25: INT2}
SMALL_TYPES_AND_FLOAT8: Mapping[int, frozenset[str]] = {**SMALL_TYPES, 21: FLOAT8 | INT4}
