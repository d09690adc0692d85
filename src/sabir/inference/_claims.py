"""Declarations of computed values that say more than follows.

What a file declares of such a value is a claim: a number, say, where the size depends on what the model is
fed. Inference keeps it, and reports for which sizes of the inputs it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import Finding, Location, quote
from sabir.ir import Expr, TensorType, Type

if TYPE_CHECKING:
    from sabir.ir import Graph, Value

CLAIM = "TYPE009"


class Claim(NamedTuple):
    """A dimension that is declared a number, and what it follows to be."""

    axis: int
    declared: int
    found: Expr


def claim_in(declared: Type, found: Type) -> Claim | None:
    """Return the first dimension that is a number as declared and an expression as inferred, or None."""
    if not isinstance(declared, TensorType) or not isinstance(found, TensorType):
        return None
    for axis, (said, dim) in enumerate(zip(declared.shape or (), found.shape or (), strict=False)):
        if isinstance(said, int) and isinstance(dim, Expr):
            return Claim(axis, said, dim)
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


def claim_finding(
    value: Value, declared: Type, claim: Claim, inputs: dict[str, str], where: Location
) -> Finding | None:
    """Return the finding for a claim, or None where more than the sizes of inputs decides the dimension."""
    symbols = sorted(claim.found.symbols)
    if not symbols or any(name not in inputs for name in symbols):
        return None
    of = quote(inputs[symbols[0]])
    told = (
        f"{quote(value.name)} is declared {declared}, but its dimension {claim.axis} is {claim.found}, by the"
        f" shape of the input {of}; the declaration holds only where {claim.found} = {claim.declared}"
    )
    hint = "leave the dimension open, or replace what is declared: `sabir infer --fresh`"
    return Finding(CLAIM, told, where, hint, "warning")
