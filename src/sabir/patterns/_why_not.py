"""Why rules leave a node alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Node, canonical_domain
from sabir.opsets import STANDARD
from sabir.patterns._attempt import Attempt
from sabir.patterns._matching import named
from sabir.rewriting import Rewriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Model
    from sabir.patterns._pattern import Pattern
    from sabir.patterns._rule import RewriteRule
    from sabir.schema import Registry

_MOST_NODES = 1_000  # of one distance behind a node, among which the end of a pattern is looked for


class Refusal(NamedTuple):
    """Why a rule does not replace the calls that end in a node; the reason is empty where it does.

    `matched` is how many calls of the pattern the node and those before it are.

    >>> Refusal('swish', sabir.ir.Node('Mul', name='m'), 'the pattern has Sigmoid').matched
    0
    """

    rule: str
    node: Node
    reason: str
    matched: int = 0

    @property
    def place(self) -> str:
        """The node as messages name it, `Mul 'm'`."""
        return named(self.node)


def why_not(
    model: Model, rules: Iterable[RewriteRule], node: Node, *, registry: Registry = STANDARD
) -> list[Refusal]:
    """Return for each rule why it does not replace the calls around a node.

    A pattern may end in the node, or in a reader of it; the attempt that matched most calls is returned. The
    model stays as it is.

    >>> rule = sabir.RewriteRule('swish', 'Mul (x, Sigmoid (x))', 'Swish (x)')
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { s = Sigmoid (x)  y = Mul (x, s) }''')
    >>> why_not(model, [rule], model.graph[0])[0].reason
    'the replacement: ai.onnx.Swish came with opset 24, but opset 21 is imported'
    """
    rewriter = Rewriter(model, registry=registry)
    return [_nearest(rule, node, rewriter) for rule in rules]


def refusals(model: Model, rules: Iterable[RewriteRule], *, registry: Registry = STANDARD) -> list[Refusal]:
    """Return why rules leave the nodes of a model alone that call the operators in which patterns end.

    >>> rule = sabir.RewriteRule('twice', 'Neg (Neg (x))', 'x')
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { a = Abs (x)  y = Neg (a) }''')
    >>> [refusal.reason for refusal in refusals(model, [rule])]
    ["the pattern has Neg, the model Abs 'a'"]
    """
    rewriter, found = Rewriter(model, registry=registry), list[Refusal]()
    nodes = [node for graph in model.graphs() for node in graph.all_nodes()]
    for rule in rules:
        for pattern in rule.patterns:
            ends = (node for node in nodes if _is_end(pattern, node))
            attempts = (_attempted(rule, pattern, node, rewriter)[0] for node in ends)
            found += [refusal for refusal in attempts if refusal.reason]
    return found


def _nearest(rule: RewriteRule, node: Node, rewriter: Rewriter) -> Refusal:
    """Return the attempt to apply a rule around a node that matched most."""
    best: Refusal | None = None
    for pattern in rule.patterns:
        for end in _ends(pattern, node):
            found, attempt = _attempted(rule, pattern, end, rewriter)
            if found.reason and (best is None or found.matched > best.matched):
                best = found
            elif not found.reason and attempt.contains(node):
                return found
    operators = " or ".join(dict.fromkeys(map(repr, (p.anchor for p in rule.patterns))))
    return best or Refusal(rule.name, node, f"no {operators}, in which its pattern ends, follows the node")


def _attempted(
    rule: RewriteRule, pattern: Pattern, node: Node, rewriter: Rewriter
) -> tuple[Refusal, Attempt]:
    attempt = Attempt(rule, pattern, rewriter, explain=True)
    reason = "" if attempt.applies(node) else attempt.reason
    return Refusal(rule.name, node, reason, attempt.depth), attempt


def _ends(pattern: Pattern, node: Node) -> Iterator[Node]:
    """Yield the node and its readers that call the operator in which a pattern ends, as far as it reaches."""
    seen, front = {node}, [node]
    for _ in pattern.calls:
        yield from (end for end in front if _is_end(pattern, end))
        readers = (use.user for n in front for v in n.outputs if v is not None for use in v.uses)
        front = [n for n in dict.fromkeys(readers) if isinstance(n, Node) and n not in seen][:_MOST_NODES]
        seen.update(front)


def _is_end(pattern: Pattern, node: Node) -> bool:
    return node.op == pattern.anchor.op and canonical_domain(node.domain) == pattern.anchor.domain
