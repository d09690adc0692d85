"""Machine code: LLVM, the cache of objects, and the threads that run plans."""

from sabir.compilation.native._team import Control, Team, execute, team

__all__ = ["Control", "Team", "execute", "team"]
