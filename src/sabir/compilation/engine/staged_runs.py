"""Fast runs of staged plans: runs for the types and shapes of feeds of an earlier run.

Where all stages have quick runs, and nothing is evaluated between them, a run is native calls and little
more. Other runs skip what depends on the shapes of the feeds alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, CancelledError, SabirError, budget, run_with_limits
from sabir.compilation.engine.staged import StagedProgram
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.runtime.fast import FastRun
from sabir.compilation.runtime.head import are_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sabir.base import Limits
    from sabir.compilation.native import Control
    from sabir.compilation.runtime.commits import Commit
    from sabir.evaluation import Front
    from sabir.ir import Array


class StagedRun(NamedTuple):
    """A run of a staged plan that has ended: the inputs by name, the sizes, and the names of its outputs.

    Calls of numpy run in the context that `evaluating` returns.
    """

    program: StagedProgram
    feeds: Mapping[str, Array]
    sizes: Mapping[str, int]
    outputs: tuple[str, ...]
    evaluating: Callable[[], AbstractContextManager[object]]


def staged_run(ended: StagedRun, front: Front, limits: Limits | None, control: Control) -> FastRun:
    """Return the fast runs of a staged plan for feeds of the types and shapes of a run."""
    program = ended.program
    kinds = [(name, x.dtype, x.shape) for name, x in ended.feeds.items()]
    first, _ = run_with_limits(limits, front.start, ended.feeds)  # fixes the sizes that inputs declare
    numbers, allowed = first.budget.numbers, first.budget.as_at_first()
    looks, compares_items = program.facts.looks, front.compares_items
    is_alike, names = _likeness(kinds), [name for name, *_ in kinds]
    compared: set[Hashable] = set()  # shapes of results that were compared with the declared types

    def fast(
        feeds: Mapping[str, Any],
        _buffers: Mapping[str, Array] | None = None,
        _commit: Commit[Any] | None = None,
        /,
    ) -> dict[str, Any] | None:
        if not is_alike(feeds):
            return None
        if looks:  # nothing is evaluated that needs a context
            results = program.direct([feeds[name] for name in names], allowed, control)
            if results is not None:
                return named(results, feeds)
        elif limits is None:
            with ended.evaluating():
                results = program.direct([feeds[name] for name in names], allowed, control)
            if results is not None:
                return named(results, feeds)
        try:
            return run_with_limits(limits, attempt, feeds)
        except CancelledError:
            raise
        except (Mismatch, SabirError, *ACCIDENTS):
            return None  # the slow path reports it

    def named(results: list[Any], feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the results of a direct run by name; new shapes are compared with the declared types."""
        shapes = _shapes(results)
        if shapes in compared and not compares_items:
            return dict(zip(ended.outputs, results, strict=True))
        compared.add(shapes)
        return front.finish(ended.outputs, results, list(feeds.values()), first.inside_subgraph())

    def attempt(feeds: Mapping[str, Any]) -> dict[str, Any]:
        run = first.inside_subgraph()
        run.budget = budget()
        run.budget.raise_for(numbers)
        arrays = [feeds[name] for name in names]
        with np.errstate(all="ignore"), ended.evaluating():
            results = program.run(arrays, ended.sizes, run, control)
        return front.finish(ended.outputs, results, arrays, run)

    return FastRun(fast, control, {})


def _likeness(
    kinds: Sequence[tuple[str, np.dtype[Any], tuple[int, ...]]],
) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether feeds have some names, types and shapes, as a function."""
    texts = [name for name, dtype, _ in kinds if dtype.hasobject]

    def is_alike(feeds: Mapping[str, Any]) -> bool:
        if len(feeds) != len(kinds):
            return False
        for name, dtype, shape in kinds:
            x = feeds.get(name)
            if type(x) is not np.ndarray or x.dtype is not dtype or x.shape != shape:
                return False
        return not texts or all(are_texts(feeds[name]) for name in texts)

    return is_alike


def _shapes(results: Sequence[Any]) -> Hashable:
    """Return the shapes of results; None for one that is no array."""
    return tuple([x.shape if type(x) is np.ndarray else None for x in results])


__all__ = ["StagedProgram", "StagedRun", "staged_run"]
