"""Whether the examples of a rule prove it: both sides compute the same, and near misses stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError, SabirError, SchemaError, quote
from sabir.checking import check
from sabir.evaluation import evaluate
from sabir.inference import type_outputs
from sabir.ir import tensor_type, verify
from sabir.opsets import STANDARD
from sabir.optimization._verifying import largest_difference, verify_equal
from sabir.patterns import ApplyRules
from sabir.serial import dumps
from sabir.syntax import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Array, Model
    from sabir.patterns import RewriteRule
    from sabir.schema import Registry

_TOLERANCE = 1e-5
_SPECIAL = np.asarray(
    [[0.0, -0.0], [1.5, -2.5], [np.nan, np.inf], [-np.inf, 1e-45], [-1e-40, 3.4e38], [0.49999997, -7.0]],
    np.float32,
)
_PLAIN = np.linspace(-3, 3, 12, dtype=np.float32).reshape(6, 2)


def prove(rule: RewriteRule, opsets: Iterable[int] = (), *, registry: Registry = STANDARD) -> None:
    """Run the examples and the near misses of a rule.

    Each example must change, the rule must not apply to what it makes, and both must compute the same: every
    bit of it where the rule is exact, on special values too. Each near miss must stay as it is. `opsets` are
    the operator sets in which examples without a header run, by default the newest in which the rule applies.

    Raises EvaluationError, with the example and what differs; SchemaError for a rule without examples, and
    what reading an example raises.

    >>> prove(sabir.RewriteRule('negated-twice', 'Neg(Neg(x))', 'x', exact=True, shared=True,
    ...     examples=['a = Neg (x)  b = Neg (a)  y = Sqrt (b)'], near_misses=['a = Neg (x)  y = Sqrt (a)']))
    """
    if not rule.examples:
        raise SchemaError(f"rule {quote(rule.name)} has no example, so nothing proves it")
    first, end = rule.since, rule.until or (registry.newest_opset("") or rule.since) + 1
    chosen = [opset for opset in opsets if first <= opset < end] or [end - 1]
    for opset in chosen:
        for place, text in enumerate(rule.examples, 1):
            _prove_example(rule, text, opset, f"rule {quote(rule.name)}, example {place}", registry)
        for place, text in enumerate(rule.near_misses, 1):
            model = _model_of(text, opset)
            before = dumps(model)
            ApplyRules([rule], registry=registry).run(model)
            if dumps(model) != before:
                raise EvaluationError(f"rule {quote(rule.name)}, near miss {place}: the rule changes it")


def _model_of(text: str, opset: int) -> Model:
    """Return the model of an example; nodes alone are a graph from `x`, float[6,2], to `y`."""
    if text.lstrip()[:1] in {"<", "@"}:
        return parse(text)
    header = f'<ir_version: 10, opset_import: ["" : {opset}]>'
    model = parse(f"{header} g (float[6,2] x) => (y) {{ {text} }}")
    type_outputs(model)
    return model


def _prove_example(rule: RewriteRule, text: str, opset: int, label: str, registry: Registry) -> None:
    model = _model_of(text, opset)
    changed = model.clone()
    applying = ApplyRules([rule], registry=registry)
    if not applying.run(changed):
        raise EvaluationError(f"{label}: the rule leaves it alone in operator set {opset}")
    try:
        verify(changed)
        check(changed, registry=registry)
    except SabirError as error:
        raise EvaluationError(f"{label}: the rule makes an invalid model: {error}") from error
    if _takes_special_values(model):
        for feed in (_PLAIN, _SPECIAL) if rule.exact else (_PLAIN,):
            _require_equal(model, changed, feed, label, registry, is_exact=rule.exact)
    found = verify_equal(model, changed, registry=registry)
    if found.difference > (0 if rule.exact else _TOLERANCE):
        raise EvaluationError(f"{label}: output {quote(found.where)} differs by {found.difference:.3g}")
    if applying.run(changed):
        raise EvaluationError(f"{label}: the rule applies to what it makes")


def _takes_special_values(model: Model) -> bool:
    return [value.type for value in model.graph.inputs] == [tensor_type("float", _PLAIN.shape)]


def _require_equal(
    old: Model, new: Model, feed: Array, label: str, registry: Registry, *, is_exact: bool
) -> None:
    name = old.graph.inputs[0].name
    with np.errstate(all="ignore"):
        wanted, found = (evaluate(model, {name: feed}, registry=registry) for model in (old, new))
    for output, value in wanted.items():
        same = _same_bits(value, found[output]) if is_exact else None
        difference = largest_difference(value, found[output])
        if same is False or (not is_exact and difference > _TOLERANCE):
            raise EvaluationError(f"{label}: output {quote(output)} differs by {difference:.3g}")


def _same_bits(a: Array, b: Array) -> bool:
    """Return whether two results are equal, with the signs of zeros and the places of NaN."""
    if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
        return False
    return a.dtype.kind != "f" or bool((np.signbit(a) == np.signbit(b))[~np.isnan(a)].all())
