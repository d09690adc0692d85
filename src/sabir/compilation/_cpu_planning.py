"""Lowered expressions become a plan of native kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation._bodies import bodies_on
from sabir.compilation._building import build
from sabir.compilation._executable import executable_of
from sabir.compilation._foreign import ForeignProgram
from sabir.compilation._in_place import updates_last
from sabir.compilation._program import CompiledProgram
from sabir.compilation.native import EarlyKernels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation._cpu import CpuBackend
    from sabir.compilation._executable import Executable
    from sabir.compilation._lowering import Lowered
    from sabir.compilation._prepare import Prepared
    from sabir.compilation._settings import Settings
    from sabir.compilation.native import Host


def compiled(
    backend: CpuBackend, lowered: Lowered, sizes: Mapping[str, int], settings: Settings,
    progress: Callable[[int, int], None], updates: Mapping[int, int],
) -> CompiledProgram:  # fmt: skip
    """Return the plan of lowered expressions on a backend; see `CpuBackend.compile`."""
    with EarlyKernels() as early:
        executable, prepared = _executable(lowered, sizes, backend.host, settings, early)
        updates_last(executable.plan, updates)
        bodies = bodies_on(backend, settings, prepared.constants)
        return CompiledProgram(executable, backend.team, prepared, bodies, progress, early=early)


def foreign(lowered: Lowered, sizes: Mapping[str, int], settings: Settings, target: Host) -> ForeignProgram:
    """Return the plan of lowered expressions for another processor."""
    return ForeignProgram(*_executable(lowered, sizes, target, settings, None), target)


def _executable(
    lowered: Lowered, sizes: Mapping[str, int], host: Host, settings: Settings, early: EarlyKernels | None
) -> tuple[Executable, Prepared]:
    plan = build(lowered, list(lowered.prepared.plan.results), host, settings, early)
    prepared = lowered.settled()
    return executable_of(prepared, plan, frozenset(sizes)), prepared
