"""Loads of the arguments of a kernel, by the names of its signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.emitter import INDEX, POINTER, Register
from sabir.compilation.plan.signature import group_of, words_of

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.emitter import Emitter
    from sabir.compilation.plan.signature import KernelSignature


class Arguments:
    """Emits loads of the arguments of a signature, which begin at a word of the block of the emitter."""

    def __init__(self, e: Emitter, signature: KernelSignature, first: Register | int = 0) -> None:
        self.e, self.signature, self._first = e, signature, first

    def group(self, name: str) -> Arguments:
        """Return the arguments of a group, of a repeated one those of the first time."""
        place, declared = self.signature.find(name)
        return Arguments(self.e, group_of(declared, name), self._word(place))

    def repeated(self, name: str, number: Register) -> Arguments:
        """Emit where the arguments begin that a repeated group has the time `number`."""
        e, (place, declared) = self.e, self.signature.find(name)
        skipped = e.mul(number, words_of(declared))
        first = skipped if isinstance(self._first, int) else e.add(self._first, skipped)
        place += self._first if isinstance(self._first, int) else 0
        return Arguments(e, group_of(declared, name), e.add(first, place))

    def number(self, name: str, index: Register | int = 0) -> Register:
        """Emit the load of a number, or of one of several."""
        place = self._word(self.signature.find(name)[0])
        return self.e.argument(_sum(self.e, place, index))

    def numbers(self, name: str) -> list[Register]:
        """Emit the loads of all numbers of an argument."""
        _, declared = self.signature.find(name)
        return [self.number(name, index) for index in range(words_of(declared))]

    def address(self, name: str) -> Register:
        """Emit the load of an address."""
        return self.e.argument(self._word(self.signature.find(name)[0]), "ptr")

    def pointer(self, name: str) -> Register:
        """Emit the address of the first element of a tensor."""
        e, place = self.e, self.signature.find(name)[0]
        base = buffer_at(e, e.argument(self._word(place)))
        return e.offset(base, e.argument(self._word(place + 1)))

    def own_scratch(self, name: str = "scratch") -> Register:
        """Emit the address of the scratch memory of this thread."""
        group = self.group(name)
        mine = self.e.mul(Register("%thread", INDEX), group.number("bytes"))
        return self.e.offset(group.pointer("memory"), mine)

    def _word(self, place: int) -> Register | int:
        return _sum(self.e, self._first, place)


def buffer_at(e: Emitter, number: Register) -> Register:
    """Emit the address of the buffer with a number."""
    slot = e.offset(Register("%buffers", POINTER), number, "i64")
    return e.value(POINTER, f"load ptr, {slot}, align 8")


def _sum(e: Emitter, place: Register | int, index: Register | int) -> Register | int:
    if isinstance(place, int):
        return place + index if isinstance(index, int) else e.add(index, place)
    return e.add(place, index)
