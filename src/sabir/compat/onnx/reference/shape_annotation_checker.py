"""Values of a run compared with the types and shapes that a model declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.compat.onnx._tensors import number_of
from sabir.compat.onnx.onnx_ml_pb2 import TensorProto

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ShapeAnnotationError(RuntimeError):
    """A value that contradicts its declared type or shape."""


class SymbolBindings:
    """The sizes of dimension variables, each as the first value with it has."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, str]] = {}

    def check_and_bind(self, dim: Any, actual: int, *, context: str) -> None:
        """Compare a size with a declared dimension; raises ShapeAnnotationError."""
        which = dim.WhichOneof("value")
        if which == "dim_value" and dim.dim_value != actual:
            raise ShapeAnnotationError(
                f"{context}: the size is {actual}, and the declared dimension value is {dim.dim_value}"
            )
        if which != "dim_param" or not dim.dim_param:
            return
        size, where = self._sizes.setdefault(dim.dim_param, (actual, context))
        if size != actual:
            raise ShapeAnnotationError(
                f"{context}: the symbolic dimension {dim.dim_param!r} is {actual} here, and {size} in {where}"
            )


def check_shape(shape_proto: Any, actual_shape: Sequence[int], bindings: SymbolBindings, name: str) -> None:
    """Compare a shape with a declared TensorShapeProto or None; raises ShapeAnnotationError."""
    if shape_proto is None:
        return
    if len(shape_proto.dim) != len(actual_shape):
        raise ShapeAnnotationError(
            f"{name!r}: the rank is {len(actual_shape)}, and the declared rank is {len(shape_proto.dim)}"
        )
    for axis, (dim, size) in enumerate(zip(shape_proto.dim, actual_shape, strict=True)):
        bindings.check_and_bind(dim, size, context=f"{name!r} axis {axis}")


def check_value_against_type(type_proto: Any, value: Any, bindings: SymbolBindings, name: str) -> None:
    """Compare an array with a declared TypeProto; other values and other types are not compared."""
    if type_proto is None or not type_proto.HasField("tensor_type") or not isinstance(value, np.ndarray):
        return
    array = cast("np.ndarray[Any, Any]", value)
    declared = type_proto.tensor_type
    actual = TensorProto.STRING if array.dtype.kind in "OUST" else number_of(array.dtype)
    if declared.elem_type not in {TensorProto.UNDEFINED, actual}:
        raise ShapeAnnotationError(
            f"{name!r}: the elements are {TensorProto.DataType.Name(actual)}, and the declared element type "
            f"is {TensorProto.DataType.Name(declared.elem_type)}"
        )
    check_shape(declared.shape if declared.HasField("shape") else None, array.shape, bindings, name)


def check_graph_values(graph: Any, values: Mapping[str, Any]) -> None:
    """Compare the values of a run with what a graph declares of them."""
    bindings = SymbolBindings()
    for declared in (*graph.input, *graph.value_info, *graph.output):
        if declared.name in values:
            check_value_against_type(declared.type, values[declared.name], bindings, declared.name)


__all__ = ["ShapeAnnotationError", "SymbolBindings", "check_shape", "check_value_against_type"]
