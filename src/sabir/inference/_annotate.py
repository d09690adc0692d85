"""Inference as one call: types worked out, and written into the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, run_within
from sabir.inference._engine import Inference
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.schema import Registry


def infer(
    model: Model,
    *,
    strict: bool = False,
    fresh: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Annotate every value of a model with its type and shape, as far as they follow, and return the model.

    What the model declares of its values stays, and inference adds to it. So a declared number stays even
    where an input has become dynamic since and the size follows from it; `sabir.findings` reports TYPE009.
    With `fresh` what is declared of computed values is dropped, and replaced by what follows from the inputs,
    the initializers and the inputs of subgraphs; a value of which nothing follows keeps its type.

    What contradicts itself is left as declared, or with `strict` raises InferenceError at the first place.
    `registry` has the operators, those of the standard by default. `limits` bounds what this may spend, by
    default as `Limits()` does; raises LimitError beyond.
    """
    run_within(limits, _annotate, model, registry, strict=strict, fresh=fresh)
    return model


def _annotate(model: Model, registry: Registry, *, strict: bool, fresh: bool) -> None:
    engine = Inference(model, registry=registry, strict=strict, fresh=fresh)
    engine.run()
    engine.annotate()
