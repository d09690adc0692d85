"""`fit`: epochs over data, with validation, early stopping, and checkpoints that resume exactly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import EvaluationError, FeedError, UnsupportedError
from sabir.serial import format_by_name
from sabir.training._cutting import Choice, cutting_of
from sabir.training._data import Batches
from sabir.training._epoch_results import EpochResults, Reported
from sabir.training._guarding import Guard, monitored
from sabir.training._sources import source_of, split
from sabir.training._step_inputs import StepInputs
from sabir.training._stopping import Stopper

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from sabir.training._data import Data
    from sabir.training._session import TrainingSession
    from sabir.training._sources import Source
    from sabir.training._state import Store
    from sabir.training._stopping import EarlyStopping
    from sabir.training._streams import Stream

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
    """Where a training is, after a step: the epoch and its batch, both from 1, and the results so far.

    Metrics of sums are at most a tenth of a second old. `batches` is how many batches an epoch has, 0 where
    it is not known.

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
    batch: int | None
    validate: Data | float | None
    shuffle: bool | int
    drop_last: bool | None
    stopping: EarlyStopping | None
    callbacks: Iterable[Callable[[Epoch], Any]]
    progress: Callable[[Progress], Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_steps: int | None
    keep_steps: int | None


def fit(session: TrainingSession, data: Data, asked: Fitting) -> list[Epoch]:
    """Train a session; see `TrainingSession.fit`."""
    for name in ("checkpoint_steps", "keep_steps"):
        number = getattr(asked, name)
        if number is not None and number < 1:
            raise UnsupportedError(f"{name} is 1 or more, or None; got {number}")
    if asked.checkpoint is not None:
        format_by_name(Path(asked.checkpoint))
    run = _Run(session, data, asked)
    found: list[Epoch] = []
    try:
        while session.position[0] < asked.epochs and not run.is_over:
            found.append(run.epoch())
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

    def __init__(self, session: TrainingSession, data: Data, asked: Fitting) -> None:
        self._session, self._asked = session, asked
        self._algorithms = session.updating
        if not self._algorithms:
            raise UnsupportedError("no algorithm of the model has update bindings, so nothing can be trained")
        self._reported = Reported(session, self._algorithms)
        self._evaluation = session.evaluating
        if asked.validate is not None and self._evaluation is None:
            raise UnsupportedError("the model has no training information without bindings, which evaluates")
        self._evaluated = self._evaluation_results()
        rule = asked.stopping
        if rule is not None:
            rule.check(self._reported.scalars, [] if self._evaluated is None else self._evaluated.scalars)
        self._stopping = None if rule is None else (rule, Stopper(rule))
        self._batches, self._held = self._data(data)
        if self._batches.is_iterator and asked.epochs - session.position[0] > 1:
            raise UnsupportedError(
                "an iterator yields its batches only once: pass a list, a function that returns an iterator, "
                "or an object that can be iterated again"
            )
        self.guard = Guard(session, self._algorithms, self._reported.outputs, asked.keep_steps)
        self.is_over, self._best = False, cast("Store | None", None)

    def _data(self, data: Data) -> tuple[Batches, Batches | None]:
        """Return the batches to train with, and those for validation; raises FeedError, UnsupportedError."""
        session, asked = self._session, self._asked
        inputs = StepInputs.of(session, self._algorithms)
        source = source_of(data, inputs)
        held: Source | Stream | None = None
        if isinstance(asked.validate, float):
            source, held = split(source, asked.validate, session.seed)
        given = Choice(asked.batch, asked.shuffle, asked.drop_last)
        batches = Batches(source, inputs, cutting_of(given, inputs, source, session), session.seed)
        if asked.validate is None:
            return batches, None
        evaluated = StepInputs.of(session, [self._evaluation or 0])
        if held is None:
            held = source_of(asked.validate, evaluated, "the data for validation")
        given = Choice(asked.batch, shuffle=False, drop_last=False if evaluated.size is None else None)
        cutting = cutting_of(given, evaluated, held, None)
        return batches, Batches(held, evaluated, cutting, session.seed)

    def _evaluation_results(self) -> Reported | None:
        """Return what the validation reports, None where there is no validation."""
        if self._asked.validate is None or self._evaluation is None:
            return None
        return Reported(self._session, [self._evaluation])

    def epoch(self) -> Epoch:
        """Run the rest of an epoch."""
        session, asked, started = self._session, self._asked, time.perf_counter()
        batches, (number, first) = self._batches, self._session.position
        found, done = EpochResults(self._reported), first
        self.guard.keep(batches)
        for feeds, samples in batches.epoch(number, first):
            found.add(self.guard.step(feeds, batches), samples)
            done += 1
            if asked.progress is not None:
                asked.progress(Progress(number + 1, asked.epochs, done, batches.count, found.recent_values))
            if asked.checkpoint_steps and session.steps % asked.checkpoint_steps == 0:
                self.guard.keep(batches)
                self.save()
        if not done:
            raise FeedError("the data has no batches")
        self.guard.keep(batches)
        validation = self._validation()
        session.begin_epoch(number + 1)
        seconds = time.perf_counter() - started
        epoch = Epoch(number + 1, session.steps, seconds, found.values, validation)
        self._stop_early(epoch)
        stops = [bool(callback(epoch)) for callback in asked.callbacks]
        self.is_over = self.is_over or any(stops)
        return epoch

    def save(self) -> None:
        """Write the checkpoint, if one is asked for."""
        if self._asked.checkpoint is not None:
            self._session.save(self._asked.checkpoint)

    def return_to_best(self) -> None:
        """Give the session the state of its best epoch, where early stopping is asked for, and save it."""
        if self._best is not None and self._stopping is not None and self._stopping[1].waited:
            self._session.state.return_to(self._best)
            self.save()

    def _validation(self) -> dict[str, float]:
        if self._held is None or self._evaluated is None or self._evaluation is None:
            return {}
        found = EpochResults(self._evaluated)
        for feeds, samples in self._held.epoch(0):
            found.add(self._session.step(feeds, self._evaluation, self._evaluated.outputs), samples)
        return found.values

    def _stop_early(self, epoch: Epoch) -> None:
        if self._stopping is None:
            return
        rule, stopper = self._stopping
        if stopper.is_best(rule.value(epoch.results, epoch.validation)) and rule.restore_best:
            self._best = self._session.state.mark()
        self.is_over = stopper.is_over


__all__ = ["BATCH", "EPOCH", "Epoch", "Fitting", "Progress", "fit"]
