"""Operators that have a body, replaced by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Node, canonical_domain
from sabir.rewriting import Rewriter, apply_rules, one_size_of_blocks, remove_released
from sabir.scheduling import ORIGIN, label_of
from sabir.schema import Unconvertible, Version

if TYPE_CHECKING:
    from sabir.ir import Model, Value
    from sabir.schema import Behaviour, Registry


class InlineOperators(NamedTuple):
    """The pass that replaces nodes by the bodies of their operators: of those `named`, or, for None, of all.

    `domains` restricts it to operators of these domains. A node stays where the body needs types that are not
    known, and where it is among the `kept`. With another `behaviour` that builds a graph, nodes are replaced
    by that one. With `labelled` the new nodes keep the label of the node, in their metadata.

    >>> from sabir.opsets import STANDARD
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Softplus (x) }''')
    >>> InlineOperators(STANDARD, frozenset({'Softplus'})).run(model), model.graph.value('y').node.op
    (True, 'Add')
    """

    registry: Registry
    named: frozenset[str] | None
    name: str = "inline operators"
    behaviour: Behaviour = "body"
    kept: frozenset[Node] = frozenset()
    domains: frozenset[str] | None = None
    labelled: bool = False

    def run(self, model: Model) -> bool:
        """Replace the nodes, those of bodies too, until none is left that can be; return whether any was."""
        rewriter = Rewriter(model, registry=self.registry)
        read: list[Value] = []

        def replaced(node: Node) -> list[Node] | None:
            version = self._version(node, model)
            if version is None:
                return None
            operands, label = [v for v in node.inputs if v is not None], label_of(node)
            try:
                nodes = rewriter.expand(node, version, self.behaviour)
            except Unconvertible:
                return None
            read.extend(operands)
            for new in nodes if self.labelled else ():
                new.metadata = {**(new.metadata or {}), ORIGIN: label}
            return nodes

        with one_size_of_blocks(model, self.registry):
            changed = apply_rules(model, replaced)
        remove_released(model, dict.fromkeys(read), registry=self.registry)
        return changed

    def _version(self, node: Node, model: Model) -> Version | None:
        """Return the version that a node calls, where it is to be replaced and has what replaces it."""
        if (self.named is not None and node.op not in self.named) or node in self.kept:
            return None
        if self.domains is not None and canonical_domain(node.domain) not in self.domains:
            return None
        opset = model.opset(canonical_domain(node.domain))
        version = self.registry.find_version(node.domain, node.op, opset)
        return version if version is not None and version.find(self.behaviour) is not None else None
