"""Repairs: what the checker finds and can put right without a change to any value that is computed."""

from sabir.check._fix._fix import fix
from sabir.check._fix._repair import Repair
from sabir.check._fix._tables import REPAIRS, UNSAFE_REPAIRS

__all__ = ["REPAIRS", "UNSAFE_REPAIRS", "Repair", "fix"]
