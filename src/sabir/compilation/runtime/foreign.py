"""Plans for another processor than this one: they can be listed and compiled, but not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.native import compiled_objects
from sabir.compilation.plan.layout import plan_parts
from sabir.compilation.runtime.program import laid_out, source_for, specs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Source, Target
    from sabir.compilation.plan.entries import Kernel, Spec
    from sabir.compilation.plan.executable import Executable
    from sabir.compilation.plan.layout import PartLayout, RunSizes


class ForeignProgram:
    """A plan whose kernels are for the processor `target`; `objects` compiles them.

    The plan divides work for `cores` cores.
    """

    def __init__(
        self, executable: Executable, source: Prepared, target: Target, cores: int,
        sources: Callable[[Kernel], Source],
    ) -> None:  # fmt: skip
        self.plan, self.source, self.target, self.threads = executable.plan, source, target, cores
        self._specs, self._sources = specs_of(self.plan), sources
        self.kernels, self.compiled = len(self._specs), 0
        self._parts = plan_parts(self.plan, executable.symbols)
        self._addresses: dict[object, int] = dict.fromkeys(self._specs, 0)

    def objects(self) -> dict[Spec, bytes]:
        """Return the object file of each kernel for the processor.

        Raises UnsupportedError if a kernel cannot be compiled.
        """
        sources = [source_for(spec, self._sources) for spec in self._specs]
        return dict(zip(self._specs, compiled_objects(sources, self.target), strict=True))

    def layout(self, number: int, sizes: RunSizes) -> PartLayout:
        """Return the layout of a part for the sizes of a run; raises Mismatch if there is none."""
        return laid_out(self.plan, self._parts, number, sizes, self._addresses, {}, 1)
