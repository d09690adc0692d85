"""A worker of a distributed training: it keeps the state, computes its part of each batch, and exchanges."""

from __future__ import annotations

import functools
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import SabirError
from sabir.compilation import Commit
from sabir.distributed import Exchange, Listener, PeerLost, Peers
from sabir.opsets import STANDARD
from sabir.serial import loads
from sabir.training._buckets import Bucket, by_type
from sabir.training._layout import Layout, hollow, is_float
from sabir.training._parts import Options, algorithm_of
from sabir.training._sections import Sections, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.distributed import Address
    from sabir.ir import Array
    from sabir.training._layout import Settings
    from sabir.training._ownership import Ownership
    from sabir.training._parts import RunnablePart


LOCAL = "127.0.0.1"


class Request(NamedTuple):
    """A step as one worker computes it.

    The first of `algorithms` runs for `part`, the feeds of some samples, the others for `whole`. `shares` are
    the shares of the workers in the samples of the batch; `outputs` are asked of each algorithm. Random
    numbers depend on `path`, the seed and the number of the step.
    """

    algorithms: tuple[int, ...]
    part: dict[str, Any]
    whole: dict[str, Any]
    shares: tuple[float, ...]
    outputs: tuple[tuple[str, ...], ...]
    path: tuple[int, int]


class Outcome(NamedTuple):
    """What a step returns: the outputs of each algorithm, bytes that were exchanged, and seconds."""

    results: list[dict[str, Any]]
    sent: int = 0
    received: int = 0
    computed: float = 0.0
    waited: float = 0.0
    processor: float = 0.0


class Kept(NamedTuple):
    """The bytes of the state that a worker keeps: all, and those that only the optimizer reads."""

    state: int
    optimizer: int


