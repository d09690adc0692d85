"""Initializers below IR version 4, where each is an input of the main graph, and no other graph has any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import CONSTANTS, Tensor, features_above
from sabir.rewriting import constant_node

if TYPE_CHECKING:
    from sabir.ir import Graph, Model


def must_list_initializers(model: Model, ir_version: int | None) -> bool:
    """Return whether nothing but initializers that are no inputs keeps a model from its IR version."""
    wanted = model.ir_version if ir_version is None else ir_version
    return set(features_above(model, wanted)) == {CONSTANTS}


def list_initializers(model: Model) -> None:
    """Make the initializers of the main graph inputs, and those of subgraphs nodes `Constant`.

    >>> b = sabir.Builder(8)
    >>> y = b.output(b.Add(b.input('x', 'float', ['N']), np.float32(1)), 'y')
    >>> model = b.model()
    >>> list_initializers(model)
    >>> [value.name for value in model.graph.inputs]
    ['x', 'const_1']
    """
    graph = model.graph
    for value, data in graph.initializers.items():
        if not value.is_input:
            value.type = data.type if isinstance(data, Tensor) else value.type
    listed = set(graph.inputs)
    graph.inputs.extend(v for v in graph.initializers if v not in listed)
    for root in model.graphs():
        for inner in root.scopes():
            if inner is not graph:
                _write_out(inner)


def _write_out(graph: Graph) -> None:
    """Let nodes compute the initializers of a graph that are no inputs."""
    for value, data in list(graph.initializers.items()):
        if not value.is_input:
            graph.set_initializer(value, None)
            graph.insert(constant_node(value, data), after=None)
