"""Repairs: changes of a model that remove findings of the checker and change no computed value."""

from sabir.repairing._engine import (
    REPAIRS,
    UNSAFE_REPAIRS,
    Repaired,
    fix,
    fix_and_report,
    fix_in_place,
)
from sabir.repairing._repair import Repair

__all__ = [
    "REPAIRS",
    "UNSAFE_REPAIRS",
    "Repair",
    "Repaired",
    "fix",
    "fix_and_report",
    "fix_in_place",
]
