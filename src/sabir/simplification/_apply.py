"""The pass that applies the rules of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.opsets import STANDARD
from sabir.patterns import ApplyRules
from sabir.simplification._table import REWRITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.patterns import RewriteRule
    from sabir.schema import Registry


class Simplify(ApplyRules):
    """The pass that applies rules of the tables, by default those of a session, until none matches.

    A model that is not valid stays as it is where it is not: the run reports it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { a = Relu (x)  b = Relu (a)  y = Exp (b) }''')
    >>> Simplify().run(model), [node.op for node in model.graph]
    (True, ['Relu', 'Exp'])
    """

    name = "simplify"

    def __init__(self, rules: Sequence[RewriteRule] = REWRITES, *, registry: Registry = STANDARD) -> None:
        """Take the rules to apply, in their order where several match a node."""
        super().__init__(rules, registry=registry, lenient=True)
