"""The backend of CPUs: plans of native kernels, which the threads of a team run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import without_collector
from sabir.compilation.native import Host, Team, load_ahead
from sabir.compilation.runtime.program import CompiledProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.cache.stored import StoredPlan
    from sabir.compilation.passes import Pass
    from sabir.compilation.protocol import Request
    from sabir.compilation.runtime.foreign import ForeignProgram


class CpuBackend:
    """Kernels for the processor `host`, run by a `team` of threads.

    Plans are made by the thresholds `heuristics`, by default those of `HEURISTICS`.
    """

    def __init__(self, host: Host, team: Team, heuristics: Heuristics | None = None) -> None:
        self.host, self.team, self.heuristics = host, team, heuristics

    @property
    def key(self) -> str:
        """A text that is equal for processors that run the same machine code equally, by the same plans."""
        return repr(self.host) if self.heuristics is None else f"{self.host!r} {self.heuristics!r}"

    @property
    def threads(self) -> int:
        """The number of threads of a run."""
        return self.team.threads

    @property
    def passes(self) -> Sequence[Pass]:
        """The passes over tensor expressions, in order."""
        # ruff: ignore[import-outside-top-level]  a plan that is read from the disk needs none of it
        from sabir.compilation.backends.cpu.passes import PIPELINE

        return PIPELINE

    def begin(self) -> None:
        """Load LLVM in the background."""
        load_ahead()

    def compile(self, request: Request) -> CompiledProgram:
        """Return the plan of lowered expressions; kernels are compiled while the plan is built.

        Raises UnsupportedError for a kernel that cannot be made.
        """
        # ruff: ignore[import-outside-top-level]  a plan that is read from the disk needs none of it
        from sabir.compilation.backends.cpu.planning import compiled

        return compiled(self, request)

    def foreign(self, request: Request, target: Host) -> ForeignProgram:
        """Return the plan for another processor, which can be read, and not run."""
        # ruff: ignore[import-outside-top-level]  as above
        from sabir.compilation.backends.cpu.planning import foreign

        return foreign(self, request, target)

    def restored(self, stored: StoredPlan, progress: Callable[[int, int], None]) -> CompiledProgram | None:
        """Return a plan that was read from the disk, None where its machine code is gone."""
        executable, images = stored
        try:
            with without_collector():
                return CompiledProgram(executable, self.team, images=images, progress=progress)
        except LookupError:
            return None
