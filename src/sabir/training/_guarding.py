"""The last good state of a training: how `fit` stops at a loss or a state that is not finite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import EvaluationError, quote
from sabir.training._loss_scaling import SCALE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array
    from sabir.training._data import Batches
    from sabir.training._session import TrainingSession
    from sabir.training._state import Store


def monitored(results: Mapping[str, float]) -> float:
    """Return the loss among results: the one of that name, or else the first result; NaN if there is none."""
    return results.get("loss", next(iter(results.values()), math.nan))


class _Fault(NamedTuple):
    """What is not finite after a step of some feeds; the session has the state before that step."""

    what: str
    feeds: Mapping[str, Any]


class Guard:
    """Makes the steps of a training, and keeps a state from which the last good one is computed again.

    The state is copied after every `every` steps. Where a loss or the state is not finite, the session goes
    back to the copy and repeats the steps, and so ends before the first one that went wrong.
    """

    def __init__(
        self, session: TrainingSession, algorithms: Sequence[int], outputs: Sequence[str], every: int | None
    ) -> None:
        """Take a session; without `every` nothing is copied, and the state is not looked at."""
        self._session, self._algorithms, self._outputs = session, algorithms, outputs
        self._every, self._copy = every, None if every is None else session.state.mark()
        values: Mapping[str, Array] = {} if self._copy is None else self._copy.values
        # a scaled step is skipped where its gradients are not finite, and their sums in the state are so then
        skipped = session.summed if SCALE in values else ()
        self._watched = [name for name, array in values.items() if name not in skipped and _is_finite(array)]
        self.has_gone_back = False

    def step(self, feeds: Mapping[str, Any], batches: Batches) -> dict[str, Any]:
        """Make a step of the epoch; raises EvaluationError where its loss, or the state, is not finite."""
        if self._copy is not None and self._session.steps - self._copy.step >= (self._every or 1):
            self.keep(batches)
        results = self._step(feeds)
        fault = self._fault_of(results)
        if fault is not None:
            raise self._stopped(fault, batches)
        return results

    def keep(self, batches: Batches) -> None:
        """Copy the state as one to go back to; raises EvaluationError where it is not finite."""
        if self._copy is None:
            return
        copy = self._session.state.mark()
        fault = self._fault_of_state(copy)
        if fault is not None:
            raise self._stopped(fault, batches)
        self._copy = copy

    def _step(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        return self._session.step_in_epoch(feeds, self._algorithms, self._outputs)

    def _fault_of(self, results: Mapping[str, Any]) -> str | None:
        """Return what is wrong with the loss of a step; a scaled step is skipped, and may go on with less."""
        fault = _fault_of_loss(results)
        if fault is None or SCALE not in self._session.state:
            return fault
        scale = float(self._session.state[SCALE])
        return None if scale >= 1 else f"{fault}, and the loss scale has fallen to {scale:g}"

    def _fault_of_state(self, store: Store) -> str | None:
        scale = store.values.get(SCALE)
        if scale is not None and not scale:
            return f"the state variable {quote(SCALE)} has fallen to 0, as no gradients are finite"
        name = next((n for n in self._watched if not _is_finite(store.values[n])), None)
        return None if name is None else f"the state variable {quote(name)} is not finite after the step"

    def _stopped(self, what: str, batches: Batches) -> EvaluationError:
        """Go back to the last good state; return the error that says so, and where the fault began."""
        session, copy = self._session, self._copy
        if copy is None:
            return EvaluationError(f"{_place(session)}: {what}; no good state was kept")
        place, fault = _place(session), self._repeated(copy, batches)
        self.has_gone_back = True
        if fault is None:
            session.state.return_to(copy)
            return EvaluationError(f"{place}: {what}; the session has the state after step {copy.step}")
        origin = self._origin(fault.feeds)
        return EvaluationError(
            f"{_place(session, 1)}: {fault.what}{origin}; the session has the state before this step"
        )

    def _repeated(self, copy: Store, batches: Batches) -> _Fault | None:
        """Repeat the steps since a copy, to the one before the first fault; None where there is no fault."""
        session, last = self._session, self._session.steps
        if batches.is_iterator:
            return None
        session.state.return_to(copy)
        before = copy
        for feeds, _ in batches.epoch(*session.position):
            loss = self._fault_of(self._step(feeds))
            after = session.state.mark()
            what = loss or self._fault_of_state(after)
            if what is not None:
                session.state.return_to(before)
                return _Fault(what, feeds)
            if after.step >= last:
                return None
            before = after
        return None

    def _origin(self, feeds: Mapping[str, Any]) -> str:
        """Return what says where the first value that is not finite comes from, for the present state."""
        for index in self._algorithms:
            search = _Search(feeds)
            try:
                self._session.observe(feeds, index, search)
            except _FoundError as found:
                return f"; the first NaN is {found}"
            if search.infinite is not None:
                return f"; the first infinite value is {search.infinite}"
        return ""


class _FoundError(Exception):
    """Ends a run at a NaN."""


class _Search:
    """Looks for the first value that is not finite while an algorithm runs."""

    def __init__(self, feeds: Mapping[str, Any]) -> None:
        self._feeds = feeds
        self.infinite: str | None = None

    def __call__(self, label: str, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            array = cast("Array | None", value if isinstance(value, np.ndarray) else None)
            if array is None or array.dtype.kind != "f":
                continue
            kind = "an input" if name in self._feeds else "a value of the model"
            origin = f"a result of {label}" if label else f"in {quote(name)}, {kind}"
            if np.isnan(array).any():
                raise _FoundError(origin)
            # infinite constants are common as masks
            if self.infinite is None and (label or name in self._feeds) and np.isinf(array).any():
                self.infinite = origin


def _is_finite(array: Array) -> bool:
    """Return whether an array has floating-point numbers, and each is finite."""
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())


def _fault_of_loss(results: Mapping[str, Any]) -> str | None:
    numbers = {name: float(v) for name, v in results.items() if np.ndim(v) == 0}
    loss = monitored(numbers)
    return None if not numbers or math.isfinite(loss) else f"the loss is {loss}"


def _place(session: TrainingSession, ahead: int = 0) -> str:
    """Return the epoch, batch and step that were made last, or come `ahead` of that."""
    epoch, batch = session.position
    return f"epoch {epoch + 1}, batch {batch + ahead} (step {session.steps + ahead})"


__all__ = ["Guard", "monitored"]
