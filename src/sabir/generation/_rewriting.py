"""Rewrites of the decoders of exporters before they are run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.generation._ports import is_cross
from sabir.ir import Node, Value, clone_graph
from sabir.serial import load

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.ir import Model

_CACHED = "then_branch"
_WINDOW_ONLY = "sliding_window_cache"
_FLAGS = ("use_cache_branch", "use_cache")


def merged_branches(path: Path) -> tuple[Model, Model] | None:
    """Return the models without and with a cache of a merged decoder: the branches of its `If`.

    Each has plans of its own, which is faster than a branch. Returns None for a graph that is not one `If` on
    a flag for the cache.
    """
    model = load(path)
    nodes = list(model.graph)
    if len(nodes) != 1 or nodes[0].op != "If" or nodes[0].domain:
        return None
    condition = nodes[0].inputs[0]
    if (
        condition is None
        or condition.name not in _FLAGS
        or list(model.graph.outputs) != list(nodes[0].outputs)
    ):
        return None
    return _of_branch(model, nodes[0], "else_branch"), _of_branch(model, nodes[0], _CACHED)


def _of_branch(model: Model, node: Node, name: str) -> Model:
    """Return a model of one branch, with the inputs and initializers of the main graph that it reads."""
    branch = node.attributes[name].graphs[0]
    copies: dict[Value, Value | None] = {value: Value(value.name, value.type) for value in branch.captures()}
    graph = clone_graph(branch, copies)
    graph.inputs = [copy for value in model.graph.inputs if (copy := copies.get(value)) is not None]
    for value, copy in copies.items():
        if value.constant is not None and copy is not None:
            graph.set_initializer(copy, value.constant)
    outputs: list[Value] = []
    for value, declared in zip(graph.outputs, node.outputs, strict=True):
        if declared is None or value is None or (name == _CACHED and is_cross(declared.name)):
            continue  # the branch with a cache computes nothing for the cross-attention, whose values stay
        if value.node is None or value in outputs:
            value = graph.append(Node("Identity", [value], [Value()])).output  # ruff: ignore[redefined-loop-name]  the output
        value.name, value.type = declared.name, declared.type
        outputs.append(value)
    graph.outputs = outputs
    return replace(model, graph=graph)


def with_all_positions(path: Path) -> Model:
    """Return a model whose layers with a window keep all positions.

    A cache of the window only would have another length than the others, and could not be truncated. What is
    computed is the same: each layer still reads only its window.
    """
    model = load(path)
    for node in model.graph.all_nodes():
        node.attributes.pop(_WINDOW_ONLY, None)
    return model
