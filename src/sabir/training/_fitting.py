"""`fit`: epochs over data, with validation, early stopping, and checkpoints that resume exactly."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import EvaluationError, FeedError, UnsupportedError, quote
from sabir.serial import format_by_name
from sabir.training._data import Batches
from sabir.training._guarding import Guard, monitored
from sabir.training._parts import check_names

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from sabir.training._data import Data
    from sabir.training._session import TrainingSession
    from sabir.training._state import Store

EPOCH, BATCH = "sabir.training.epoch", "sabir.training.batch"


class Epoch(NamedTuple):
    """What one epoch of a training came to.

    `number` counts from 1. `results` are the means of the scalar outputs over the batches, `validation` those
    of the evaluation, by name.

    >>> Epoch(1, 100, 0.5, {'loss': 2.0}, {}).monitored
    2.0
    """

    number: int
    steps: int
    seconds: float
    results: dict[str, float]
    validation: dict[str, float]

    @property
    def monitored(self) -> float:
        """The loss that early stopping looks at: of the validation, where there is one."""
        return monitored(self.validation or self.results)


class Progress(NamedTuple):
    """Where a training is, after a step: the epoch and its batch, both from 1, and the means so far.

    `batches` is how many batches an epoch has, 0 where it is not known.

    >>> Progress(1, 20, 3, 45, {'loss': 2.0}).epochs
    20
    """

    epoch: int
    epochs: int
    batch: int
    batches: int
    results: dict[str, float]


class Fitting(NamedTuple):
    """The arguments of `TrainingSession.fit`."""

    epochs: int
    batch: int
    validate: Data | None
    shuffle: bool
    patience: int | None
    callbacks: Iterable[Callable[[Epoch], Any]]
    progress: Callable[[Progress], Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_steps: int | None
    keep_steps: int | None


def fit(session: TrainingSession, data: Data, asked: Fitting) -> list[Epoch]:
    """Train a session; see `TrainingSession.fit`."""
    for name in ("patience", "checkpoint_steps", "keep_steps"):
        number = getattr(asked, name)
        if number is not None and number < 1:
            raise UnsupportedError(f"{name} is 1 or more, or None; got {number}")
    if asked.checkpoint is not None:
        format_by_name(Path(asked.checkpoint))
    batches = Batches(data, asked.batch, session.seed if asked.shuffle else None)
    if batches.is_iterator and asked.epochs - session.position[0] > 1:
        raise UnsupportedError(
            "an iterator yields its batches only once: pass a list, or an object that can be iterated again"
        )
    run = _Run(session, asked)
    found: list[Epoch] = []
    try:
        while session.position[0] < asked.epochs and not run.is_over:
            found.append(run.epoch(batches))
            run.save()
        run.return_to_best()
    except KeyboardInterrupt:
        run.save()
        raise
    except EvaluationError:
        if run.guard.has_gone_back:
            run.save()
        raise
    return found


class _Run:
    """One call of fit."""

    def __init__(self, session: TrainingSession, asked: Fitting) -> None:
        self._session, self._asked = session, asked
        self._algorithms = session.updating
        if not self._algorithms:
            raise UnsupportedError("no algorithm of the model has update bindings, so nothing can be trained")
        self._outputs = session.scalars_of(self._algorithms)
        self._evaluation = session.evaluating
        if asked.validate is not None and self._evaluation is None:
            raise UnsupportedError("the model has no training information without bindings, which evaluates")
        self._check_validation()
        self.guard = Guard(session, self._algorithms, self._outputs, asked.keep_steps)
        self._lowest, self._waited, self.is_over = math.inf, 0, False
        self._best: Store | None = None

    def _check_validation(self) -> None:
        """Raise FeedError for arrays that the evaluation would refuse after a whole epoch."""
        data = cast("Mapping[str, Any]", self._asked.validate)
        if isinstance(data, Mapping) and self._evaluation is not None:  # pyright: ignore[reportUnnecessaryIsInstance] - it may be an iterable
            Batches(data, self._asked.batch, None)
            ports = self._session.inputs_of(self._evaluation)
            check_names(data, ports)
            missing = next((p.name for p in ports if not p.optional and p.name not in data), None)
            if missing is not None:
                raise FeedError(f"the data for validation has no array {quote(missing)}")

    def epoch(self, batches: Batches) -> Epoch:
        """Run the rest of an epoch."""
        session, asked, started = self._session, self._asked, time.perf_counter()
        number, first = session.position
        means, done = _Means(), first
        self.guard.keep(batches)
        for feeds in batches.epoch(number, first):
            results = self.guard.step(feeds, batches)
            means.add(results, _samples(feeds))
            done += 1
            if asked.progress is not None:
                asked.progress(Progress(number + 1, asked.epochs, done, batches.count, means.values))
            if asked.checkpoint_steps and session.steps % asked.checkpoint_steps == 0:
                self.guard.keep(batches)
                self.save()
        if not done:
            raise FeedError("the data has no batches")
        self.guard.keep(batches)
        validation = {} if asked.validate is None else self._validation(asked.validate)
        session.begin_epoch(number + 1)
        seconds = time.perf_counter() - started
        epoch = Epoch(number + 1, session.steps, seconds, means.values, validation)
        self._stop_early(epoch.monitored)
        stops = [bool(callback(epoch)) for callback in asked.callbacks]
        self.is_over = self.is_over or any(stops)
        return epoch

    def save(self) -> None:
        """Write the checkpoint, if one is asked for."""
        if self._asked.checkpoint is not None:
            self._session.save(self._asked.checkpoint)

    def return_to_best(self) -> None:
        """Give the session the state of its best epoch, where early stopping is asked for, and save it."""
        if self._best is not None and self._waited:
            self._session.state.return_to(self._best)
            self.save()

    def _validation(self, data: Data) -> dict[str, float]:
        means, index = _Means(), self._evaluation or 0
        outputs = self._session.scalars_of([index])
        for feeds in Batches(data, self._asked.batch, None).epoch(0):
            means.add(self._session.step(feeds, index, outputs), _samples(feeds))
        return means.values

    def _stop_early(self, monitored: float) -> None:
        if self._asked.patience is None:
            return
        if monitored < self._lowest:
            self._best = self._session.state.mark()
            self._lowest, self._waited = monitored, 0
        else:
            self._waited += 1
        self.is_over = self._waited >= self._asked.patience


class _Means:
    """Means of scalars, weighted by the number of samples."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._count = 0

    def add(self, results: dict[str, Any], samples: int) -> None:
        for name, value in results.items():
            number = np.asarray(value)
            if number.size == 1:
                self._sums[name] = self._sums.get(name, 0.0) + samples * float(number.reshape(()))
        self._count += samples

    @property
    def values(self) -> dict[str, float]:
        return {name: total / max(1, self._count) for name, total in self._sums.items()}


def _samples(feeds: Any) -> int:
    """Return how many samples feeds have: the most along a first axis."""
    shapes: Sequence[tuple[int, ...]] = [np.shape(value) for value in feeds.values()]
    return max((shape[0] for shape in shapes if shape), default=1)


__all__ = ["BATCH", "EPOCH", "Epoch", "Fitting", "Progress", "fit"]
