"""Declarations of computed values that are narrower than what inference finds.

Such a declaration is a claim: a number, say, where the size depends on the inputs of the model. Inference
keeps it, and reports for which sizes of the inputs it is true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import quote
from sabir.inference._causes import Cause
from sabir.inference._diagnostics import Diagnostic
from sabir.ir import Expr, TensorType, Type, known_equal, mul, symbol

if TYPE_CHECKING:
    from sabir.base import Location
    from sabir.ir import Graph, Node, Value
    from sabir.schema import Condition


# sizes of the first symbols of two expressions which are compared: some that most numbers divide, some primes
_SAMPLES = (1024, 3 * 1024, 4099, 769)


class Claim(NamedTuple):
    """A dimension that is declared as a number or a variable, and inferred as another expression."""

    axis: int
    declared: int | Expr
    inferred: Expr


def claim_in(declared: Type, inferred: Type) -> Claim | None:
    """Return the first dimension that is declared as less than its inferred expression, or None."""
    if not isinstance(declared, TensorType) or not isinstance(inferred, TensorType):
        return None
    for axis, (size, dim) in enumerate(zip(declared.shape or (), inferred.shape or (), strict=False)):
        if not isinstance(dim, Expr) or size is None:
            continue
        is_claim = not _is_for_filled(size, dim) if isinstance(size, int) else _differs_in_samples(size, dim)
        if is_claim:
            return Claim(axis, size, dim)
    return None


def _is_for_filled(declared: int, inferred: Expr) -> bool:
    """Return whether a size is the declared number for all inputs that are not empty, as min(N, 1) is 1."""
    return inferred.substitute({name: symbol(name) + 1 for name in inferred.symbols}) == declared


def _differs_in_samples(declared: Expr, inferred: Expr) -> bool:
    """Return whether two expressions differ for all samples: equal ones may have two forms.

    A size that equals the declared variable for some sizes of the inputs alone, as one that is rounded up to
    a multiple of 32, is a habit of exporters and no contradiction.
    """
    if declared == inferred:
        return False
    names = sorted(declared.symbols | inferred.symbols)
    for shift in range(len(_SAMPLES)):
        sizes = {name: _SAMPLES[(shift + i) % len(_SAMPLES)] * (1 + i) for i, name in enumerate(names)}
        if known_equal(declared.substitute(sizes), inferred.substitute(sizes)) is not False:
            return False
    return True


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
    named = claim.declared.symbols if isinstance(claim.declared, Expr) else ()
    if not symbols or any(name not in inputs for name in (*symbols, *named)):
        return None
    source = quote(inputs[symbols[0]])
    message = (
        f"{quote(value.name)} is declared as {declared}, but dimension {claim.axis} is {claim.inferred},"
        f" which depends on the shape of the input {source}; the declaration is true only if"
        f" {claim.inferred} = {claim.declared}"
    )
    hint = "leave the dimension unset, or replace the declared types: `sabir infer --fresh`"
    return Diagnostic(Cause.DECLARED_SIZE, message, where, hint)


def condition_diagnostic(
    node: Node, condition: Condition, inputs: dict[str, str], where: Location
) -> Diagnostic | None:
    """Return the diagnostic of a condition, None where it depends on more than sizes of inputs."""
    symbols = sorted(condition.actual.symbols)
    if not symbols or any(name not in inputs for name in symbols):
        return None
    named = next((f", which {quote(v.name)} has" for v in node.inputs[1:] if v is not None and v.name), "")
    message = (
        f"{condition.what}{named}, are {condition.stated}, but the operand has {condition.actual}, which"
        f" depends on the shape of the input {quote(inputs[symbols[0]])};"
        f" a run fails unless {_solved(condition)}"
    )
    hint = "put -1, or a 0 that copies the operand's size, in the place of the size that was fixed"
    return Diagnostic(Cause.DECLARED_SIZE, message, where, hint)


def _solved(condition: Condition) -> str:
    """Return the condition as an equation, solved where the expression is a multiple of one variable."""
    actual, stated = condition.actual, condition.stated
    if len(actual.symbols) == 1:
        (name,) = actual.symbols
        once = actual.substitute({name: 1})
        if isinstance(once, int) and once > 0 and stated % once == 0 and actual == mul(once, symbol(name)):
            return f"{name} = {stated // once}"
    return f"{actual} = {stated}"
