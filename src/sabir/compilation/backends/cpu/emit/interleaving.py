"""Interleaving of the instructions of independent computations, for instruction-level parallelism.

A processor looks ahead by a hundred or so instructions. If each depends on the previous one, as in a
polynomial, it is idle, unless instructions of other computations are between them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_REGISTER = re.compile(r"%t\d+")
_CONTROL = re.compile(r"  br |\w+:$")


def interleaved(parts: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of parts interleaved, one of each part in turn; a part keeps its order.

    A part may use registers of earlier parts. Parts with branches are concatenated.

    >>> interleaved([["  %t1 = a", "  %t2 = b %t1"], ["  %t3 = c %t2", "  %t4 = d"]])
    ['  %t1 = a', '  %t2 = b %t1', '  %t3 = c %t2', '  %t4 = d']
    """
    if any(_CONTROL.match(line) for part in parts for line in part):
        return [line for part in parts for line in part]
    waiting = {_result(line) for part in parts for line in part} - {""}
    found: list[str] = []
    ahead = [list(reversed(part)) for part in parts]
    while any(ahead):
        for part in ahead:
            if part and waiting.isdisjoint(_operands(part[-1])):
                line = part.pop()
                waiting.discard(_result(line))
                found.append(line)
    return found


def _result(line: str) -> str:
    name, equals, _ = line.partition(" = ")
    return name.strip() if equals else ""


def _operands(line: str) -> list[str]:
    return _REGISTER.findall(line.partition(" = ")[2] or line)
