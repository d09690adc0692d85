"""The compilation of lowered expressions to a plan of native kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.building import build
from sabir.compilation.backends.cpu.cache_rows import caches_in_place
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.backends.cpu.in_place import updates_last
from sabir.compilation.backends.cpu.texts import source_of
from sabir.compilation.native import EarlyKernels
from sabir.compilation.plan.executable import executable_of
from sabir.compilation.runtime.foreign import ForeignProgram
from sabir.compilation.runtime.program import CompiledProgram

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.backend import CpuBackend
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Target
    from sabir.compilation.plan.executable import Executable
    from sabir.compilation.protocol import Request

_FOREIGN_CORES = 4  # of another processor: its plans must not depend on this machine


def compiled(backend: CpuBackend, request: Request) -> CompiledProgram:
    """Return the compiled plan of a request on a backend; see `CpuBackend.compile`."""
    with EarlyKernels(backend.target) as early:
        executable, prepared = _executable(request, backend.target, backend.cores, backend.heuristics, early)
        caches_in_place(executable.plan, request.caches)
        updates_last(executable.plan, request.updates)
        return CompiledProgram(
            executable, backend.team, prepared, request.bodies(prepared.constants),
            progress=request.progress, early=early, sources=source_of,
        )  # fmt: skip


def foreign(backend: CpuBackend, request: Request, target: Target) -> ForeignProgram:
    """Return the plan of a request for another processor."""
    planned = _executable(request, target, _FOREIGN_CORES, backend.heuristics)
    return ForeignProgram(*planned, target, _FOREIGN_CORES, source_of)


def _executable(
    request: Request, target: Target, cores: int, heuristics: Heuristics | None,
    early: EarlyKernels | None = None,
) -> tuple[Executable, Prepared]:  # fmt: skip
    plan = build(request, target, cores, heuristics or HEURISTICS, early)
    prepared = request.lowered.settled()
    return executable_of(prepared, plan, frozenset(request.sizes)), prepared
