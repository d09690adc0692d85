"""The generator of random words: Threefry-2x32, a function of a key and of the number of an element.

Salmon, Moraes, Dror and Shaw describe it in "Parallel random numbers: as easy as 1, 2, 3" (2011), and find
that 13 rounds pass all tests of TestU01. It needs no state, so elements are drawn in any order and by any
number of threads, and no multiplication, so each vector unit computes it. A key has 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_ROUNDS, _TURNS = 13, 4  # a part of the key is added after every four rounds
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA


class WordArithmetic(NamedTuple, Generic[T]):
    """Operations on unsigned integers of 32 bits, of which the second operand may be a number.

    They are those of numpy, or of the registers of a kernel: the generator is written once for both.
    """

    add: Callable[[T, T | int], T]
    xor: Callable[[T, T | int], T]
    rotated: Callable[[T, int], T]  # to the left


def threefry(on: WordArithmetic[T], start: tuple[T, T], key: tuple[T, T]) -> tuple[T, T]:
    """Return the two random words of a number of 64 bits, in halves of which the lower one is the first.

    `start` is each half plus that of the key: who adds a key to parts of a number adds it once for many.
    """
    parts = (*key, on.xor(on.xor(key[0], key[1]), _PARITY))
    x, y = start
    for turn in range(_ROUNDS):
        x = on.add(x, y)
        y = on.xor(on.rotated(y, _ROTATIONS[turn % len(_ROTATIONS)]), x)
        step, rest = divmod(turn + 1, _TURNS)
        if not rest:
            x = on.add(x, parts[step % 3])
            y = on.add(y, on.add(parts[(step + 1) % 3], step))
    return x, y
