"""The pass that applies rules until none matches."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from sabir.base import ACCIDENTS
from sabir.opsets import STANDARD
from sabir.patterns._attempt import Attempt
from sabir.rewriting import Rewriter, apply_rules, graph_of, remove_released

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.inference import Inference
    from sabir.ir import Graph, Model, Node, Value
    from sabir.patterns._pattern import Pattern
    from sabir.patterns._rule import RewriteRule
    from sabir.schema import Registry


class ApplyRules:
    """The pass that applies rewrite rules until none matches.

    Nodes that nothing reads afterwards are removed. `applied` has the names of the rules of the last run, one
    for each match that was replaced. With `lenient`, a rule whose function fails does not apply: that is for
    proven rules on models that are not valid.

    >>> rule = sabir.RewriteRule('relu-of-relu', 'Relu(inner = Relu(x))', 'inner', shared=True)
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { a = Relu (x)  b = Relu (a)  y = Exp (b) }''')
    >>> ApplyRules([rule]).run(model), [node.op for node in model.graph]
    (True, ['Relu', 'Exp'])
    """

    name = "apply rules"

    def __init__(
        self, rules: Iterable[RewriteRule], *, registry: Registry = STANDARD, lenient: bool = False
    ) -> None:
        """Take the rules to apply, in their order where several match a node."""
        self._registry = registry
        self._survived: tuple[type[Exception], ...] = ACCIDENTS if lenient else ()
        self._rules = [(rule, pattern) for rule in rules for pattern in rule.patterns]
        self.applied: list[str] = []
        self.has_new_types = False
        """Whether the last run replaced a value by one of another type, so that types are to be inferred."""

    def run(self, model: Model, inference: Inference | None = None) -> bool:
        """Rewrite a model, and return whether anything changed.

        `inference` has the types of the model's values; by default they are inferred when they are needed.
        Raises SchemaError where replacements are replaced without end.
        """
        self.applied = []
        rewriter = Rewriter(model, registry=self._registry)
        if inference is not None:
            rewriter.inference = inference
        released: list[Value] = []
        unsorted: set[Graph] = set()
        candidates = _Candidates(self._rules, model)

        def apply(node: Node) -> Sequence[Node] | None:
            for rule, pattern in candidates.of(node):
                if not pattern.may_match(node):
                    continue
                graph = graph_of(node)
                nodes = Attempt(rule, pattern, rewriter, survived=self._survived).replace(node, released)
                if nodes is not None:
                    self.applied.append(rule.name)
                    candidates.add(nodes)
                    if len(pattern.roots) > 1:
                        unsorted.add(graph)
                    return nodes
            return None

        changed = apply_rules(model, apply)
        self.has_new_types = rewriter.has_new_types
        for graph in unsorted:
            graph.sort()
        remove_released(model, dict.fromkeys(released), registry=self._registry)
        return changed


class _Candidates:
    """The patterns whose operators a model has, by the operator in which they end."""

    def __init__(self, rules: Sequence[tuple[RewriteRule, Pattern]], model: Model) -> None:
        self._rules = rules
        self._present = {node.op for graph in model.graphs() for node in graph.all_nodes()}
        self._by_op = self._found()

    def of(self, node: Node) -> Sequence[tuple[RewriteRule, Pattern]]:
        """Return the patterns that may end in a node."""
        return self._by_op.get(node.op, ())

    def add(self, nodes: Iterable[Node]) -> None:
        """Note nodes that the model now has."""
        inner = (n for node in nodes for graph in node.graphs for n in graph.all_nodes())
        new = {node.op for node in chain(nodes, inner)} - self._present
        if new:
            self._present |= new
            self._by_op = self._found()

    def _found(self) -> dict[str, list[tuple[RewriteRule, Pattern]]]:
        found: dict[str, list[tuple[RewriteRule, Pattern]]] = {}
        for rule, pattern in self._rules:
            if pattern.operators <= self._present:
                found.setdefault(pattern.anchor.op, []).append((rule, pattern))
        return found
