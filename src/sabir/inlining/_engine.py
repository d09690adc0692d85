"""Inlining: a call of a function, or of an operator that has a body, becomes the nodes of its body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, run_with_limits
from sabir.conversion import convert_in_place
from sabir.inlining._operators import InlineOperators
from sabir.opsets import STANDARD
from sabir.rewrite import InlineFunctions, run_passes
from sabir.schema import Registry, Scope

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sabir.ir import Model
    from sabir.rewrite import Pass


def inline(
    model: Model,
    *,
    operators: bool | Collection[str] = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Replace every call of the model's functions by the function's body, and return the model.

    `operators` asks for the same of operators that have a body: of all (True), or of those named. Raises
    SchemaError for an invalid call and a function that calls itself, LimitError where the result would exceed
    `limits`, UnsupportedError for operators in an opset that is not known; no function is replaced then. A
    body that is written for other operator sets than the model is converted, for each call: ConversionError
    if that is impossible.

    >>> b = sabir.Builder(21)
    >>> twice = b.function(lambda g, x: x + x, name='twice')
    >>> y = b.output(twice(b.input('x', 'float', ['N'])), 'y')
    >>> [node.op for node in sabir.inline(b.model()).graph]
    ['Add']
    """
    run_with_limits(limits, _inline, model, registry, operators=operators)
    return model


def _inline(model: Model, registry: Registry, *, operators: bool | Collection[str]) -> None:
    Scope.of(model, registry, newer_opsets=not operators)  # raises for a version that is not known

    def convert(body: Model, opsets: Mapping[str, int]) -> None:
        convert_in_place(body, opsets, registry)

    passes: list[Pass] = [InlineFunctions(registry, convert=convert)]
    if operators:
        passes.append(InlineOperators(registry, None if operators is True else frozenset(operators)))
    run_passes(model, passes)
