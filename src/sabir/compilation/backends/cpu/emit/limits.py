"""Two kernels for the roofline of the machine: multiplications in registers, and reads of memory."""

from __future__ import annotations

from sabir.compilation.backends.cpu.emit.arguments import Arguments, buffer_at
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Kind, Register
from sabir.compilation.plan.signature import KernelSignature

_SUMS = 12  # independent sums: more than the latency of a multiplication, and they fit into 16 registers
_UNROLLED = 4  # multiplications of each sum in a round
ROUNDS = KernelSignature(rounds="size")
"""The arguments of both kernels."""


def multiply_test_text(lanes: int) -> tuple[str, int]:
    """Return the LLVM module of a loop of multiplications and additions, and the operations of a round.

    Each thread does all rounds; buffer 0 receives a vector from each thread.
    """
    e = Emitter()
    rounds, kind = Arguments(e, ROUNDS).number("rounds"), Kind("float", lanes)
    factor = e.splat(e.convert("sitofp", rounds, "float"), lanes)
    sums = [e.variable(e.constant(kind, number)) for number in range(_SUMS)]
    with e.loop(e.index(0), rounds):
        for _ in range(_UNROLLED):
            for total in sums:
                e.assign(total, e.fma(e.get(total), factor, factor))
    _store(e, [e.get(total) for total in sums], "fadd")
    return e.text(), 2 * lanes * _SUMS * _UNROLLED


def memory_test_text(lanes: int) -> tuple[str, int]:
    """Return the LLVM module of a loop that reads memory once, and the bytes of a round.

    The threads share the rounds; buffer 0 receives a vector from each thread, buffer 1 is read.
    """
    e = Emitter()
    kind = Kind("i32", lanes)
    low, high = e.share(Arguments(e, ROUNDS).number("rounds"))
    base = buffer_at(e, e.index(1))
    size = kind.lanes * 4
    sums = [e.variable(e.constant(kind, 0)) for _ in range(_UNROLLED)]
    with e.loop(low, high) as step:
        start = e.offset(base, e.mul(step, _UNROLLED * size))
        for number, total in enumerate(sums):
            x = e.load(e.offset(start, e.index(number * size)), kind)
            e.assign(total, e.binary("or", e.get(total), x))
    _store(e, [e.get(total) for total in sums], "or")
    return e.text(), _UNROLLED * size


def _store(e: Emitter, parts: list[Register], op: str) -> None:
    """Combine vectors and store the result, so that LLVM cannot remove any of the work."""
    total = parts[0]
    for part in parts[1:]:
        total = e.binary(op, total, part)
    place = e.mul(Register("%share", INDEX), total.kind.lanes * 4)
    e.store(total, e.offset(buffer_at(e, e.index(0)), place))
