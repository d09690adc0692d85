"""The generator of random words: Threefry-2x32, a function of a key and of the number of an element.

Salmon, Moraes, Dror and Shaw describe it in "Parallel random numbers: as easy as 1, 2, 3" (2011), and find
that 13 rounds pass all tests of TestU01. It has no state, so threads draw elements in any order, and needs no
multiplication, so any vector unit computes it. A key has 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_ROUNDS, _INTERVAL = 13, 4  # a part of the key is added after every four rounds
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA


class WordArithmetic(NamedTuple, Generic[T]):
    """Operations on 32-bit unsigned integers; the second operand may be a number.

    The generator is written once, for arrays of numpy and for registers of a kernel.
    """

    add: Callable[[T, T | int], T]
    xor: Callable[[T, T | int], T]
    rotated: Callable[[T, int], T]  # to the left


def threefry(on: WordArithmetic[T], start: tuple[T, T], key: tuple[T, T]) -> tuple[T, T]:
    """Return the two random words of a 64-bit number.

    `start` is `(low + key[0], high + key[1])` for the two halves of the number: a caller that draws many
    numbers adds the key once.
    """
    parts = (*key, on.xor(on.xor(key[0], key[1]), _PARITY))
    x, y = start
    for number in range(_ROUNDS):
        x = on.add(x, y)
        y = on.xor(on.rotated(y, _ROTATIONS[number % len(_ROTATIONS)]), x)
        step, rest = divmod(number + 1, _INTERVAL)
        if not rest:
            x = on.add(x, parts[step % 3])
            y = on.add(y, on.add(parts[(step + 1) % 3], step))
    return x, y
