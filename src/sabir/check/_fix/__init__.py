"""Repairs: what the checker finds and can put right without a change to any value that is computed."""

from sabir.check._fix._fix import REPAIRS, fix
from sabir.check._fix._repair import Repair

__all__ = ["REPAIRS", "Repair", "fix"]
