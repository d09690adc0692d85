"""Inlining: a call of a function, or of an operator that has a body, becomes the nodes of its body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, run_with_limits
from sabir.conversion import convert_in_place
from sabir.inlining._operators import InlineOperators
from sabir.ir import check_is_model
from sabir.opsets import STANDARD
from sabir.rewriting import InlineFunctions, run_passes
from sabir.schema import Registry, Scope

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sabir.ir import Model
    from sabir.rewriting import Pass


def inline(
    model: Model,
    *,
    operators: bool | Collection[str] = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model in which each call of a function of the model is replaced by its body.

    The model itself is not changed, and the copy shares its tensors; `inline_in_place` changes it. Imports
    of domains that nothing calls any more are dropped.

    `operators` asks for the same of operators that have a body: of all (True), or of those named. Raises
    SchemaError for an invalid call and a function that calls itself, LimitError where the result would exceed
    `limits`, UnsupportedError for operators in an opset that is not known. A body that is written for other
    operator sets than the model is converted, for each call: ConversionError if that is impossible.

    >>> b = sabir.Builder(21)
    >>> twice = b.function(lambda g, x: x + x, name='twice')
    >>> y = b.output(twice(b.input('x', 'float', ['N'])), 'y')
    >>> [node.op for node in sabir.inline(b.model()).graph]
    ['Add']
    """
    check_is_model(model)
    copy = model.clone()
    inline_in_place(copy, operators=operators, registry=registry, limits=limits)
    return copy


def inline_in_place(
    model: Model,
    *,
    operators: bool | Collection[str] = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> None:
    """Replace the calls in the model itself; otherwise as `inline`. An error leaves all calls as they are.

    >>> b = sabir.Builder(21)
    >>> twice = b.function(lambda g, x: x + x, name='twice')
    >>> y = b.output(twice(b.input('x', 'float', ['N'])), 'y')
    >>> model = b.model()
    >>> inline_in_place(model)
    >>> [node.op for node in model.graph], model.functions
    (['Add'], [])
    """
    run_with_limits(limits, _inline, model, registry, operators=operators)


def _inline(model: Model, registry: Registry, *, operators: bool | Collection[str]) -> None:
    Scope.of(model, registry, newer_opsets=not operators)  # raises for a version that is not known

    def convert(body: Model, opsets: Mapping[str, int]) -> None:
        convert_in_place(body, opsets, registry)

    passes: list[Pass] = [InlineFunctions(registry, convert=convert)]
    if operators:
        passes.append(InlineOperators(registry, None if operators is True else frozenset(operators)))
    run_passes(model, passes)
