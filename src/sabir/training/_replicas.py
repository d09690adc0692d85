"""A group of workers as the program sees it: steps, the state, and how a lost worker is replaced."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sabir.base import SabirError, UnsupportedError
from sabir.distributed import PeerLost
from sabir.training._remote_values import RemoteValues
from sabir.training._replica import LOCAL, Outcome, Request
from sabir.training._sharding import divided, joined
from sabir.training._traffic import Counter, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.ir import Array
    from sabir.training._layout import Layout

_ATTEMPTS = 5  # how often in one step a group is made anew before the loss of its workers is an error
_LOGGED = 64 << 20  # bytes of samples that are kept for a repetition, or those of the state if these are more


class Crew(Protocol):
    """Processes with a `Replica` each, which are called by number."""

    @property
    def workers(self) -> int:
        """How many there are."""
        ...

    def begin(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> Any:
        """Call a method of each replica with its own arguments; return the calls."""
        ...

    def finish(self, calls: Any) -> list[Any]:
        """Return the result of each call, PeerLost for that of a process that ended.

        Where one fails, the others are told to `close`, so that none waits for it.
        """
        ...

    def replace(self, worker: int) -> None:
        """Start a process in the place of one that ended."""
        ...


class Task(NamedTuple):
    """A step of the session: algorithms that update the state, feeds and outputs of each, and its path.

    `has_rows` says of an output of the first algorithm whether it has a row for each sample.
    """

    algorithms: tuple[int, ...]
    feeds: tuple[Mapping[str, Any], ...]
    outputs: tuple[tuple[str, ...], ...]
    path: tuple[int, int]
    has_rows: Callable[[str], bool]


class Replicas:
    """Workers that keep the state of a session and make its steps.

    The program keeps the state of some step, and the requests of the steps since. Where a worker is lost, it
    is replaced, all get that state, and the steps are repeated: nothing is lost, and the numbers are the
    same. The state is fetched when it is read completely, after `snapshot_steps` steps, and when the
    requests are larger than the state, and than 64 MiB.
    """

    def __init__(self, crew: Crew, layout: Layout, snapshot_steps: int) -> None:
        """Take processes that run; the state is sent with the first step."""
        self._crew, self._layout, self._snapshot_steps = crew, layout, snapshot_steps
        self._counters = [Counter(worker) for worker in range(crew.workers)]
        self._snapshot: Mapping[str, Array] = {}
        self._log: list[list[Request]] = []
        self._logged, self._limit = 0, _LOGGED
        self._is_ready = False
        self.steps = 0
        """How many steps were made."""
        self.values: Mapping[str, Array] = {}
        """The state after the last step."""

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """What each worker did."""
        return tuple(counter.traffic() for counter in self._counters)

    def step(self, values: Mapping[str, Array], task: Task) -> dict[str, Any]:
        """Make a step from a state, and return its results; raises what a worker raises.

        The state is then as before. An interrupt comes after the step, a second one in it, and undoes it.
        """
        requests, fed = self._requests(task)
        if values is not self.values:
            self._begin_with(values)
        outcomes, interrupt = self._outcomes(requests)
        self._log.append(requests)
        self._logged += sum(fed)
        self.steps += 1
        for counter, outcome, size in zip(self._counters, outcomes, fed, strict=True):
            counter.add(outcome, size)
        self.values = self._remote()
        if interrupt is not None:
            raise interrupt
        if len(self._log) >= self._snapshot_steps or self._logged > self._limit:
            self.values.load()
        return self._results(task, requests, outcomes)

    def close(self) -> None:
        """Let the state be the program's alone: what was not read is fetched."""
        if isinstance(self.values, RemoteValues):
            self.values = self.values.load()

    def _requests(self, task: Task) -> tuple[list[Request], list[int]]:
        """Return the requests to the workers, and the bytes of their feeds; raises FeedError."""
        workers, first = self._crew.workers, self._layout.first
        parts: list[dict[str, Any]] = [{}] * workers
        shares = (1.0,) * workers
        whole: dict[str, Any] = {}
        for index, feeds in zip(task.algorithms, task.feeds, strict=True):
            if index == first:
                parts, shares = divided(feeds, workers)
            else:
                whole |= feeds
        requests = [Request(task.algorithms, part, whole, shares, task.outputs, task.path) for part in parts]
        return requests, [sum(_size(v) for v in (*r.part.values(), *r.whole.values())) for r in requests]

    def _begin_with(self, values: Mapping[str, Array]) -> None:
        """Let the workers have another state."""
        self._snapshot, self._log, self._logged = dict(values.items()), [], 0
        self._limit = max(_LOGGED, sum(a.nbytes for a in self._snapshot.values()))
        self.values = self._snapshot
        if not (self._is_ready and self._sent()):
            self._restored()

    def _outcomes(self, requests: Sequence[Request]) -> tuple[list[Outcome], KeyboardInterrupt | None]:
        """Return the outcomes of a step, and the interrupt that came in it; raises what a worker raises."""
        for _ in range(_ATTEMPTS):
            if not self._is_ready:
                self._restored()
            found, interrupt = self._finished("step", [(request,) for request in requests])
            if all(isinstance(outcome, Outcome) for outcome in found):
                return found, interrupt
            self._is_ready = False
            error = interrupt or next((e for e in found if isinstance(e, SabirError)), None)
            if error is not None:
                raise error
        raise _lost()

    def _finished(
        self, method: str, arguments: Sequence[tuple[Any, ...]]
    ) -> tuple[list[Any], KeyboardInterrupt | None]:
        """Return what a method of each replica returns; an interrupt waits until all are done."""
        self._is_ready, was_ready = False, self._is_ready  # for the second interrupt
        calls = self._crew.begin(method, arguments)
        interrupt: KeyboardInterrupt | None = None
        try:
            found = self._crew.finish(calls)
        except KeyboardInterrupt as error:
            interrupt, found = error, self._crew.finish(calls)
        self._is_ready = was_ready
        return found, interrupt

    def _all(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any] | None:
        """Return what a method of each replica returns, None where one is lost."""
        found, interrupt = self._finished(method, arguments)
        if interrupt is not None:
            raise interrupt
        return None if any(isinstance(result, PeerLost) for result in found) else found

    def _restored(self) -> None:
        """Connect the workers, those replaced that ended, give them the state, and repeat the steps since."""
        for _ in range(_ATTEMPTS):
            self._replace()
            if self._connected() and self._sent() and self._repeated():
                self._is_ready = True
                return
        raise _lost()

    def _replace(self) -> None:
        workers = range(self._crew.workers)
        alive, _ = self._finished("process", [()] * len(workers))
        for worker, answer in zip(workers, alive, strict=True):
            if isinstance(answer, PeerLost):
                self._crew.replace(worker)
                self._counters[worker].restarts += 1

    def _connected(self) -> bool:
        hosts, token = self._all("host", [()] * self._crew.workers), secrets.token_bytes(32)
        if hosts is None:
            return False
        if len(set(hosts)) == 1:
            hosts = [LOCAL] * len(hosts)
        addresses = self._all("listen", [(host,) for host in hosts])
        return addresses is not None and self._all("connect", [(addresses, token)] * len(hosts)) is not None

    def _sent(self) -> bool:
        """Give each worker the part of the snapshot that it keeps; return whether all have it."""
        workers, arguments = range(self._crew.workers), [(self._snapshot,)] * self._crew.workers
        if self._layout.ownership is not None:
            arguments = [({n: self._snapshot[n] for n in self._layout.kept_by(w)},) for w in workers]
        found = self._all("receive", arguments)
        for counter, kept in zip(self._counters, found or (), strict=False):
            counter.keeps(kept)
        return found is not None

    def _repeated(self) -> bool:
        for requests in self._log:
            found, interrupt = self._finished("step", [(request,) for request in requests])
            if interrupt is not None:
                raise interrupt
            if not all(isinstance(outcome, Outcome) for outcome in found):
                return False
        return True

    def _remote(self) -> RemoteValues:
        """Return the present state, which is fetched when it is read, as long as no other step is made."""
        step = self.steps

        def fetch(names: list[str]) -> dict[str, Array]:
            if step != self.steps:
                raise UnsupportedError("the state of an earlier step of a distributed training is gone")
            found = self._fetched(names)
            if len(found) == len(self._layout.state):
                self._snapshot, self._log, self._logged = found, [], 0
            return found

        return RemoteValues(self._layout.state, fetch)

    def _fetched(self, names: Sequence[str]) -> dict[str, Array]:
        sources = [
            [name for name in names if self._layout.source_of(name) == worker]
            for worker in range(self._crew.workers)
        ]
        for _ in range(_ATTEMPTS):
            if not self._is_ready:
                self._restored()
            found = self._all("fetch", [(wanted,) for wanted in sources])
            if found is not None:
                together = {name: array for arrays in found for name, array in arrays.items()}
                return {name: together[name].copy() for name in names}
            self._is_ready = False
        raise _lost()

    def _results(
        self, task: Task, requests: Sequence[Request], outcomes: Sequence[Outcome]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for place, index in enumerate(task.algorithms):
            each = [outcome.results[place] for outcome in outcomes]
            if index == self._layout.first:
                found |= joined(each, requests[0].shares, task.has_rows)
            else:
                found |= each[0]
        return found


def _size(value: Any) -> int:
    return int(getattr(value, "nbytes", 0))


def _lost() -> UnsupportedError:
    return UnsupportedError(
        f"workers were lost {_ATTEMPTS} times in one step; the session has the state before this step"
    )


__all__ = ["Crew", "Replicas", "Task"]
