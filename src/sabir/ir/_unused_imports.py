"""Opset imports that no node uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir._imports import canonical_domain

if TYPE_CHECKING:
    from collections.abc import Collection

    from sabir.ir._model import Model

_IMPORTS = "opset_import"


def unused_imports(model: Model) -> list[str]:
    """Return the imported domains of which no node outside functions calls an operator.

    The default domain, which every model imports, and domains of the model's functions count as used.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.opsets['ai.onnx.ml'] = 5
    >>> unused_imports(model)
    ['ai.onnx.ml']
    """
    if all(not canonical_domain(domain) for domain in model.opsets):
        return []
    bodies = {function.graph for function in model.functions}  # a function has its own imports
    roots = [graph for graph in model.graphs() if graph not in bodies]
    called = {"", *(canonical_domain(function.domain) for function in model.functions)}
    called.update(canonical_domain(node.domain) for graph in roots for node in graph.all_nodes())
    return [domain for domain in model.opsets if canonical_domain(domain) not in called]


def drop_imports(model: Model, domains: Collection[str]) -> None:
    """Remove imports of a model, and the parts of its residue that refer to imports by their places.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 5]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> drop_imports(model, unused_imports(model))
    >>> model.opsets
    {'': 21}
    """
    for domain in domains:
        del model.opsets[domain]
    if not domains or model.residue is None:
        return
    entries = tuple(e for e in model.residue.entries if e[0] != _IMPORTS)
    places = tuple(p for p in model.residue.places if p[0] != _IMPORTS)
    changed = model.residue._replace(entries=entries, places=places)
    model.residue = changed if any(changed) else None
