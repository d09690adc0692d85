"""Calls that kernels do not compute; stored plans have them, so their class stands alone."""

from __future__ import annotations

from typing import NamedTuple


class UnloweredCall(NamedTuple):
    """A call that numpy evaluates: its index in the program, the slots that it reads, and the reason."""

    place: int
    reads: tuple[int, ...]
    reason: str


__all__ = ["UnloweredCall"]
