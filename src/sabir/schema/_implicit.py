"""Implicit imports: models and functions that call the default domain without importing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import canonical_domain, find_opset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sabir.ir import Function, FunctionKey, Graph, Model, Node


class ImplicitImport(NamedTuple):
    """A model, or the function number `function`, that calls the default domain without importing it.

    `node` is the first such call, `version` the version that applies.
    """

    function: int | None
    node: Node
    version: int


def implicit_imports(model: Model) -> Iterator[ImplicitImport]:
    """Yield the implicit imports of a model, its own before those of its functions.

    In the model the newest version applies that its IR version carried, in a function that of the model.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.opsets.clear()
    >>> [call.version for call in implicit_imports(model)]
    [22]
    """
    version = model.opset()
    if version is None:
        return
    functions = model.functions_by_key()
    bodies = {function.graph for function in model.functions}
    if find_opset(model.opsets, "") is None:
        node = _default_call((g for g in model.graphs() if g not in bodies), functions)
        if node is not None:
            yield ImplicitImport(None, node, version)
    for place, function in enumerate(model.functions):
        if find_opset(function.opsets, "") is None:
            node = _default_call([function.graph], functions)
            if node is not None:
                yield ImplicitImport(place, node, version)


def _default_call(graphs: Iterable[Graph], functions: Mapping[FunctionKey, Function]) -> Node | None:
    """Return the first node of the graphs that calls an operator of the default domain."""
    for graph in graphs:
        for node in graph.all_nodes():
            if (
                node.op
                and not canonical_domain(node.domain)
                and ("", node.op, node.overload) not in functions
            ):
                return node
    return None
