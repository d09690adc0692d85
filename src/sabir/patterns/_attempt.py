"""One attempt to apply a rule at a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SabirError, SchemaError, counted
from sabir.patterns._matching import Matcher
from sabir.rewriting import enclosing, graph_of
from sabir.schema import Unconvertible, as_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Graph, Node, TensorType, Value
    from sabir.patterns._match import Match
    from sabir.patterns._pattern import Pattern
    from sabir.patterns._rule import RewriteRule
    from sabir.rewriting import DetachedBuilder, Rewriter


class _TrialError(SabirError):
    """The end of a replacement that is only tried."""


class Attempt:
    """One attempt to apply a rule at a node.

    `survived` are the errors, beside those of Sabir, that mean that the rule does not apply. With `explain`,
    `reason` says afterwards why it does not.
    """

    def __init__(
        self,
        rule: RewriteRule,
        pattern: Pattern,
        rewriter: Rewriter,
        *,
        survived: tuple[type[Exception], ...] = (),
        explain: bool = False,
    ) -> None:
        self._rule, self._pattern, self._rewriter = rule, pattern, rewriter
        self._matcher = Matcher(pattern, rewriter, shared=rule.shared, explain=explain)
        self._survived = (SabirError, *survived)
        self._refused = ""

    @property
    def depth(self) -> int:
        """How many calls of the pattern matched at most."""
        return self._matcher.depth

    def contains(self, node: Node) -> bool:
        """Return whether a node is one of the match."""
        return self._matcher.contains(node)

    @property
    def reason(self) -> str:
        """Why the rule does not apply."""
        return self._refused or self._matcher.reason

    def replace(self, node: Node, released: list[Value]) -> list[Node] | None:
        """Return the nodes that replace the calls that end in a node, None where the rule does not apply.

        The values that the replaced nodes read are added to `released`: nothing else may read them.
        """
        match = self._match(node)
        if match is None:
            return None
        roots, graph, label = self._matcher.roots(), graph_of(node), node.name
        read = [v for root in roots for v in root.inputs if v is not None]
        opsets = self._opsets(match)
        try:
            nodes = self._replaced(roots, match, opsets)
        except self._survived as error:  # an invalid call stays as it is: the run reports it
            self._refused = f"the replacement: {error}"
            return None
        if opsets is not None:
            self._import(opsets, graph)
        if nodes and label and not nodes[-1].name:
            nodes[-1].name = label
        released += read
        return nodes

    def applies(self, node: Node) -> bool:
        """Return whether the rule applies at a node; the model stays as it is."""
        match = self._match(node)
        if match is None:
            return False
        try:
            self._replaced(self._matcher.roots(), match, self._opsets(match), is_trial=True)
        except _TrialError:
            return True
        except self._survived as error:
            self._refused = f"the replacement: {error}"
        return False

    def _match(self, node: Node) -> Match | None:
        rule, matcher = self._rule, self._matcher
        if rule.since > 1 and node.graph is not None:
            opset = self._rewriter.scope_of(node.graph).opset("") or 0
            if opset < rule.since:
                matcher.refuse(f"the replacement needs operator set {rule.since}, the model imports {opset}")
                return None
        return matcher.match(node, self._accepts if rule.conditions else None)

    def _accepts(self, match: Match) -> bool:
        try:
            self._rule.require(match)
        except Unconvertible as error:
            return self._matcher.refuse(str(error))
        return True

    def _opsets(self, match: Match) -> Mapping[str, int] | None:
        """Return the imports that the replacement needs, None where those in force suffice."""
        known, needed = match.scope.opsets, self._rule.domains
        return None if needed.keys() <= known.keys() else {**needed, **known}

    def _import(self, opsets: Mapping[str, int], graph: Graph) -> None:
        """Add imports to the model or the function that has a graph."""
        model, outermost = self._rewriter.model, list(enclosing(graph))[-1]
        owner = next((f for f in model.functions if f.graph is outermost), model)
        for domain, version in opsets.items():
            owner.opsets.setdefault(domain, version)
        self._rewriter.forget_types()

    def _replaced(
        self,
        roots: Sequence[Node],
        match: Match,
        opsets: Mapping[str, int] | None,
        *,
        is_trial: bool = False,
    ) -> list[Node]:
        outputs = [root.outputs for root in roots]
        for root, call in zip(roots, self._pattern.roots, strict=True):
            if len(root.outputs) > len(call.outputs):
                root.outputs = root.outputs[: len(call.outputs)]  # nothing reads the others

        def build(b: DetachedBuilder) -> tuple[Value | None, ...]:
            found = self._arranged(self._built(b, match))
            if is_trial:
                raise _TrialError
            return found

        try:
            return self._rewriter.replace_all(roots, build, opsets=opsets)
        except BaseException:
            for root, before in zip(roots, outputs, strict=True):
                root.outputs = before
            raise

    def _built(self, b: DetachedBuilder, match: Match) -> list[Value]:
        """Return what the rule builds for the outputs of the pattern."""
        made = self._rule.build(b, match)
        if made is None:
            raise Unconvertible("it returned None")
        outputs, results = self._matcher.outputs(), as_results(made)
        if len(results) != len(outputs):
            has = counted(len(outputs), "output")
            raise SchemaError(f"it returned {counted(len(results), 'value')}, the pattern has {has}")
        found: list[Value] = []
        for output, result in zip(outputs, results, strict=True):
            _require_type(match.type_of(output), match.type_of(result))
            is_copy = match.stands_for(result) and output.is_output
            found.append(
                b.Identity(result) if is_copy else result
            )  # refused for a type that it does not admit
        return found

    def _arranged(self, results: Sequence[Value]) -> tuple[Value | None, ...]:
        """Return results in the order of the outputs of the calls that they replace."""
        of = dict(zip(self._matcher.outputs(), results, strict=True))
        outputs = (v for root in self._matcher.roots() for v in root.outputs)
        return tuple(None if v is None else of.get(v) for v in outputs)


def _require_type(old: TensorType | None, new: TensorType | None) -> None:
    """Raise Unconvertible where a result has another type than what it replaces, as far as both are known."""
    if old is None or new is None:
        return
    same = old.element is new.element
    if same and old.shape is not None and new.shape is not None:
        sizes = zip(old.shape, new.shape, strict=False)
        same = len(old.shape) == len(new.shape) and not any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in sizes
        )
    if not same:
        raise Unconvertible(f"it computes {new}, the pattern {old}")
