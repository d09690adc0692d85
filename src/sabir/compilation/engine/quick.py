"""Quick runs: fast runs of the plans of a part of a model, by the shapes of its operands.

Parts of a model are stages of a staged plan, and subgraphs that are evaluated. What a run of a session does
for feeds, these do for arrays without names. After runs of several shapes of a pattern, one that follows the
sizes serves all others.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.compilation.frontend.patterns import ABOVE_ONE
from sabir.compilation.native import Control
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.runtime.fast import FedInput, entered, entered_by_position, runs_of
from sabir.compilation.runtime.program import CompiledProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.protocol import Runnable
    from sabir.compilation.runtime.fast import FastFunction, Runs
    from sabir.evaluation import Run
    from sabir.ir import Array, TensorType

_MOST_SHAPES = 16  # whose quick runs are kept
_FEW_SHAPES = 4  # of a pattern, each of which has quick runs of its own


class QuickRun(NamedTuple):
    """The fast runs of a plan for some shapes; `control` cancels them.

    `run` maps operands to new values, or to None if it failed. Each run needs a number of `elements` and
    charges work.
    """

    run: Callable[[Sequence[Any]], list[Any] | None]
    control: Control | None
    elements: int = 0
    charge: int = 0


class QuickRuns:
    """The quick runs of a part of a model; several threads may use them."""

    __slots__ = ("_following", "_found", "_loops", "_names", "_shapes", "_sized")

    def __init__(self, operands: int, *, loops: bool, sized: Collection[int] = ()) -> None:
        """Create them for a number of operands; without `loops` a plan that has loops makes no quick runs.

        What the loops of a quick run spend does not count in the limits of the run around it, nor what a run
        spends that follows the sizes. `sized` numbers the operands whose contents are sizes.
        """
        self._sized = tuple(sorted(sized))
        self._names, self._loops = tuple(map(str, range(operands))), loops
        self._found: dict[Hashable, QuickRun] = {}
        self._following: dict[Hashable, QuickRun] = {}  # by pattern, for all sizes
        self._shapes: dict[Hashable, int] = {}  # of each pattern, that have quick runs

    def find(self, arrays: Sequence[Any], budget: Budget, control: Control | None) -> QuickRun | None:
        """Return the quick run for operands that `control` cancels; None without one within the limits."""
        quick = self._found.get(self._key(arrays))
        if quick is None and self._following:
            quick = self._following.get(self._pattern(arrays))
        if quick is None or quick.control is not control or budget.deadline is not None:
            return None
        return quick if quick.elements <= budget.elements and quick.charge <= budget.work else None

    def attempt(self, arrays: Sequence[Any], run: Run, control: Control | None = None) -> list[Any] | None:
        """Return the results of a quick run; None if there is none for such operands and limits."""
        quick = self.find(arrays, run.budget, control)
        results = None if quick is None else quick.run(arrays)
        if quick is not None and results is not None:
            run.budget.work -= quick.charge
        return results

    def keep(
        self, program: Runnable, kinds: Sequence[TensorType | None], arrays: Sequence[Any],
        sizes: Mapping[str, int], run: Run, control: Control | None = None,
    ) -> None:  # fmt: skip
        """Prepare quick runs for operands of the shapes of a run that has ended; `kinds` are their types."""
        key = self._key(arrays)
        if key is None:
            return
        if not isinstance(program, CompiledProgram):
            self._keep(key, QuickRun(partial(_directly, program, run.budget.as_at_first(), control), control))
            return
        if len(program.parts) != 1 or (program.has_control and not self._loops):
            return
        pattern = self._pattern(arrays)
        if self._shapes.get(pattern, 0) >= _FEW_SHAPES:
            self._follow(pattern, program, self._fed(program, kinds, arrays), sizes, run, control)
            return
        fed = list(zip(self._names, program.inputs, arrays, strict=True))
        known = RunSizes(sizes)
        layout = program.layout(0, known)
        outputs = [(str(n), slot) for n, slot in enumerate(program.executable.results)]
        allowed = run.budget.as_at_first()
        made = runs_of(program, layout, known, fed, outputs, control or Control(), allowed=allowed)
        if made is None:
            self._keep(key, QuickRun(_none, control))  # it need not be tried again
            return
        enter = self._entered(made, outputs)
        self._keep(key, QuickRun(enter, control, layout.needs.elements, layout.needs.charge))
        self._shapes[pattern] = self._shapes.get(pattern, 0) + 1

    def _keep(self, key: Hashable, quick: QuickRun) -> None:
        if len(self._found) >= _MOST_SHAPES:
            self._found.clear()
            self._shapes.clear()
        self._found[key] = quick

    def _follow(
        self, pattern: Hashable, program: CompiledProgram, fed: Sequence[FedInput], sizes: Mapping[str, int],
        run: Run, control: Control | None,
    ) -> None:  # fmt: skip
        """Prepare quick runs for all sizes of a pattern."""
        # ruff: ignore[import-outside-top-level]  few sessions run for several sizes
        from sabir.compilation.runtime.growing import growing_runs

        outputs = [(str(n), slot) for n, slot in enumerate(program.executable.results)]
        if len(fed) < len(program.inputs):
            return
        allowed = run.budget.as_at_first()
        made = growing_runs(program, sizes, {}, fed, outputs, control or Control(), allowed)
        if made is not None:
            if len(self._following) >= _MOST_SHAPES:
                self._following.clear()
            self._following[pattern] = QuickRun(self._entered(made, outputs), control)

    def _entered(
        self, made: Runs, outputs: Sequence[tuple[str, int]]
    ) -> Callable[[Sequence[Any]], list[Any] | None]:
        """Return the function that runs a plan for arrays in order."""
        if made.around is None:
            return entered_by_position(made)
        return _by_name(entered(made, self._names), self._names, [name for name, _ in outputs])

    def _fed(
        self, program: CompiledProgram, kinds: Sequence[TensorType | None], arrays: Sequence[Array]
    ) -> list[FedInput]:
        """Return the operands whose sizes runs can follow."""
        return [
            FedInput(name, slot, x, kind)
            for name, slot, x, kind in zip(self._names, program.inputs, arrays, kinds, strict=True)
            if kind is not None and (kind.known is None or len(kind.known) == 1)
        ]

    def clear(self) -> None:
        """Drop the quick runs, and the memory that they keep."""
        self._found.clear()
        self._following.clear()
        self._shapes.clear()

    def _pattern(self, arrays: Sequence[Any]) -> Hashable | None:
        """Return the types of operands, and which sizes are 0, 1 or more; None if one is no array."""
        found: list[Hashable] = []
        for array in arrays:
            if type(array) is not np.ndarray:
                return None
            found += [id(array.dtype), *[min(size, ABOVE_ONE) for size in array.shape]]
        for number in self._sized:
            found += [min(item, ABOVE_ONE) for item in arrays[number].ravel().tolist()]
        return tuple(found)

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


def _none(_: Sequence[Any]) -> None:
    """Return None: there are no quick runs for these shapes."""


def _directly(
    program: Runnable, allowed: Budget, control: Control | None, arrays: Sequence[Any]
) -> list[Any] | None:
    """Return the results of a direct run of a staged plan; None if it cannot run so."""
    return program.direct(arrays, allowed, control)


def _by_name(
    run: FastFunction, inputs: Sequence[str], outputs: Sequence[str]
) -> Callable[[Sequence[Any]], list[Any] | None]:
    """Return a fast run as a function of operands in order, which returns results in order."""

    def by_position(arrays: Sequence[Any]) -> list[Any] | None:
        found = run(dict(zip(inputs, arrays, strict=True)))
        return None if found is None else [found[name] for name in outputs]

    return by_position


__all__ = ["QuickRun", "QuickRuns"]
