"""What a training model must satisfy before it is run: the rules of the checker about training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.checking import RULES, findings
from sabir.ir import TRAINING

if TYPE_CHECKING:
    from sabir.base import Limits
    from sabir.ir import Model
    from sabir.schema import Registry


def require_valid(model: Model, registry: Registry, limits: Limits | None) -> None:
    """Raise SchemaError for a training model that breaks a rule about training, with the sentence.

    These are the rules TRAIN001 to TRAIN008: what bindings name, once each; which graphs they need; no names
    in two graphs that run as one; types and shapes of updates, as far as inference knows them; no two state
    variables of one name.
    """
    if model.training and model.ir_version < TRAINING.since:
        raise SchemaError(
            f"the model has IR version {model.ir_version}; training information came with {TRAINING.since}"
        )
    found = findings(model, select=["TRAIN"], registry=registry, limits=limits)
    problem = next((f for f in found if f.severity == "error"), None)
    if problem is not None:
        rule = RULES.find(problem.rule)
        sentence = "" if rule is None else rule.law
        raise SchemaError(f'{problem.location}: {problem.message}; the standard says: "{sentence}"')


__all__ = ["require_valid"]
