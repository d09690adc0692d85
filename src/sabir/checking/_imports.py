"""Opset imports that no node uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import canonical_domain

if TYPE_CHECKING:
    from sabir.checking._survey import Survey


def unused_imports(survey: Survey) -> list[str]:
    """Return the imported domains of which no node outside functions calls an operator.

    The default domain, which every model imports, and domains of the model's functions count as used.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> model.opsets['ai.onnx.ml'] = 5
    >>> unused_imports(Survey(model, STANDARD))
    ['ai.onnx.ml']
    """
    called = {""} | {canonical_domain(site.function.domain) for site in survey.functions}
    for site in survey.graphs:
        if site.function is None:  # a function has its own imports
            called.update(canonical_domain(site.nodes[places[0]].domain) for places in site.calls.values())
    return [domain for domain in survey.model.opsets if canonical_domain(domain) not in called]
