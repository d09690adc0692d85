"""The backend of CPUs: plans of native kernels, which the threads of a team run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import without_collector
from sabir.compilation._program import CompiledProgram
from sabir.compilation.native import Host, Team, load_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation._foreign import ForeignProgram
    from sabir.compilation._lowering import Lowered
    from sabir.compilation._settings import Settings
    from sabir.compilation._stored import Stored


class CpuBackend:
    """Kernels for the processor `host`, run by a `team` of threads."""

    def __init__(self, host: Host, team: Team) -> None:
        self.host, self.team = host, team

    @property
    def key(self) -> str:
        """A text that is equal for processors that run the same machine code equally."""
        return repr(self.host)

    @property
    def threads(self) -> int:
        """The number of threads of a run."""
        return self.team.threads

    def begin(self) -> None:
        """Load LLVM in the background."""
        load_ahead()

    def compile(
        self, lowered: Lowered, sizes: Mapping[str, int], settings: Settings,
        progress: Callable[[int, int], None], updates: Mapping[int, int],
    ) -> CompiledProgram:  # fmt: skip
        """Return the plan of lowered expressions; kernels are compiled while the plan is built.

        Raises UnsupportedError for a kernel that cannot be made.
        """
        # ruff: ignore[import-outside-top-level]  a plan that is read from the disk needs none of it
        from sabir.compilation._cpu_planning import compiled

        return compiled(self, lowered, sizes, settings, progress, updates)

    def foreign(
        self, lowered: Lowered, sizes: Mapping[str, int], settings: Settings, target: Host
    ) -> ForeignProgram:
        """Return the plan for another processor, which can be read, and not run."""
        # ruff: ignore[import-outside-top-level]  as above
        from sabir.compilation._cpu_planning import foreign

        return foreign(lowered, sizes, settings, target)

    def restored(self, stored: Stored, progress: Callable[[int, int], None]) -> CompiledProgram | None:
        """Return a plan that was read from the disk, None where its machine code is gone."""
        executable, images = stored
        try:
            with without_collector():
                return CompiledProgram(executable, self.team, images=images, progress=progress)
        except LookupError:
            return None
