"""The kernels of control flow: each returns whether the run goes on at the target of its row.

The meter is a record that the first entry of the table of buffers points to: the number of errors, then the
iterations and the work of the run so far, each with its limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sabir.compilation.backends.cpu.emit.arguments import Arguments, buffer_at
from sabir.compilation.backends.cpu.emit.emitter import INDEX, POINTER, Emitter, Kind, Register
from sabir.compilation.plan.entries import ERRORS, EXCEEDED, ITERATIONS, MOST_ITERATIONS, MOST_WORK, WORK
from sabir.compilation.plan.signature import KernelSignature, Repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

_BYTE = Kind("i8")
_WORD = 8
_MOVE = KernelSignature(buffer="number", tensor="tensor")
_STEP = KernelSignature(read="number", written="number", second="tensor", bytes="bytes")
_RESULT = KernelSignature(read="number", target="tensor", bytes="bytes")


@dataclass(frozen=True, slots=True)
class Choice:
    """A branch: jumps if the condition is false. With `fresh` the meter of a run begins at 0."""

    signature: ClassVar[KernelSignature] = KernelSignature(condition="tensor", cost="number", fresh="number")

    def __str__(self) -> str:
        return "unless the condition is true, jump"


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump."""

    signature: ClassVar[KernelSignature] = KernelSignature()

    def __str__(self) -> str:
        return "jump"


@dataclass(frozen=True, slots=True)
class LoopStart:
    """The begin of a loop: iteration 0; each of the `moves` points a buffer to a tensor."""

    signature: ClassVar[KernelSignature] = KernelSignature(
        number="tensor", fresh="number", count="number", moves=Repeated(_MOVE)
    )

    def __str__(self) -> str:
        return "begin a loop"


@dataclass(frozen=True, slots=True)
class LoopTest:
    """The begin of an iteration: jumps if the loop has ended, by limit or condition, or the run failed."""

    limited: bool
    conditional: bool
    counted: bool
    signature: ClassVar[KernelSignature] = KernelSignature(
        number="tensor", limit="tensor", iterations="size", condition="number", cost="number", work="number",
        loop="number",
    )  # fmt: skip

    def __str__(self) -> str:
        ends = (("limit", self.limited), ("condition", self.conditional), ("slices", self.counted))
        known = (name for name, is_there in ends if is_there)
        return f"jump at the end of the loop, by its {' and '.join(known)}"


@dataclass(frozen=True, slots=True)
class LoopNext:
    """The end of an iteration: jumps to the next one.

    The first `states` of the `steps` belong to states: the next iteration reads the tensor that this one
    wrote, and writes the one that this one read, or in iteration 1 a `second` one. The others advance a
    buffer by some bytes.
    """

    signature: ClassVar[KernelSignature] = KernelSignature(
        number="tensor", states="number", count="number", steps=Repeated(_STEP)
    )

    def __str__(self) -> str:
        return "begin the next iteration of the loop"


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """The end of a loop: copies the last states into its results."""

    signature: ClassVar[KernelSignature] = KernelSignature(count="number", results=Repeated(_RESULT))

    def __str__(self) -> str:
        return "copy the last states"


def choice_text(choice: Choice) -> str:
    """Return the LLVM module of a branch."""
    e, arguments = _begun(choice.signature)
    _begin_meter(e, arguments.number("fresh"))
    _spend(e, ITERATIONS, arguments.number("cost"))
    condition = e.load(arguments.pointer("condition"), _BYTE)
    return e.text(result=_flag(e, e.compare("icmp eq", condition, Register("0", _BYTE))))


def jump_text(jump: Jump) -> str:
    """Return the LLVM module of a jump."""
    e, _ = _begun(jump.signature)
    return e.text(result=e.index(1))


def start_text(start: LoopStart) -> str:
    """Return the LLVM module of the begin of a loop."""
    e, arguments = _begun(start.signature)
    _begin_meter(e, arguments.number("fresh"))
    e.store(e.index(0), arguments.pointer("number"))
    with e.loop(e.index(0), arguments.number("count")) as place:
        move = arguments.repeated("moves", place)
        e.store(move.pointer("tensor"), _slot(e, move.number("buffer")), align=_WORD)
    return e.text(result=e.index(0))


