"""The results of an epoch: means of what its steps return, and metrics of the sums that they return."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import UnsupportedError
from sabir.editing import extract
from sabir.evaluation import Runner
from sabir.training._combining import step_part
from sabir.training._losses import SUMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array
    from sabir.training._session import TrainingSession

_MOMENT = 0.1  # seconds


class Reported:
    """The scalars that steps of some algorithms report, and what they are computed from over an epoch.

    A metric that the model computes from an output with its name and `_sums` is computed from the sums of an
    epoch; any other scalar is a mean over its samples.
    """

    def __init__(self, session: TrainingSession, algorithms: Sequence[int]) -> None:
        self.scalars = session.scalars_of(algorithms)
        self._runners: dict[str, Runner] = {}
        for index in algorithms:
            self._find(session, index)
        means = [name for name in self.scalars if name not in self._runners]
        self.outputs = [*means, *(f"{name}{SUMS}" for name in self._runners)]
        """The outputs that a step must return."""

    def _find(self, session: TrainingSession, index: int) -> None:
        """Note the metrics of an algorithm that are computed from sums alone."""
        outputs = set(session.outputs_of(index))
        names = [name for name in session.scalars_of([index]) if f"{name}{SUMS}" in outputs]
        if not names:
            return
        model = step_part(session.model, index).model
        for name in names:
            try:
                part = extract(model, inputs=[f"{name}{SUMS}"], outputs=[name])
            except UnsupportedError:  # it depends on something else too
                continue
            self._runners[name] = Runner(part)

    def is_streamed(self, name: str) -> bool:
        """Return whether a metric is computed from sums."""
        return name in self._runners

    def value(self, name: str, sums: Array) -> float:
        """Return a metric of the sums of an epoch."""
        return float(self._runners[name].run({f"{name}{SUMS}": sums})[name])


class EpochResults:
    """The results so far, of steps with any numbers of samples."""

    def __init__(self, reported: Reported) -> None:
        self._reported = reported
        self._totals: dict[str, float] = {}
        self._sums: dict[str, Array] = {}
        self._count = 0
        self._recent: dict[str, float] = {}
        self._computed = 0.0

    def add(self, results: Mapping[str, Any], samples: int) -> None:
        """Add the results of a step of so many samples."""
        for name, value in results.items():
            array = cast("Array", np.asarray(value))
            metric = name.removesuffix(SUMS)
            if self._reported.is_streamed(metric) and metric != name:
                self._sums[metric] = array + self._sums.get(metric, 0)
            elif array.size == 1:
                self._totals[name] = self._totals.get(name, 0.0) + samples * float(array.reshape(()))
        self._count += samples

    @property
    def values(self) -> dict[str, float]:
        """The means and the metrics so far, in the order of the scalars."""
        return self._ordered({name: self._reported.value(name, sums) for name, sums in self._sums.items()})

    @property
    def recent_values(self) -> dict[str, float]:
        """The means so far, and metrics that are a moment old: they cost more than a small step."""
        now = time.perf_counter()
        if not self._recent or now - self._computed > _MOMENT:
            self._recent, self._computed = self.values, now
        return self._ordered({name: self._recent[name] for name in self._sums})

    def _ordered(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Return metrics and the means so far, in the order of the scalars."""
        found = {name: total / max(1, self._count) for name, total in self._totals.items()} | dict(metrics)
        return {name: found[name] for name in self._reported.scalars if name in found}


__all__ = ["EpochResults", "Reported"]
