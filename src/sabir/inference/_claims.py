"""Declarations of computed values that are narrower than what inference finds.

Such a declaration is a claim: a number, say, where the size depends on the inputs of the model. Inference
keeps it, and reports for which sizes of the inputs it is true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import quote
from sabir.inference._causes import Cause
from sabir.inference._diagnostics import Diagnostic
from sabir.ir import Expr, TensorType, Type

if TYPE_CHECKING:
    from sabir.base import Location
    from sabir.ir import Graph, Value


class Claim(NamedTuple):
    """A dimension that is declared as a number and inferred as an expression."""

    axis: int
    declared: int
    inferred: Expr


def claim_in(declared: Type, inferred: Type) -> Claim | None:
    """Return the first dimension that is a number as declared and an expression as inferred, or None."""
    if not isinstance(declared, TensorType) or not isinstance(inferred, TensorType):
        return None
    for axis, (size, dim) in enumerate(zip(declared.shape or (), inferred.shape or (), strict=False)):
        if isinstance(size, int) and isinstance(dim, Expr):
            return Claim(axis, size, dim)
    return None


def symbols_of_inputs(graph: Graph) -> dict[str, str]:
    """Return the dimension variables of a graph's inputs, each with the first input that has it."""
    found: dict[str, str] = {}
    for value in graph.inputs:
        if isinstance(value.type, TensorType) and value not in graph.initializers:
            for dim in value.type.shape or ():
                for name in sorted(dim.symbols) if isinstance(dim, Expr) else ():
                    found.setdefault(name, value.name)
    return found


def claim_diagnostic(
    value: Value, declared: Type, claim: Claim, inputs: dict[str, str], where: Location
) -> Diagnostic | None:
    """Return the diagnostic of a claim, None where the dimension depends on more than sizes of inputs."""
    symbols = sorted(claim.inferred.symbols)
    if not symbols or any(name not in inputs for name in symbols):
        return None
    source = quote(inputs[symbols[0]])
    message = (
        f"{quote(value.name)} is declared as {declared}, but dimension {claim.axis} is {claim.inferred},"
        f" which depends on the shape of the input {source}; the declaration is true only if"
        f" {claim.inferred} = {claim.declared}"
    )
    hint = "leave the dimension unset, or replace the declared types: `sabir infer --fresh`"
    return Diagnostic(Cause.DECLARED_SIZE, message, where, hint)
