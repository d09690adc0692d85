"""Gradients written out in an algorithm, with results of the main graph that are computed again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.differentiation import differentiate
from sabir.ir import TrainingInfo, Value, clone_node
from sabir.rewriting import remove_unread
from sabir.training._combining import step_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Graph, Model, Node
    from sabir.rewriting import DetachedBuilder, Rewriter


def written_gradients(
    b: DetachedBuilder,
    rewriter: Rewriter,
    loss: Value,
    parameters: Sequence[Value],
    recompute: Sequence[str],
    names: Mapping[str, str],
) -> list[Value]:
    """Append the nodes of the gradients of a loss, with parts of the forward nodes computed again.

    `recompute` has patterns of node names, as `differentiate` takes them. `names` has the name of the node
    that each value of the algorithm is a copy from.
    """
    outputs = list(b.graph.outputs)
    combined = _combined(b, rewriter, loss, parameters, names)
    # a new name may be that of a value of the main graph that the loss does not need
    forward = {v.name for v in combined.graph.defined()}
    wanted: dict[Value | str, str] = {v.name: rewriter.names.fresh(f"grad_{v.name}") for v in parameters}
    found = differentiate(
        combined,
        loss.name,
        list(wanted),
        names=wanted,
        recompute=recompute,
        strict=True,
        registry=rewriter.registry,
    )
    b.graph.outputs = outputs
    defined = (*rewriter.model.graph.defined(), *b.graph.defined())
    known = {v.name: v for v in defined if v.name in forward}
    _take_over(found.graph, b, rewriter, known)
    return [known[name] for name in wanted.values()]


def _combined(
    b: DetachedBuilder,
    rewriter: Rewriter,
    loss: Value,
    parameters: Sequence[Value],
    names: Mapping[str, str],
) -> Model:
    """Return the main graph and the algorithm as one model that computes the loss and nothing else.

    What may change in training is an input of it, so that its contents are used for nothing.
    """
    b.graph.outputs = [loss] if loss.home is b.graph else []
    state = [*parameters, *(v for v in b.graph.initializers)]
    info = TrainingInfo(algorithm=b.graph, update_binding=[(value, loss) for value in state])
    model = step_part(replace(rewriter.model, training=[info]), 0).model
    graph = model.graph
    graph.outputs = [graph.value(loss.name)]
    remove_unread(graph)
    for node in graph:
        copied_from = next((names[v.name] for v in node.outputs if v is not None and v.name in names), None)
        node.name = node.name if copied_from is None else copied_from
    return model


def _take_over(graph: Graph, b: DetachedBuilder, rewriter: Rewriter, known: dict[str, Value]) -> None:
    """Append the nodes and constants of a graph that the algorithm has not, and add their values to `known`.

    A forward node of the algorithm whose gradient reads one more output of it gets this output.
    """
    for value, data in graph.initializers.items():
        if value.name not in known:
            known[value.name] = b.initializer(value.name, data)
    for node in graph.sorted_nodes():
        new = [v.name for v in node.outputs if v is not None and v.name not in known]
        present = next((known[v.name].node for v in node.outputs if v is not None and v.name in known), None)
        if not new:
            continue
        if present is not None and present.graph is b.graph and present.op == node.op:
            if present.graphs:
                made = _copy(node, graph, rewriter, known)
                _replace(present, made, b.graph)
            else:
                _extend(present, node, rewriter, known)
                made = present
        else:
            made = _copy(node, graph, rewriter, known)
            b.graph.append(made)
        rewriter.inference.visit(made, scope=rewriter.scope)
        known.update((name, v) for name, v in zip(_names(node), made.outputs, strict=True) if v and name)


def _replace(present: Node, made: Node, graph: Graph) -> None:
    """Put a node in the place of one whose subgraphs return less."""
    graph.insert(made, before=present)
    for old, new in zip(present.outputs, made.outputs, strict=False):
        if old is not None and new is not None:
            old.replace_with(new)
            new.name, old.name = old.name, new.name
    graph.erase(present)


def _extend(present: Node, node: Node, rewriter: Rewriter, known: Mapping[str, Value]) -> None:
    """Give a node the outputs that its counterpart has, under names that no graph of the model has."""
    present.outputs = [
        None if v is None else known.get(v.name) or Value(rewriter.names.fresh(v.name)) for v in node.outputs
    ]


def _copy(node: Node, graph: Graph, rewriter: Rewriter, known: Mapping[str, Value]) -> Node:
    """Return a copy of a node that reads the values of the algorithm, and whose values have fresh names."""
    copies: dict[Value, Value | None] = {v: known[v.name] for v in node.reads() if v.home is graph}
    made = clone_node(node, copies)
    defined = [v for inner in made.graphs for g in inner.scopes() for v in g.defined()]
    for value in (*(v for v in made.outputs if v is not None), *defined):
        value.name, value.type = rewriter.names.fresh(value.name), None
    return made


def _names(node: Node) -> list[str]:
    return ["" if v is None else v.name for v in node.outputs]


__all__ = ["written_gradients"]
