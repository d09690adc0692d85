"""Lowered expressions become a plan of native kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.building import build
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
    from sabir.compilation.native import Host
    from sabir.compilation.plan.executable import Executable
    from sabir.compilation.protocol import Request


def compiled(backend: CpuBackend, request: Request) -> CompiledProgram:
    """Return the plan of lowered expressions on a backend; see `CpuBackend.compile`."""
    with EarlyKernels() as early:
        executable, prepared = _executable(request, backend.host, backend.heuristics, early)
        updates_last(executable.plan, request.updates)
        return CompiledProgram(
            executable, backend.team, prepared, request.bodies(prepared.constants),
            progress=request.progress, early=early, sources=source_of,
        )  # fmt: skip


def foreign(backend: CpuBackend, request: Request, target: Host) -> ForeignProgram:
    """Return the plan of lowered expressions for another processor."""
    return ForeignProgram(*_executable(request, target, backend.heuristics), target)


def _executable(
    request: Request, host: Host, heuristics: Heuristics | None, early: EarlyKernels | None = None
) -> tuple[Executable, Prepared]:
    plan = build(request, host, heuristics or HEURISTICS, early)
    prepared = request.lowered.settled()
    return executable_of(prepared, plan, frozenset(request.sizes)), prepared
