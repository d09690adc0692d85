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
    from collections.abc import Mapping

    from sabir.compilation.backends.cpu.backend import CpuBackend
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Host
    from sabir.compilation.plan.executable import Executable
    from sabir.compilation.protocol import Request
    from sabir.compilation.settings import Settings


def compiled(backend: CpuBackend, request: Request) -> CompiledProgram:
    """Return the plan of lowered expressions on a backend; see `CpuBackend.compile`."""
    with EarlyKernels() as early:
        executable, prepared = _executable(
            request.lowered, request.sizes, backend.host, request.settings, early, backend.heuristics
        )
        updates_last(executable.plan, request.updates)
        bodies = request.bodies(prepared.constants)
        return CompiledProgram(
            executable,
            backend.team,
            prepared,
            bodies,
            progress=request.progress,
            early=early,
            sources=source_of,
        )


def foreign(
    backend: CpuBackend, lowered: Lowered, sizes: Mapping[str, int], settings: Settings, target: Host
) -> ForeignProgram:
    """Return the plan of lowered expressions for another processor."""
    return ForeignProgram(*_executable(lowered, sizes, target, settings, None, backend.heuristics), target)


def _executable(
    lowered: Lowered, sizes: Mapping[str, int], host: Host, settings: Settings, early: EarlyKernels | None,
    heuristics: Heuristics | None,
) -> tuple[Executable, Prepared]:  # fmt: skip
    plan = build(
        lowered, list(lowered.prepared.plan.results), host, settings, early, heuristics or HEURISTICS
    )
    prepared = lowered.settled()
    return executable_of(prepared, plan, frozenset(sizes)), prepared
