"""The types of a call's operands and results: those of unknown operands, and those that ports admit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import UNDEFINED, TensorType
from sabir.schema import check_results, is_settled, operand_mismatch, port_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Type, Value
    from sabir.schema import Version

_LARGEST = 2**63 - 1


def operand_types(
    version: Version, inputs: Sequence[Value | None], types: Sequence[Type | None]
) -> list[Type | None] | None:
    """Return the types of a call's operands, an unknown one as a tensor of unknown shape.

    Returns None where an operand of unknown type may be no tensor.
    """
    found: list[Type | None] = []
    for place, (value, kind) in enumerate(zip(inputs, types, strict=True)):
        if kind is None and value is not None:
            kind = _unknown(port_at(version.inputs, place).allowed)  # ruff: ignore[redefined-loop-name]  refined
            if kind is None:
                return None
        found.append(kind)
    return found


def _unknown(allowed: frozenset[str]) -> TensorType | None:
    """Return the type of an input of which only its port is known."""
    if not all(t.startswith("tensor(") for t in allowed):
        return None
    if len(allowed) > 1:
        return TensorType(UNDEFINED)
    return TensorType(element(next(iter(allowed)).removeprefix("tensor(").removesuffix(")")))


def check_sizes(results: Sequence[Type | None]) -> None:
    """Raise InferenceError for a dimension that no tensor can have: below 0, or past int64."""
    for kind in results:
        if not isinstance(kind, TensorType):
            continue
        for dim in kind.shape or ():
            if isinstance(dim, int) and not 0 <= dim <= _LARGEST:
                raise InferenceError(f"an output would have a dimension of {dim}")


def check_types(version: Version, inputs: Sequence[Type | None]) -> None:
    """Raise InferenceError for a type that a port does not admit, or ports of one constraint that differ."""
    signatures = [None if k is None or _is_untyped(k) else k.signature for k in inputs]
    message = operand_mismatch(version, signatures)
    if message is not None:
        raise InferenceError(message)


def _is_untyped(kind: Type) -> bool:
    return isinstance(kind, TensorType) and not kind.element.number


def misdeclared(
    version: Version,
    inputs: Sequence[Type | None],
    results: Sequence[Type | None],
    declared: Sequence[Type | None],
) -> InferenceError | None:
    """Return what is wrong with the declared types of the outputs whose types inference does not know."""
    unknown = [None if is_settled(r) else d for r, d in zip(results, declared, strict=False)]
    try:
        check_results(version, inputs, unknown)
    except InferenceError as error:
        return error
    return None
