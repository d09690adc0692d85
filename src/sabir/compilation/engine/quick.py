"""Quick runs: fast runs of the plans of a part of a model, by the shapes of its operands.

Parts of a model are stages of a staged plan, and subgraphs that are evaluated. What a run of a session does
for feeds, these do for arrays without names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.compilation.native import Control
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.runtime.fast import FastFunction, fast_run
from sabir.compilation.runtime.program import CompiledProgram

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.plan.bounds import Needs
    from sabir.compilation.protocol import Runnable
    from sabir.evaluation import Run

_MOST_SHAPES = 16  # whose quick runs are kept


class QuickRun(NamedTuple):
    """The fast runs of a plan for some shapes, and what each of them needs; `control` cancels them."""

    run: FastFunction
    needs: Needs
    control: Control | None
    names: Sequence[str]

    def results(self, arrays: Sequence[Any]) -> list[Any] | None:
        """Return the results of a run, which are new arrays; None if it failed."""
        found = self.run(dict(zip(self.names, arrays, strict=True)))
        return None if found is None else [*found.values()]


class QuickRuns:
    """The quick runs of a part of a model; several threads may use them."""

    __slots__ = ("_found", "_loops", "_names", "_sized")

    def __init__(self, operands: int, *, loops: bool, sized: Collection[int] = ()) -> None:
        """Create them for a number of operands; without `loops` a plan that has loops makes no quick runs.

        What the loops of a quick run spend does not count in the limits of the run around it. `sized` numbers
        the operands whose contents are sizes.
        """
        self._sized = tuple(sorted(sized))
        self._names, self._loops = tuple(map(str, range(operands))), loops
        self._found: dict[Hashable, QuickRun] = {}

    def find(self, arrays: Sequence[Any], budget: Budget, control: Control | None) -> QuickRun | None:
        """Return the quick run for operands that `control` cancels; None without one within the limits."""
        quick = self._found.get(self._key(arrays))
        if quick is None or quick.control is not control or budget.deadline is not None:
            return None
        allowed = quick.needs.elements <= budget.elements and quick.needs.charge <= budget.work
        return quick if allowed else None

    def attempt(self, arrays: Sequence[Any], run: Run, control: Control | None = None) -> list[Any] | None:
        """Return the results of a quick run; None if there is none for such operands and limits."""
        quick = self.find(arrays, run.budget, control)
        results = None if quick is None else quick.results(arrays)
        if quick is not None and results is not None:
            run.budget.work -= quick.needs.charge
        return results

    def keep(
        self, program: Runnable, arrays: Sequence[Any], sizes: Mapping[str, int], run: Run,
        control: Control | None = None,
    ) -> None:  # fmt: skip
        """Prepare quick runs for operands of the shapes of a run that has ended."""
        if not isinstance(program, CompiledProgram) or len(program.parts) != 1 or not program.is_native:
            return
        key = self._key(arrays)
        if key is None or (program.has_control and not self._loops):
            return
        fed = list(zip(self._names, program.inputs, arrays, strict=True))
        known = RunSizes(sizes)
        layout = program.layout(0, known)
        outputs = [(str(n), slot) for n, slot in enumerate(program.executable.results)]
        allowed = run.budget.as_at_first()
        made = fast_run(program, layout, known, fed, outputs, control or Control(), allowed=allowed)
        if made is None:
            return
        if len(self._found) >= _MOST_SHAPES:
            self._found.clear()
        self._found[key] = QuickRun(made.run, layout.needs, control, self._names)

    def clear(self) -> None:
        """Drop the quick runs, and the memory that they keep."""
        self._found.clear()

    def _key(self, arrays: Sequence[Any]) -> Hashable | None:
        """Return the types and shapes of operands, and the contents that are sizes; None if one is no array.

        Native code compares the dtype objects again, so their ids suffice.
        """
        found: list[Hashable] = []
        for array in arrays:
            if type(array) is not np.ndarray:
                return None
            found.append((id(array.dtype), array.shape))
        found += [arrays[number].tobytes() for number in self._sized]
        return tuple(found)


__all__ = ["QuickRun", "QuickRuns"]
