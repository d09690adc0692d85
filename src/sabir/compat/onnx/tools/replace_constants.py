"""Large constants replaced by nodes that make tensors of the same shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabir.compat.onnx import helper
from sabir.compat.onnx.numpy_helper import from_array, to_array
from sabir.compat.onnx.onnx_ml_pb2 import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
)


def replace_initializer_by_constant_of_shape(
    onx: Any,
    threshold: int = 128,
    ir_version: int | None = None,
    use_range: bool = False,
    value_constant_of_shape: float = 0.5,
) -> Any:
    """Return a copy of a model, a graph or a function without its large constants.

    Each initializer or Constant with more than `threshold` elements becomes a ConstantOfShape of
    `value_constant_of_shape`, or with `use_range` a Range with different values. A model gets `ir_version`,
    if there is one. Raises TypeError for another object.
    """
    if not isinstance(onx, (ModelProto, GraphProto, FunctionProto)):
        raise TypeError(
            f"a ModelProto, GraphProto or FunctionProto is needed, and this is a {type(onx).__name__}"
        )
    result = type(onx)()
    result.CopyFrom(onx)
    bodies = [result.graph, *result.functions] if isinstance(onx, ModelProto) else [result]
    for body in bodies:
        _replace(body, threshold, value_constant_of_shape, use_range=use_range)
    if ir_version is not None and isinstance(onx, ModelProto):
        result.ir_version = ir_version
    return result


def _replace(body: Any, threshold: int, value: float, *, use_range: bool) -> None:
    nodes: list[Any] = []
    if isinstance(body, GraphProto):
        nodes += _replaced_initializers(body, threshold, value, use_range=use_range)
    for node in body.node:
        tensor = _constant(node)
        if tensor is not None and np.prod(tuple(tensor.dims)) > threshold:
            nodes += _made(node.output[0], to_array(tensor), value, use_range=use_range)
            continue
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _replace(attribute.g, threshold, value, use_range=use_range)
        nodes.append(node)
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del body.node[:]
    body.node.extend(copies)


def _replaced_initializers(graph: Any, threshold: int, value: float, *, use_range: bool) -> list[Any]:
    nodes: list[Any] = []
    kept: list[Any] = []
    for tensor in graph.initializer:
        if np.prod(tuple(tensor.dims)) > threshold:
            nodes += _made(tensor.name, to_array(tensor), value, use_range=use_range)
        else:
            kept.append(TensorProto.FromString(tensor.SerializeToString()))
    replaced = {node.output[0] for node in nodes}
    del graph.initializer[:]
    graph.initializer.extend(kept)
    for place in reversed(range(len(graph.input))):
        if graph.input[place].name in replaced:
            del graph.input[place]
    return nodes


def _made(name: str, array: np.ndarray[Any, Any], value: float, *, use_range: bool) -> list[Any]:
    """Return nodes that make a tensor of the shape and the type of an array."""
    shape = f"{name}__SHAPE"
    nodes = [_constant_node(shape, np.array(array.shape, np.int64))]
    if not use_range:
        filled = from_array(np.array([value], np.float32).astype(array.dtype))
        nodes.append(helper.make_node("ConstantOfShape", [shape], [name], value=filled))
        return nodes
    start, stop, step, row, wide = (f"{name}__{part}" for part in ("START", "STOP", "STEP", "ROW", "WIDE"))
    nodes += [
        _constant_node(start, np.array(0, np.float32)),
        _constant_node(stop, np.array(array.size, np.float32)),
        _constant_node(step, np.array(1, np.float32)),
        helper.make_node("Range", [start, stop, step], [row]),
        helper.make_node("Cast", [row], [wide], to=helper.np_dtype_to_tensor_dtype(array.dtype)),
        helper.make_node("Reshape", [wide, shape], [name]),
    ]
    return nodes


def _constant_node(name: str, array: np.ndarray[Any, Any]) -> Any:
    return helper.make_node("Constant", [], [name], value=from_array(array))


def _constant(node: Any) -> Any:
    """Return the tensor of a Constant, None for another node."""
    if node.op_type != "Constant" or node.domain:
        return None
    return next((a.t for a in node.attribute if a.name == "value"), None)


__all__ = ["replace_initializer_by_constant_of_shape"]