def test_text(test: LoopTest) -> str:
    """Return the LLVM module of the begin of an iteration."""
    e, arguments = _begun(test.signature)
    over = [e.compare("icmp ne", e.load(_meter(e, ERRORS), INDEX), e.index(0))]
    if test.limited:
        number, limit = (e.load(arguments.pointer(name), INDEX) for name in ("number", "limit"))
        over.append(e.compare("icmp sge", number, limit))
    if test.counted:
        number = e.load(arguments.pointer("number"), INDEX)
        over.append(e.compare("icmp sge", number, arguments.number("iterations")))
    if test.conditional:
        condition = e.load(buffer_at(e, arguments.number("condition")), _BYTE)
        over.append(e.compare("icmp eq", condition, Register("0", _BYTE)))
    ended = _any(e, over)
    spent = [
        _spend(e, place, arguments.number(name)) for place, name in ((ITERATIONS, "cost"), (WORK, "work"))
    ]
    limits = (e.load(_meter(e, place), INDEX) for place in (MOST_ITERATIONS, MOST_WORK))
    exceeds = _any(e, [e.compare("icmp sgt", x, most) for x, most in zip(spent, limits, strict=True)])
    fails = e.binary("and", exceeds, e.binary("xor", ended, Register("true", ended.kind)))
    with e.when(fails, rarely=True):
        e.store(arguments.number("loop"), _meter(e, EXCEEDED))
        _spend(e, ERRORS, e.index(1))
    return e.text(result=_flag(e, e.binary("or", ended, exceeds)))


def next_text(kernel: LoopNext) -> str:
    """Return the LLVM module of the end of an iteration."""
    e, arguments = _begun(kernel.signature)
    at = arguments.pointer("number")
    number = e.add(e.load(at, INDEX), 1)
    e.store(number, at)
    is_first = e.compare("icmp eq", number, e.index(1))
    states = arguments.number("states")
    with e.loop(e.index(0), states) as place:
        step = arguments.repeated("steps", place)
        read, written = (_slot(e, step.number(name)) for name in ("read", "written"))
        old, new = (e.load(slot, POINTER, align=_WORD) for slot in (read, written))
        e.store(new, read, align=_WORD)
        e.store(e.select(is_first, step.pointer("second"), old), written, align=_WORD)
    with e.loop(states, arguments.number("count")) as place:
        step = arguments.repeated("steps", place)
        slot = _slot(e, step.number("written"))
        e.store(e.offset(e.load(slot, POINTER, align=_WORD), step.number("bytes")), slot, align=_WORD)
    return e.text(result=e.index(1))


def end_text(end: LoopEnd) -> str:
    """Return the LLVM module of the end of a loop."""
    e, arguments = _begun(end.signature)
    with e.loop(e.index(0), arguments.number("count")) as place:
        result = arguments.repeated("results", place)
        source, target = buffer_at(e, result.number("read")), result.pointer("target")
        size = result.number("bytes")
        words = e.binary("and", size, e.index(-_WORD))
        with e.loop(e.index(0), words, _WORD) as at:
            e.store(e.load(e.offset(source, at), INDEX, align=1), e.offset(target, at), align=1)
        with e.loop(words, size) as at:
            e.store(e.load(e.offset(source, at), _BYTE), e.offset(target, at))
    return e.text(result=e.index(0))


def _begun(signature: KernelSignature) -> tuple[Emitter, Arguments]:
    e = Emitter()
    return e, Arguments(e, signature)


def _slot(e: Emitter, number: Register) -> Register:
    """Emit where the table of buffers has the address of a buffer."""
    return e.offset(Register("%buffers", POINTER), number, "i64")


def _meter(e: Emitter, place: int) -> Register:
    """Emit the address of a number of the meter."""
    return e.offset(buffer_at(e, e.index(ERRORS)), e.index(place), "i64")


def _begin_meter(e: Emitter, fresh: Register) -> None:
    with e.when(e.compare("icmp ne", fresh, e.index(0))):
        for place in (ITERATIONS, WORK):
            e.store(e.index(0), _meter(e, place))


def _spend(e: Emitter, place: int, amount: Register) -> Register:
    """Emit an addition to a number of the meter; return the sum."""
    at = _meter(e, place)
    found = e.add(e.load(at, INDEX), amount)
    e.store(found, at)
    return found


def _any(e: Emitter, conditions: Sequence[Register]) -> Register:
    found = conditions[0]
    for condition in conditions[1:]:
        found = e.binary("or", found, condition)
    return found


def _flag(e: Emitter, condition: Register) -> Register:
    return e.convert("zext", condition, "i64")
