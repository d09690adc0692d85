"""The pass that applies rewrites until none matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import ACCIDENTS, SabirError
from sabir.ir import Node
from sabir.opsets import STANDARD
from sabir.rewriting import Rewriter, apply_rules, constant_of, remove_released
from sabir.schema import Unconvertible, Version
from sabir.simplification._declaration import Match
from sabir.simplification._pattern import COMMUTATIVE, Pattern
from sabir.simplification._table import REWRITES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.inference import Inference
    from sabir.ir import Array, Model, Value
    from sabir.rewriting import DetachedBuilder
    from sabir.schema import Registry
    from sabir.simplification._declaration import Rewrite
    from sabir.simplification._pattern import Operand


class Simplify:
    """The pass that applies rewrites, all that there are by default, until none matches.

    Nodes that nothing reads afterwards are removed. `applied` has the names of the rewrites of the last run,
    one for each node that was replaced.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { a = Relu (x)  b = Relu (a)  y = Exp (b) }''')
    >>> Simplify().run(model), [node.op for node in model.graph]
    (True, ['Relu', 'Exp'])
    """

    name = "simplify"

    def __init__(self, rewrites: Sequence[Rewrite] = REWRITES, *, registry: Registry = STANDARD) -> None:
        """Take the rewrites to apply, in their order where several match a node."""
        self._registry = registry
        self._by_op: dict[str, list[tuple[Rewrite, frozenset[str]]]] = {}
        for rewrite in rewrites:
            needed = frozenset(p.op for p in rewrite.pattern.operands if isinstance(p, Pattern))
            self._by_op.setdefault(rewrite.pattern.op, []).append((rewrite, needed))
        self.applied: list[str] = []

    def run(self, model: Model, inference: Inference | None = None) -> bool:
        """Rewrite a model, and return whether anything changed.

        `inference` has the types of the model's values; by default they are inferred when they are needed.
        """
        self.applied = []
        rewriter = Rewriter(model, registry=self._registry)
        if inference is not None:
            rewriter.inference = inference
        released: list[Value] = []

        def rule(node: Node) -> Sequence[Node] | None:
            if node.domain or node.op not in self._by_op:
                return None
            makers = {v.node.op for v in node.inputs if v is not None and v.node is not None}
            for rewrite, needed in self._by_op[node.op]:
                if not needed <= makers:
                    continue  # most patterns fail here
                nodes = _rewritten(rewriter, rewrite, node, released)
                if nodes is not None:
                    self.applied.append(rewrite.name)
                    return nodes
            return None

        changed = apply_rules(model, rule)
        remove_released(model, dict.fromkeys(released), registry=self._registry)
        return changed


def _rewritten(rewriter: Rewriter, rewrite: Rewrite, node: Node, released: list[Value]) -> list[Node] | None:
    """Return the nodes that replace a node, None where the rewrite does not apply.

    The values that the replaced nodes read are added to `released`: nothing else may read them.
    """
    matcher = _Matcher(rewriter, shared=rewrite.shared)
    if rewrite.since > 1 and matcher.opset(node) < rewrite.since:
        return None
    if not matcher.matches_node(rewrite.pattern, node):
        return None
    match = matcher.match(node)
    label, read = node.name, [v for v in node.inputs if v is not None]

    def build(b: DetachedBuilder) -> Value:
        made = rewrite.build(b, match)
        if made is None:
            raise Unconvertible("the rewrite does not apply")
        is_copy = match.stands_for(made) and any(_must_stay(v) for v in node.outputs if v is not None)
        return b.Identity(made) if is_copy else made  # refused for a type that Identity does not admit

    try:
        nodes = rewriter.replace(node, build)
    except (SabirError, *ACCIDENTS):  # an invalid call stays as it is: the run reports it
        return None
    if nodes and label and not nodes[-1].name:
        nodes[-1].name = label
    released += read
    return nodes


def _must_stay(output: Value) -> bool:
    """Return whether a graph has a value as its output."""
    return any(not isinstance(use.user, Node) for use in output.uses)


class _Matcher:
    """One attempt to match a pattern."""

    def __init__(self, rewriter: Rewriter, *, shared: bool) -> None:
        self._rewriter, self._shared = rewriter, shared
        self._values: dict[str, Value] = {}
        self._constants: dict[str, Array] = {}
        self._nodes: dict[str, Node] = {}

    def match(self, root: Node) -> Match:
        """Return what was matched."""
        return Match(
            root,
            self._values,
            self._constants,
            self._nodes,
            lambda: self._rewriter.inference,
            self._attributes,
        )

    def matches_node(self, pattern: Pattern, node: Node) -> bool:
        """Return whether a node is a call that the pattern describes, and note what its names stand for."""
        if node.op != pattern.op or node.domain:
            return False
        if any(output is not None for output in node.outputs[1:]) or node.outputs[:1] == (None,):
            return False
        operands = list(node.inputs)
        while operands and operands[-1] is None:
            operands.pop()
        if len(operands) != len(pattern.operands):
            return False
        orders = [operands]
        if pattern.op in COMMUTATIVE and len(operands) == 2:  # ruff: ignore[magic-value-comparison]  two sides
            orders.append(operands[::-1])
        matched = any(self._all_match(pattern, node, order) for order in orders)
        return matched and isinstance(self._callee(node), Version)

    def _all_match(self, pattern: Pattern, node: Node, operands: Sequence[Value | None]) -> bool:
        before = dict(self._values), dict(self._constants), dict(self._nodes)
        if all(self._matches(p, v, node) for p, v in zip(pattern.operands, operands, strict=True)):
            if pattern.name:
                self._nodes[pattern.name] = node
            return True
        self._values, self._constants, self._nodes = before
        return False

    def _matches(self, pattern: Operand, value: Value | None, reader: Node) -> bool:
        if value is None:
            return False
        if isinstance(pattern, Pattern):
            node = value.node
            if node is None or node.graph is not reader.graph or node.outputs[0] is not value:
                return False
            if not self._shared and len(value.uses) > 1:
                return False
            return self.matches_node(pattern, node)
        if self._values.setdefault(pattern.name, value) is not value:
            return False
        if pattern.is_constant:
            data = constant_of(value)
            if data is None:
                return False
            self._constants[pattern.name] = data.array()
        return True

    def opset(self, node: Node) -> int:
        """Return the version of the default domain that applies to a node, 0 where there is none."""
        return 0 if node.graph is None else self._rewriter.scope_of(node.graph).opset("") or 0

    def _callee(self, node: Node) -> object:
        if node.graph is None:
            return None
        return self._rewriter.scope_of(node.graph).callee(node)

    def _attributes(self, node: Node) -> Mapping[str, Any]:
        scope = self._rewriter.scope_of(node.graph) if node.graph is not None else self._rewriter.scope
        version = scope.callee(node)
        if scope.is_open(node) or not isinstance(version, Version):
            raise Unconvertible("an attribute comes from the call of a function")
        values = scope.arguments(node.attributes)
        formals = version.formal.attributes
        return {n: values[n].value if n in values else f.default for n, f in formals.items()}
