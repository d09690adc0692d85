"""`distribute`: the steps of a session on several processes or machines, with Ray."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from sabir.base import SabirError, UnsupportedError
from sabir.distributed import connected
from sabir.serial import dumps
from sabir.training._session import TrainingSession

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from sabir.ir import Array
    from sabir.training._sharding import Computed, Work

_ATTEMPTS = 5  # how often a piece of work is begun before the loss of its worker is an error


@contextlib.contextmanager
def distribute(session: TrainingSession, workers: int = 2) -> Generator[TrainingSession]:
    """Let the steps of a session be computed by `workers` processes of Ray for as long as the context lasts.

    The model must be split, as `prepare(split=True)` makes it: the first algorithm runs for parts of each
    batch, one a worker, the means of the gradients go to the state, and the second algorithm runs here. The
    results are those of the whole batch, but for rounding and for statistics and random numbers of parts.
    Workers hold no state: one that is lost is replaced, and its part is computed again. `fit`, checkpoints
    and resumption are as ever. Ray is started, unless the program is connected to a cluster already.

    Raises UnsupportedError for a model that is not split and where Ray is not installed.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0.0}> { y = MatMul (x, w) }''')
    >>> session = sabir.TrainingSession(prepare(model, 'mse'))
    >>> with distribute(session, workers=2):
    ...     pass
    Traceback (most recent call last):
        ...
    sabir.UnsupportedError: a distributed model has an algorithm that sums gradients and one that applies...
    """
    if workers < 1:
        raise UnsupportedError(f"there is 1 worker or more; got {workers}")
    if len(session.updating) < 2:  # ruff: ignore[magic-value-comparison]  the text says it
        raise UnsupportedError(
            "a distributed model has an algorithm that sums gradients and one that applies them: "
            "prepare it with split=True"
        )
    ray, started = connected()
    pool = _RayPool(ray, session, workers)
    try:
        with session.sharded(pool):
            yield session
    finally:
        pool.close()
        if started:
            ray.shutdown()


class _Replica:
    """What a worker runs: a session of the same model, whose state is in each request."""

    def __init__(self, model: bytes, options: Mapping[str, Any]) -> None:
        self._session = TrainingSession(model, **options)

    def process(self) -> int:
        """Return the number of the process."""
        return os.getpid()

    def compute(self, values: Mapping[str, Array], work: Work) -> Computed | SabirError:
        try:
            return self._session.computed(work, values)
        except SabirError as error:  # returned, so that it is raised as what it is
            return error


class _RayPool:
    """Replicas in processes of Ray."""

    def __init__(self, ray: Any, session: TrainingSession, workers: int) -> None:
        self._ray, self.workers = ray, workers
        self._model = ray.put(dumps(session.model))
        self._options = {
            "engine": session.engine, "threads": session.threads, "strict": session.strict,
            "newer_opsets": session.newer_opsets,
        }  # fmt: skip
        self._make = ray.remote(num_cpus=0)(_Replica)
        self._replicas = [self._replica() for _ in range(workers)]

    def run(self, values: Mapping[str, Array], work: Sequence[Work]) -> list[Computed]:
        """Return the results of each piece of work; what a lost worker had is computed again."""
        shared = self._ray.put(dict(values))
        pending = [self._replicas[i].compute.remote(shared, w) for i, w in enumerate(work)]
        return [self._result(i, w, pending[i], shared) for i, w in enumerate(work)]

    def close(self) -> None:
        """End the workers."""
        for replica in self._replicas:
            self._ray.kill(replica)

    def _replica(self) -> Any:
        return self._make.remote(self._model, self._options)

    def _result(self, index: int, work: Work, pending: Any, shared: Any) -> Computed:
        for _ in range(_ATTEMPTS):
            try:
                found = self._ray.get(pending)
            except self._ray.exceptions.RayActorError:
                self._replicas[index] = self._replica()
                pending = self._replicas[index].compute.remote(shared, work)
                continue
            if isinstance(found, SabirError):
                raise found
            return found
        raise UnsupportedError(f"worker {index} was lost {_ATTEMPTS} times in one step")


__all__ = ["distribute"]
