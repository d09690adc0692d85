"""The indices of the true elements of a vector, and their number.

64 elements are one integer of bits, so a block without a true element takes one comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Kind, Register
from sabir.compilation.plan.signature import KernelSignature, declared, of_kind

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.emitter import Variable

_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Places:
    """The indices of the true elements of a vector; see `TruePlaces`."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors among the arguments."""
        return "results", "marks"

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the number of elements, and the tensors."""
        return declared(count="size", **of_kind("tensor", self.tensors))

    def __str__(self) -> str:
        return "places of true elements"


def places_text(places: Places) -> str:
    """Return the LLVM module of the places of true elements."""
    e = Emitter()
    arguments = Arguments(e, places.signature)
    count, results, marks = (
        arguments.number("count"),
        arguments.pointer("results"),
        arguments.pointer("marks"),
    )
    found, target = e.variable(e.index(0)), e.offset(results, e.index(1), "i64")
    whole = e.binary("and", count, e.index(-_BLOCK))
    with e.loop(e.index(0), whole, _BLOCK) as first:
        _block(e, e.offset(marks, first), first, target, found)
    with e.loop(whole, count) as place:
        number = e.get(found)
        e.store(place, e.offset(target, number, "i64"))  # the next place is written over it if it is false
        mark = e.load(e.offset(marks, place), Kind("i8"))
        e.assign(found, e.add(number, e.convert("zext", mark, "i64")))
    e.store(e.get(found), results)
    return e.text()


def _block(e: Emitter, marks: Register, first: Register, target: Register, found: Variable) -> None:
    """Emit the search of a block."""
    kind = Kind("i8", _BLOCK)
    true = e.compare("icmp ne", e.load(marks, kind), e.constant(kind, 0))
    remaining = e.variable(e.value(INDEX, f"bitcast {true} to i64"))

    def one() -> Register:
        bits, number = e.get(remaining), e.get(found)
        lane = e.call("llvm.cttz.i64", INDEX, bits, Register("true", Kind("i1")))
        e.store(e.add(first, lane), e.offset(target, number, "i64"))
        e.assign(found, e.add(number, 1))
        left = e.binary("and", bits, e.add(bits, -1))
        e.assign(remaining, left)
        return e.compare("icmp ne", left, e.index(0))

    with e.when(e.compare("icmp ne", e.get(remaining), e.index(0))):
        e.repeat(one)
