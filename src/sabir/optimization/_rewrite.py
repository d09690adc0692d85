"""`rewrite`: a model changed by rules of one's own, and the proof that they keep its meaning."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

from sabir.base import quote, run_with_limits, without_collector
from sabir.editing import Finder
from sabir.ir import check_is_model
from sabir.opsets import STANDARD
from sabir.optimization._verifying import verified
from sabir.patterns import ApplyRules, RewriteRule, load_rules, refusals, why_not

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from sabir.base import Limits
    from sabir.ir import Model, Node
    from sabir.optimization._verifying import Verification
    from sabir.patterns import Refusal
    from sabir.schema import Registry

    Rules: TypeAlias = Iterable[RewriteRule] | RewriteRule | str | PathLike[str]


@dataclass(frozen=True)
class Rewriting:
    """A rewritten model, how often each rule was applied, and why rules leave nodes alone.

    `refusals`, on request, has an entry for each node of the rewritten model that calls the operator in which
    the pattern of a rule ends. `verification` compares the outputs of both models; None where they
    were not run.
    """

    model: Model
    applied: Mapping[str, int] = field(default_factory=dict[str, int])
    refusals: Sequence[Refusal] = ()
    verification: Verification | None = None


@overload
def rewrite(
    model: Model,
    rules: Rules,
    *,
    explain: Literal[False] = False,
    verify: bool | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model: ...
@overload
def rewrite(
    model: Model,
    rules: Rules,
    *,
    explain: Literal[True],
    verify: bool | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Rewriting: ...
def rewrite(
    model: Model,
    rules: Rules,
    *,
    explain: bool = False,
    verify: bool | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model | Rewriting:
    """Return a copy of a model in which rules replace what they match, until none matches.

    `rules` are one or several `RewriteRule`, or the path of a TOML file of them (see `sabir.patterns`). Rules
    also apply in subgraphs and in the bodies of functions. Nodes that nothing reads afterwards are removed,
    all else stays. With `explain` the result is a `Rewriting`: the model, how often each rule was applied,
    and why it leaves the nodes alone in which its pattern could end.

    `verify` runs both models on random inputs of several shapes; by default that is done for models of up to
    256 MiB whose operators are all known. Raises EvaluationError where they differ, SchemaError where
    replacements are replaced without end, LimitError; for a file, what `load_rules` raises.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 24]>
    ... g (float[N,4] x) => (float[N,4] y) { s = Sigmoid (x)  y = Mul (s, x) }''')
    >>> rule = sabir.RewriteRule('swish', 'y = Mul (x, Sigmoid (x))', 'y = Swish (x)')
    >>> [node.op for node in sabir.rewrite(model, [rule]).graph]
    ['Swish']
    """
    found = rewrite_and_report(
        model, rules, explain=explain, verify=verify, registry=registry, limits=limits
    )  # fmt: skip
    return found if explain else found.model


def rewrite_and_report(
    model: Model,
    rules: Rules,
    *,
    explain: bool = False,
    verify: bool | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Rewriting:
    """Rewrite a model as `rewrite` does, and return it with how often each rule was applied."""
    check_is_model(model)
    job = _Job(rules_of(rules), explain, verify, registry)
    return run_with_limits(limits, job.run, model)


def explain_node(
    model: Model,
    rules: Rules,
    node: str | Node,
    *,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> list[Refusal]:
    """Return for each rule why it does not replace the calls around a node.

    The node is named, or a value that it computes. A `Refusal` with an empty reason says that the rule
    applies. Raises NotFoundError, with the nearest name, for a node that is not there.
    """
    check_is_model(model)
    return run_with_limits(
        limits, why_not, model, rules_of(rules), Finder(model).node(node), registry=registry
    )


def rules_of(rules: Rules) -> list[RewriteRule]:
    """Return the rules that a caller passes: one, several, or a file of them."""
    if isinstance(rules, RewriteRule):
        return [rules]
    return load_rules(rules) if isinstance(rules, (str, PathLike)) else list(rules)


class _Job(NamedTuple):
    """The options of `rewrite`."""

    rules: Sequence[RewriteRule]
    explain: bool
    verify: bool | None
    registry: Registry

    def run(self, model: Model) -> Rewriting:
        """Rewrite a copy of a model."""
        copy, applying = model.clone(), ApplyRules(self.rules, registry=self.registry)
        with without_collector():  # hardly any node becomes garbage, and each pass would visit all of them
            applying.run(copy)
        verification = None
        if applying.applied:
            after = f"the rules {', '.join(dict.fromkeys(map(quote, applying.applied)))}"
            verification = verified(model, copy, after, verify=self.verify, registry=self.registry)
        refused = refusals(copy, self.rules, registry=self.registry) if self.explain else ()
        return Rewriting(copy, Counter(applying.applied), refused, verification)
