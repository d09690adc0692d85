"""Plans for another processor than this one: they can be read, and not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.plan.layout import plan_parts
from sabir.compilation.runtime.program import laid_out, specs_of

if TYPE_CHECKING:
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Host
    from sabir.compilation.plan.executable import Executable
    from sabir.compilation.plan.layout import PartLayout, RunSizes


class ForeignProgram:
    """A plan whose kernels are for the processor `target`; none of them is compiled."""

    def __init__(self, executable: Executable, source: Prepared, target: Host) -> None:
        self.plan, self.source, self.target = executable.plan, source, target
        specs = specs_of(self.plan)
        self.kernels, self.compiled, self.threads = len(specs), 0, target.cores
        self._parts = plan_parts(self.plan, executable.symbols)
        self._addresses: dict[object, int] = dict.fromkeys(specs, 0)

    def layout(self, number: int, sizes: RunSizes) -> PartLayout:
        """Return a part for the sizes of a run; raises Mismatch where it has none."""
        return laid_out(self.plan, self._parts, number, sizes, self._addresses, {}, 1)
