"""What each element type of a tensor is in numpy, and the field in which its values are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compat.onnx.onnx_ml_pb2 import TensorProto
from sabir.elements import ELEMENTS

if TYPE_CHECKING:
    import numpy as np

_STORED: dict[str, int] = {
    "float_data": TensorProto.FLOAT,
    "int32_data": TensorProto.INT32,
    "string_data": TensorProto.STRING,
    "int64_data": TensorProto.INT64,
    "double_data": TensorProto.DOUBLE,
    "uint64_data": TensorProto.UINT64,
}


class TensorDtypeMap(NamedTuple):
    """The numpy dtype of an element type, the type of its field, and its name."""

    np_dtype: np.dtype
    storage_dtype: int
    name: str


TENSOR_TYPE_MAP: dict[int, TensorDtypeMap] = {
    e.number: TensorDtypeMap(e.dtype, _STORED[e.field], f"TensorProto.{e.name.upper()}") for e in ELEMENTS
}

__all__ = ["TENSOR_TYPE_MAP", "TensorDtypeMap"]
