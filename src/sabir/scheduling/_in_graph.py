"""Calls that mean something only within their graph: engines replace them before they schedule a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import canonical_domain, find_opset

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.schema import Registry


def calls_in_graph(model: Model, registry: Registry) -> bool:
    """Return whether a model calls an operator whose result depends on the graph around it, as `Gradient`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> calls_in_graph(model, STANDARD)
    False
    """
    bodies = {f.graph: f.opsets for f in model.functions}
    called = {
        (canonical_domain(node.domain), node.op, find_opset(bodies.get(graph, model.opsets), node.domain))
        for graph in model.graphs()
        for node in graph.all_nodes()
    }
    versions = (registry.find_version(domain, op, opset) for domain, op, opset in called if opset)
    return any(v is not None and v.find("in_graph") is not None for v in versions)
