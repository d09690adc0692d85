"""What a distributed training sends, and how long its workers wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.training._replica import Kept, Outcome

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one worker of `distribute` sent, received, kept and waited for, over all of its steps.

    `sent` and `received` are bytes of gradients and parameters, to and from other workers; `fed` are bytes of
    samples that came from the program. `computed` and `waited` are seconds: the second is how long the worker
    had nothing to do but wait for others; `processor` is seconds of processors, for both. `state` is the
    bytes of the state that it keeps, `optimizer` those of it that only the optimizer reads, and `restarts`
    how often its process was replaced.

    >>> traffic = Traffic(0, steps=10, sent=4 << 20, received=4 << 20, computed=0.9, waited=0.1)
    >>> print(traffic)
    worker 0: 10 steps, 0.4 MiB sent and 0.4 MiB received a step, 10% of the time waited, 0.0 MiB of state
    """

    worker: int
    steps: int = 0
    sent: int = 0
    received: int = 0
    fed: int = 0
    computed: float = 0.0
    waited: float = 0.0
    processor: float = 0.0
    state: int = 0
    optimizer: int = 0
    restarts: int = 0

    def __str__(self) -> str:
        steps, seconds = max(self.steps, 1), self.computed + self.waited
        sent, received = (number / steps / _MIB for number in (self.sent, self.received))
        return (
            f"worker {self.worker}: {self.steps} steps, {sent:.1f} MiB sent and {received:.1f} MiB received "
            f"a step, {self.waited / seconds if seconds else 0:.0%} of the time waited, "
            f"{self.state / _MIB:.1f} MiB of state"
        )


class Counter:
    """Adds up what one worker does."""

    def __init__(self, worker: int) -> None:
        self._worker, self.restarts = worker, 0
        self._steps = self._sent = self._received = self._fed = self._state = self._optimizer = 0
        self._computed = self._waited = self._processor = 0.0

    def keeps(self, kept: Kept) -> None:
        """Note how much state the worker has."""
        self._state, self._optimizer = kept

    def add(self, outcome: Outcome, fed: int) -> None:
        """Note a step."""
        self._steps += 1
        self._sent += outcome.sent
        self._received += outcome.received
        self._fed += fed
        self._computed += outcome.computed
        self._waited += outcome.waited
        self._processor += outcome.processor

    def traffic(self) -> Traffic:
        """Return the sums."""
        return Traffic(
            self._worker, self._steps, self._sent, self._received, self._fed, self._computed, self._waited,
            self._processor, self._state, self._optimizer, self.restarts,
        )  # fmt: skip


__all__ = ["Counter", "Traffic"]
