"""Type inference of a subgraph from the types of its inputs and captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import ACCIDENTS, SabirError
from sabir.compilation.frontend.prepare import Prepared, folded
from sabir.elements import element
from sabir.ir import TensorType, symbol
from sabir.scheduling import OperatorCall
from sabir.schema import Call, as_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array, Type
    from sabir.scheduling import Plan, Program

_FEW = 64  # elements of a constant whose contents become a part of its type


def prepare_body(
    program: Program,
    plan: Plan,
    kinds: Mapping[int, Type | None],
    captured: Mapping[int, Array] | None = None,
) -> Prepared | None:
    """Return a subgraph with inferred types; `kinds` are those of its inputs and captures, by slot.

    `captured` are constants of the enclosing program, by slot.
    """
    constants = {slot: tensor for slot, tensor in program.constants.items() if slot not in kinds}
    arrays = folded(program._replace(constants=constants), plan)
    types: list[Type | None] = [None] * program.size
    for slot, kind in kinds.items():
        types[slot] = kind
    for slot, array in arrays.items():
        types[slot] = TensorType(element(array.dtype), tuple(array.shape))
    for slot, array in (captured or {}).items():
        known = tuple(array.ravel().tolist()) if array.size <= _FEW and array.dtype.kind == "i" else None
        types[slot], arrays[slot] = TensorType(element(array.dtype), tuple(array.shape), known), array
    unknown: set[str] = set()
    for place, _ in plan.steps:
        call = program.calls[place]
        if not isinstance(call, OperatorCall) or call.captures or all(s in arrays for s in call.outputs if s):
            continue
        for number, (slot, kind) in enumerate(zip(call.outputs, _inferred(call, types), strict=False)):
            types[slot] = _settled(kind, f"b{place}.{number}", unknown)
    return Prepared(program, plan, types, arrays, tuple(kinds), (), frozenset(unknown))


def _inferred(call: OperatorCall, types: Sequence[Type | None]) -> tuple[Type | None, ...]:
    operands = [types[slot] if slot else None for slot in call.inputs]
    if any(kind is None for kind, slot in zip(operands, call.inputs, strict=True) if slot):
        return ()
    if call.version.find("infer") is None or call.cost > 1:
        return ()
    binding = call.version.binding("infer")
    try:
        return as_results(
            binding(operands, binding.fill(call.attributes), Call(call.named, call.version.since))
        )
    except (SabirError, *ACCIDENTS):
        return ()


def _settled(kind: Type | None, name: str, unknown: set[str]) -> Type | None:
    """Return a type with a new symbol for each unknown size; the symbols are added to `unknown`."""
    if not isinstance(kind, TensorType) or kind.shape is None:
        return kind
    unknown.update(f"{name}.{axis}" for axis, d in enumerate(kind.shape) if d is None)
    shape = tuple(symbol(f"{name}.{axis}") if d is None else d for axis, d in enumerate(kind.shape))
    return TensorType(kind.element, shape, kind.known)
