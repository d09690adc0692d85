"""Biases of zero that an exporter has removed: its records say which layer had one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import ArrayTensor, FreshNames, Tensor
from sabir.training._exported import removed_bias

if TYPE_CHECKING:
    from sabir.ir import Model, Node

_BIAS = 2  # its place among the inputs of Gemm and Conv


def restore_biases(model: Model) -> list[str]:
    """Give layers their biases of zero again, as initializers; return the names of these."""
    names = FreshNames(v.name for graph in model.graph.scopes() for v in graph.defined())
    found: list[str] = []
    for node in list(model.graph):
        name, zeros = removed_bias(node), _zeros(node)
        if name is None or zeros is None:
            continue
        own = model.graph.add_initializer(names.fresh(name), zeros)
        node.inputs = [*node.inputs[:_BIAS], own]
        found.append(own.name)
    return found


def _zeros(node: Node) -> ArrayTensor | None:
    """Return a bias for a layer without one, None for other nodes."""
    if node.op not in {"Conv", "Gemm"} or (len(node.inputs) > _BIAS and node.inputs[_BIAS] is not None):
        return None
    weight = node.inputs[1]
    data = None if weight is None else weight.constant
    if not isinstance(data, Tensor):
        return None
    transposed = node.attributes.get("transB")
    is_first = node.op == "Conv" or (transposed is not None and bool(transposed.value))
    return ArrayTensor(np.zeros(data.shape[0 if is_first else 1], data.element.dtype))


__all__ = ["restore_biases"]
