"""The CPU backend: plans of native kernels that the threads of a team run."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from sabir.base import without_collector
from sabir.compilation.native import host, load_ahead, require_loading, team, usable_cores
from sabir.compilation.runtime.program import CompiledProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.cache.stored import StoredPlan
    from sabir.compilation.native import Target, Team
    from sabir.compilation.passes import Pass
    from sabir.compilation.protocol import Request
    from sabir.compilation.runtime.foreign import ForeignProgram


def this_machine(threads: int | None = None) -> CpuBackend:
    """Return the backend for this machine; `threads` None means one thread for each usable core.

    Raises UnsupportedError if the processor is not supported, or llvmlite is missing.
    """
    target, cores = host(), _cores()
    return CpuBackend(target, team(threads or cores, target), cores)


@functools.cache
def _cores() -> int:
    """Return the number of usable cores, cached: reading the files of the system takes 0.3 ms."""
    return usable_cores()


class CpuBackend:
    """Kernels for the processor `target`, run by a `team` of threads.

    Plans divide work for `cores` cores, whatever the number of threads. `heuristics` has the thresholds of
    planning; None means `HEURISTICS`.
    """

    def __init__(self, target: Target, team: Team, cores: int, heuristics: Heuristics | None = None) -> None:
        self.target, self.team, self.cores, self.heuristics = target, team, cores, heuristics

    @property
    def key(self) -> str:
        """The key of the backend in caches: equal keys mean equal plans and equal machine code."""
        machine = f"{self.target!r} of {self.cores} cores"
        return machine if self.heuristics is None else f"{machine} {self.heuristics!r}"

    def require_loading(self) -> None:
        """Raise UnsupportedError if the system forbids the execution of generated code."""
        require_loading(self.target)

    @property
    def threads(self) -> int:
        """The number of threads of a run."""
        return self.team.threads

    @property
    def passes(self) -> Sequence[Pass]:
        """The passes over tensor expressions, in order."""
        # ruff: ignore[import-outside-top-level]  a plan from the disk needs no passes
        from sabir.compilation.backends.cpu.passes import PIPELINE

        return PIPELINE

    def begin(self) -> None:
        """Load LLVM in the background."""
        load_ahead(self.target)

    def compile(self, request: Request) -> CompiledProgram:
        """Return the compiled plan of a request; kernels are compiled while the plan is built.

        Raises UnsupportedError if a kernel cannot be compiled.
        """
        # ruff: ignore[import-outside-top-level]  a plan from the disk needs no planning
        from sabir.compilation.backends.cpu.planning import compiled

        return compiled(self, request)

    def foreign(self, request: Request, target: Target) -> ForeignProgram:
        """Return the plan for another processor: its kernels can be compiled here, but not run."""
        # ruff: ignore[import-outside-top-level]  as above
        from sabir.compilation.backends.cpu.planning import foreign

        return foreign(self, request, target)

    def restored(self, stored: StoredPlan, progress: Callable[[int, int], None]) -> CompiledProgram | None:
        """Return the program of a plan from the disk; None if its machine code is no longer in the cache."""
        executable, images, calls = stored
        try:
            with without_collector():
                return CompiledProgram(executable, self.team, images=images, stored=calls, progress=progress)
        except LookupError:
            return None