class Replica:
    """A session of the model in a group of workers; `settings` are the same on all of them.

    Any failure leaves the state undefined: it is then set by `receive` on all workers.
    """

    def __init__(self, model: bytes, options: Mapping[str, Any], rank: int, settings: Settings) -> None:
        """Take the bytes of the model, whose state is received later, and options of the session."""
        found, known = hollow(loads(model)), Options(**options, registry=STANDARD)
        parts = {index: algorithm_of(found, index, known) for index in settings.algorithms}
        self._layout = Layout(found, parts, settings)
        self._rank, self._settings = rank, settings
        self._gradients = self._buckets(self._layout.gradients)
        self._parameters = self._buckets(self._layout.parameters)
        self._views = {n: v for b in (*self._gradients, *self._parameters) for n, v in b.views.items()}
        self._values: dict[str, Array] = {}
        self._divided: dict[tuple[str, ...], Sections] = {}
        self._listener: Listener | None = None
        self._exchange: Exchange | None = None
        self._sender = ThreadPoolExecutor(1, "exchange")
        shards = self._layout.ownership
        self._sharded = None if shards is None else _Sharded(self._layout, shards, rank)

    def process(self) -> int:
        """Return the number of the process."""
        return os.getpid()

    def host(self) -> str:
        """Return the address at which the others reach this machine; here: they are on it."""
        return LOCAL

    def listen(self, host: str) -> Address:
        """Open a port for the other workers, and return its address."""
        self.close()
        self._listener = Listener(host)
        return self._listener.address

    def connect(self, addresses: Sequence[Address], token: bytes) -> PeerLost | None:
        """Connect with the others, of whom all listen; return what kept it from that."""
        listener = self._listener
        if listener is None:
            return PeerLost("the worker does not listen")
        try:
            self._exchange = Exchange(Peers.joined(self._rank, listener, addresses, token))
        except PeerLost as error:
            return error
        finally:
            listener.close()
        return None

    def close(self) -> None:
        """Close the connections: a step that is under way ends with PeerLost."""
        if self._listener is not None:
            self._listener.close()
        if self._exchange is not None:
            self._exchange.peers.close()

    def receive(self, values: Mapping[str, Array]) -> Kept:
        """Take the values of all state variables that this worker keeps; return how much they are."""
        self._values = {n: np.array(a) for n, a in values.items() if n not in self._views}
        for name, view in self._views.items():
            view[...] = values[name]
        self._values |= self._views
        sizes = {name: array.nbytes for name, array in self._values.items()}
        return Kept(sum(sizes.values()), sum(sizes[n] for n in sizes.keys() & self._layout.moments))

    def fetch(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the values of state variables."""
        return {name: self._values[name] for name in names}

    def step(self, request: Request) -> Outcome | SabirError | PeerLost:
        """Compute a step, or return what kept it from that: so it is raised elsewhere as what it is."""
        started, exchange = (time.perf_counter(), time.process_time()), self._exchange
        if exchange is None:
            return PeerLost("the worker is not connected")
        peers = exchange.peers
        sent, received = peers.sent, peers.received
        step = _Step(self._sender, exchange)
        try:
            results = [
                self._computed(index, outputs, request, step)
                for index, outputs in zip(request.algorithms, request.outputs, strict=True)
            ]
        except (SabirError, PeerLost) as error:
            peers.close()
            return error
        computed = time.perf_counter() - started[0] - step.waited
        processor = time.process_time() - started[1]
        sizes = peers.sent - sent, peers.received - received
        return Outcome(results, *sizes, computed, step.waited, processor)

    def _computed(
        self, index: int, outputs: tuple[str, ...], request: Request, step: _Step
    ) -> dict[str, Any]:
        if index == self._layout.first:
            return self._summed(request, outputs, step)
        asked = outputs if self._rank == 0 else ()
        if self._sharded is None:
            part = self._layout.parts[index]
            return _run_in_place(part, self._values, request.whole, asked, request.path)

        def done(number: int) -> None:
            bucket = self._parameters[number]
            bucket.fill({name: self._values[name] for name in bucket.views})
            self._values.update(bucket.views)
            step.begin(functools.partial(step.exchange.gather, bucket.array, bucket.ranges))

        found = self._sharded.run(self._values, request, asked, step, done)
        step.wait()
        return found

    def _summed(self, request: Request, outputs: tuple[str, ...], step: _Step) -> dict[str, Any]:
        """Run the first algorithm, and exchange each bucket of gradients while the next one is computed."""
        layout, buckets, shares = self._layout, self._gradients, request.shares
        results: dict[str, Any] = {}
        rest = {name: self._values[name] for name in layout.rest}
        # gradients that are applied in this step are needed by their owners alone
        whole = layout.ownership is None or len(request.algorithms) == 1

        def exchanged(bucket: Bucket) -> None:
            step.exchange.mean(bucket.array, bucket.ranges, shares)
            if whole:
                step.exchange.gather(bucket.array, bucket.ranges)

        def done(found: Mapping[str, Any], updates: dict[str, Array]) -> None:
            results.update(found)
            rest.update((n, a) for n, a in updates.items() if n in rest)
            for bucket in buckets:
                if updates.keys() >= bucket.views.keys():
                    bucket.fill(updates)
                    step.begin(functools.partial(exchanged, bucket))

        if shares[self._rank]:
            path = (*request.path, self._rank)
            self._sections(outputs).run(request.part, self._values, path, done)
        else:
            for bucket in buckets:
                step.begin(functools.partial(exchanged, bucket))
        self._values.update(self._agreed(rest, shares, step))
        step.wait()
        return results

    def _agreed(self, rest: Mapping[str, Array], shares: Sequence[float], step: _Step) -> dict[str, Array]:
        """Return the means of what is no gradient; what is no floating-point number is that of one worker."""
        floats = [name for name, array in rest.items() if is_float(array)]
        found: dict[str, Array] = {}
        workers, exchange = self._settings.workers, step.exchange
        for names in by_type(floats, rest):
            bucket = Bucket({name: rest[name] for name in names}, workers)
            step.begin(functools.partial(exchange.mean, bucket.array, bucket.ranges, shares))
            step.begin(functools.partial(exchange.gather, bucket.array, bucket.ranges))
            found |= bucket.views
        others = {name: (0, array) for name, array in rest.items() if name not in found}
        if others:
            found |= step.result(functools.partial(exchange.shared, others))
        step.wait()
        return {name: found[name].copy() for name in rest}

    def _sections(self, outputs: tuple[str, ...]) -> Sections:
        """Return the first algorithm in sections, one for each bucket; the last one computes the rest too."""
        found = self._divided.get(outputs)
        if found is None:
            part, buckets = self._layout.parts[self._layout.first], self._gradients
            groups = [{name: part.updates[name] for name in bucket.views} for bucket in buckets] or [{}]
            groups[-1] |= {n: v for n, v in part.updates.items() if n in self._layout.rest}
            wanted = [Wanted((), group) for group in groups[:-1]]
            found = Sections(part, [*wanted, Wanted(outputs, groups[-1])])
            gradients = {name for bucket in buckets for name in bucket.views}
            if any(found.reads(number) & gradients - group.keys() for number, group in enumerate(groups)):
                # the memory of the gradients of another bucket is in use already
                found = Sections(part, [Wanted(outputs, part.updates)])
            self._divided[outputs] = found
        return found

    def _buckets(self, groups: Sequence[Sequence[str]]) -> list[Bucket]:
        layout = self._layout
        owners = None if layout.ownership is None else layout.ownership.owners
        return [Bucket({n: layout.state[n] for n in g}, self._settings.workers, owners) for g in groups]


class _Sharded:
    """The part of one worker in an algorithm that applies gradients, in sections: one for each bucket."""

    def __init__(self, layout: Layout, ownership: Ownership, rank: int) -> None:
        self._part, self._ownership, self._rank = layout.applying, ownership, rank
        part, self._updates = layout.applying, ownership.updates_of(rank, layout.parameters)
        self._shared = {one.name: one for ones in ownership.rounds for one in ones}
        self._own: list[RunnablePart | None] = []
        known: set[str] = set()
        for ones in ownership.rounds:
            names = tuple(one.name for one in ones if one.owner == rank)
            inputs = ownership.inputs(rank, names, known)
            self._own.append(part.section(inputs, names, {}) if names else None)
            known |= {one.name for one in ones}
        self._parts: dict[tuple[int, tuple[str, ...]], RunnablePart] = {}

    def run(
        self,
        values: dict[str, Array],
        request: Request,
        outputs: tuple[str, ...],
        step: _Step,
        done: Callable[[int], None],
    ) -> dict[str, Any]:
        """Compute what the owner of some variables computes, and assign it; return outputs.

        `done` is called when the parameters of a bucket are assigned, with the number of the bucket.
        """
        feeds: dict[str, Any] = {**request.whole, **self._part.keys(request.path)}
        for ones, part in zip(self._ownership.rounds, self._own, strict=True):
            names = tuple(one.name for one in ones if one.owner == self._rank)
            own = {} if part is None else part.run(feeds, values, names)[0]
            empty = {one.name: np.zeros((), one.kind.element.dtype) for one in ones}
            arrays = {one.name: (one.owner, own.get(one.name, empty[one.name])) for one in ones}
            feeds |= step.result(functools.partial(step.exchange.shared, arrays))
        # outputs are of the state before the step
        results = self._run_section(-1, values, feeds, outputs, request.path) if outputs else {}
        for number in range(len(self._updates)):
            self._run_section(number, values, feeds, (), request.path)
            if number < len(self._updates) - 1:
                done(number)
        return results

    def _run_section(
        self,
        number: int,
        values: dict[str, Array],
        feeds: Mapping[str, Any],
        outputs: tuple[str, ...],
        path: tuple[int, ...],
    ) -> dict[str, Any]:
        """Run the section of a bucket, that of the rest, or with -1 one that computes outputs alone."""
        updates = self._updates[number] if number >= 0 else {}
        if not (updates or outputs):  # this worker owns nothing of the bucket
            return {}
        part = self._parts.get((number, outputs))
        if part is None:
            inputs = self._ownership.inputs(self._rank, (*outputs, *updates.values()), self._shared)
            part = self._parts[number, outputs] = self._part.section(inputs, outputs, updates)
        return _run_in_place(part, values, feeds, outputs, path)


class _Step:
    """The exchanges of one step, which a thread makes one after the other, and the seconds of waiting."""

    def __init__(self, sender: ThreadPoolExecutor, exchange: Exchange) -> None:
        self.exchange, self.waited = exchange, 0.0
        self._sender, self._pending = sender, list[Future[Any]]()

    def begin(self, work: Callable[[], Any]) -> None:
        """Let the thread do something after what it has to do."""
        self._pending.append(self._sender.submit(work))

    def result(self, work: Callable[[], Any]) -> Any:
        """Return the result of something that the thread does after the rest; raises PeerLost."""
        self.begin(work)
        last = self._pending[-1]
        self.wait()
        return last.result()

    def wait(self) -> None:
        """Wait until all is done; raises PeerLost."""
        started = time.perf_counter()
        for pending in self._pending:
            pending.result()
        self._pending.clear()
        self.waited += time.perf_counter() - started


def _run_in_place(
    part: RunnablePart,
    values: dict[str, Array],
    feeds: Mapping[str, Any],
    outputs: tuple[str, ...],
    path: tuple[int, ...],
) -> dict[str, Any]:
    """Run a part, assign its updates, where possible in the memory of the old values, and return outputs."""
    commit = Commit[dict[str, Any]](lambda results: part.assigned(results, values))
    found, updates = part.run(feeds, values, outputs, path, commit)
    values.update(cast("dict[str, Array]", commit.prepared) if commit.done else updates)
    return found


__all__ = ["LOCAL", "Kept", "Outcome", "Replica", "Request"]
