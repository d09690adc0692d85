"""The head of a plan: evaluated calls before all kernels, which read feeds alone, such as tables of texts.

A fast run evaluates them first. Kernels read the results as they read feeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, SabirError, run_with_limits
from sabir.compilation.runtime.values import EXACT, DirectCalls
from sabir.scheduling import ABSENT
from sabir.schema import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.base import Limits
    from sabir.compilation.plan.entries import EvaluatedEntry
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.evaluation import BoundCall
    from sabir.ir import Array

_TEXTS = (str, bytes)
_OBJECT = np.dtype(np.object_)


class _Feed(NamedTuple):
    """A feed that calls read, or a feed of texts: its number, its slot and its dtype."""

    number: int
    slot: int
    dtype: np.dtype[Any]


class Head:
    """The calls of the head of a plan; `slots` are those of their results.

    The results that kernels read come first. The functions are called without checks: the first run, on the
    slow path, has compared the types, and counted the needs.
    """

    def __init__(
        self, program: CompiledProgram, steps: Sequence[EvaluatedEntry],
        feeds: Sequence[tuple[int, np.dtype[Any]]], limits: Limits | None,
    ) -> None:  # fmt: skip
        """Create the head of a plan; `feeds` are (slot, dtype) of the feeds."""
        self._limits = limits
        calls = [program.calls[step.call.place] for step in steps]
        self._written = [slot for step in steps for slot in step.writes]
        made = [slot for call in calls for slot in call.outputs if slot != ABSENT]
        self._others = [slot for slot in made if slot not in self._written]
        self.slots = [*self._written, *self._others]
        self._values: list[Any] = [None] * program.executable.slots
        for slot, array in program.constants.items():
            self._values[slot] = array
        read = {slot for step in steps for slot in step.call.reads}
        self._feeds = [
            _Feed(number, slot, dtype)
            for number, (slot, dtype) in enumerate(feeds)
            if slot in read or dtype.hasobject
        ]
        looked_up = {slot for call in calls if _looks_up(call) for slot in call.inputs}
        self._texts = [f.number for f in self._feeds if f.dtype.hasobject and f.slot not in looked_up]
        exact = {f.slot for f in self._feeds if f.dtype.kind in EXACT}
        self._calls = DirectCalls(calls, exact)
        numbers = {f.slot: f.number for f in self._feeds}
        plain = all(len(c.inputs) == len(c.outputs) == 1 and c.inputs[0] in numbers for c in calls)
        is_simple = plain and not self._calls.warns and not self._others
        self._simple = [(c.function, numbers[c.inputs[0]]) for c in calls] if is_simple else None

    def run(self, feeds: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        """Return the values that kernels read, which are feeds and results, and these with all results.

        None for feeds of other types, or if a call fails: then the slow path reports the error.
        """
        try:
            if self._limits is None:  # then the default limits apply
                return self._run(feeds)
            return run_with_limits(self._limits, self._run, feeds)
        except (SabirError, *ACCIDENTS):
            return None

    def _run(self, feeds: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        values, arrays = [*self._values], [*feeds]
        for number, slot, dtype in self._feeds:
            x = arrays[number]
            if type(x) is not np.ndarray:
                return None
            if x.dtype is not dtype:
                if x.dtype.kind != "U" or dtype is not _OBJECT:
                    return None
                arrays[number] = x = x.astype(_OBJECT)
            values[slot] = x
        for number in self._texts:
            if not are_texts(arrays[number]):
                return None
        if self._simple is not None:
            arrays += [function(arrays[number]) for function, number in self._simple]
            return arrays, arrays
        self._calls.make(values)
        arrays += [values[slot] for slot in self._written]
        return arrays, [*arrays, *[values[slot] for slot in self._others]]


def _looks_up(call: BoundCall) -> bool:
    """Return whether a call looks each text up, and refuses what is no text."""
    return call.checks is not None and call.checks.version.operator.domain == INTERNAL


def are_texts(array: Array) -> bool:
    """Return whether all items of an array of objects are texts."""
    return all(issubclass(kind, _TEXTS) for kind in {*map(type, array.ravel().tolist())})


__all__ = ["Head", "are_texts"]
