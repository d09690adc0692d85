"""Repairs: what the checker finds and can put right without a change to any value that is computed."""

from sabir.checking._fix._fix import fix
from sabir.checking._fix._repair import Repair
from sabir.checking._fix._tables import REPAIRS, UNSAFE_REPAIRS

__all__ = ["REPAIRS", "UNSAFE_REPAIRS", "Repair", "fix"]
