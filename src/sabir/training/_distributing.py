"""`distribute`: the steps of a session on several processes or machines, with Ray."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError
from sabir.distributed import PeerLost, connected
from sabir.opsets import STANDARD
from sabir.serial import dumps
from sabir.training._layout import Layout, Settings
from sabir.training._replica import Replica
from sabir.training._replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.training._session import TrainingSession

_BUCKET = 25 << 20  # bytes
_CALLS = 2  # of a worker at a time: a step, and one that closes its connections


@contextlib.contextmanager
def distribute(
    session: TrainingSession,
    workers: int = 2,
    *,
    shard_optimizer: bool = False,
    bucket: int = _BUCKET,
    snapshot_steps: int = 100,
) -> Generator[TrainingSession]:
    """Let the steps of a session be computed by `workers` processes of Ray for as long as the context lasts.

    The model must be split, as `prepare(split=True)` makes it. Each worker keeps the state. The first
    algorithm runs for parts of each batch, one a worker; the workers send each other the gradients, in
    buckets of about `bucket` bytes, each while the gradients of the next one are computed; and every worker
    applies their means by the second algorithm. The results are those of the whole batch, but for rounding
    and for statistics and random numbers of parts. `session.traffic` says what was sent.

    With `shard_optimizer` (ZeRO, stage 1) each worker steps its share of the parameters, sends them to the
    others, and keeps the moments of these alone. The results are the same: a norm over all gradients and a
    check that all are finite are made of numbers of all workers.

    A worker that is lost is replaced, and the steps since the last copy of the state are repeated, with the
    same numbers. The program copies the state after `snapshot_steps` steps, when it reads all of it, and when
    the samples of the steps since are more bytes than the state. At the end of the context the state is the
    session's again. `fit`, checkpoints and resumption are as ever. Ray is started, unless the program is
    connected to a cluster already.

    Raises UnsupportedError for a model that is not split, for an optimizer that computes with all gradients
    together and so cannot be divided, for operators of one's own, and where Ray is not installed.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0.0}> { y = MatMul (x, w) }''')
    >>> session = sabir.TrainingSession(prepare(model, 'mse'))
    >>> with distribute(session, workers=2):
    ...     pass
    Traceback (most recent call last):
        ...
    sabir.UnsupportedError: a distributed model has an algorithm that sums gradients and one that applies...
    """
    numbers = {"workers": workers, "bucket": bucket, "snapshot_steps": snapshot_steps}
    layout = layout_of(session, numbers, shard_optimizer=shard_optimizer)
    ray, started = connected()
    crew = _RayCrew(ray, session, layout.settings)
    try:
        with session.sharded(Replicas(crew, layout, snapshot_steps)):
            yield session
    finally:
        crew.close()
        if started:
            ray.shutdown()


def layout_of(session: TrainingSession, numbers: dict[str, int], *, shard_optimizer: bool) -> Layout:
    """Return how workers keep the state of a session; raises UnsupportedError as `distribute`."""
    wrong = next((name for name, number in numbers.items() if number < 1), None)
    if wrong is not None:
        raise UnsupportedError(f"{wrong} is 1 or more; got {numbers[wrong]}")
    if len(session.updating) < 2:  # ruff: ignore[magic-value-comparison]  the text says it
        raise UnsupportedError(
            "a distributed model has an algorithm that sums gradients and one that applies them: "
            "prepare it with split=True"
        )
    if session.options.registry is not STANDARD:
        raise UnsupportedError("the workers of a distributed training know the standard's operators alone")
    settings = Settings(tuple(session.updating), numbers["workers"], numbers["bucket"], shard_optimizer)
    return Layout(session.model, {i: session.part(i) for i in session.updating}, settings)


class _RayReplica(Replica):
    """A replica in a process of Ray."""

    def host(self) -> str:
        """Return the address of the machine."""
        ray, _ = connected("ray.util")
        return str(ray.get_node_ip_address())


class _RayCrew:
    """Replicas in processes of Ray."""

    def __init__(self, ray: Any, session: TrainingSession, settings: Settings) -> None:
        self._ray, self._settings = ray, settings
        self.workers = settings.workers
        self._model = ray.put(dumps(session.model))
        options = session.options._asdict()
        del options["registry"]
        self._options = options
        self._make = ray.remote(num_cpus=0, max_concurrency=_CALLS)(_RayReplica)
        self._replicas: list[Any] = []
        for worker in range(self.workers):
            self._replicas.append(self._replica(worker))

    def begin(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of each replica; a first argument that all have in common is sent once a machine."""
        common = {id(given[0]) for given in arguments if given}
        if self.workers > 1 and len(common) == 1:
            shared = self._ray.put(arguments[0][0])
            arguments = [(shared, *given[1:]) for given in arguments]
        pairs = zip(self._replicas, arguments, strict=True)
        return [getattr(replica, method).remote(*given) for replica, given in pairs]

    def finish(self, calls: list[Any]) -> list[Any]:
        """Return the result of each call; where a process ended, the others close their connections."""
        results: dict[Any, Any] = {}
        waiting, closing = list(calls), list[Any]()
        while waiting:
            (call,), waiting = self._ray.wait(waiting)
            results[call] = self._result(call)
            if isinstance(results[call], Exception) and not closing:
                closing = [replica.close.remote() for replica in self._replicas]
        if closing:  # before anything connects them again
            self._ray.wait(closing, num_returns=len(closing))
        return [results[call] for call in calls]

    def replace(self, worker: int) -> None:
        """Start another process."""
        self._replicas[worker] = self._replica(worker)

    def close(self) -> None:
        """End the processes."""
        for replica in self._replicas:
            self._ray.kill(replica)

    def _replica(self, worker: int) -> Any:
        return self._make.remote(self._model, self._options, worker, self._settings)

    def _result(self, call: Any) -> Any:
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayActorError as error:
            return PeerLost(str(error))


__all__ = ["distribute", "layout_of"]
