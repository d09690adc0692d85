"""The executable part of a compiled plan: its entries, its constants, the slots of inputs and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.compilation.frontend.patterns import Guard
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.plan.entries import KernelPlan
    from sabir.ir import Array, Known


class Executable(NamedTuple):
    """A plan with the facts of its program that runs need.

    `symbols` are the symbols whose sizes the feeds decide, `slots` is the number of values, `known` has the
    contents of tensors that are computed from sizes alone, `guards` the assumptions of the plan about sizes.
    """

    plan: KernelPlan
    symbols: frozenset[str]
    slots: int
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    known: dict[int, Known]
    constants: dict[int, Array]
    guards: tuple[Guard, ...]


def executable_of(prepared: Prepared, plan: KernelPlan, symbols: frozenset[str]) -> Executable:
    """Return the executable of a plan of a prepared program."""
    known = {**plan.known}
    for buffer in plan.buffers:
        kind = prepared.types[buffer.slot] if buffer.kind == "known" and buffer.slot not in known else None
        if isinstance(kind, TensorType) and kind.known is not None:
            known[buffer.slot] = kind.known
    slots = max([prepared.program.size, *(slot + 1 for slot in (*prepared.constants, *plan.known))])
    return Executable(plan, symbols, slots, prepared.inputs, prepared.plan.results, known,
                      prepared.constants, prepared.guards)  # fmt: skip
