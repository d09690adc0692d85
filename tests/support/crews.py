"""Workers of a distributed training in threads of this process."""

from concurrent.futures import ThreadPoolExecutor

import sabir
from sabir.distributed import PeerLost
from sabir.training._distributing import layout_of
from sabir.training._replica import Replica
from sabir.training._replicas import Replicas


class ThreadCrew:
    """Replicas in threads; `lose` ends one as if its process had died."""

    def __init__(self, session, settings):
        self.workers, self._settings = settings.workers, settings
        options = session.options._asdict()
        del options["registry"]
        self._model, self._options = sabir.dumps(session.model), options
        self._pool = ThreadPoolExecutor(self.workers)
        self.replicas = [self._replica(worker) for worker in range(self.workers)]
        self.lost, self.calls = set(), []

    def begin(self, method, arguments):
        self.calls.append((method, arguments))
        return [self._pool.submit(self._call, w, method, given) for w, given in enumerate(arguments)]

    def finish(self, calls):
        return [call.result() for call in calls]

    def replace(self, worker):
        self.lost.remove(worker)
        self.replicas[worker] = self._replica(worker)

    def lose(self, worker):
        self.lost.add(worker)
        self.replicas[worker].close()

    def _call(self, worker, method, given):
        if worker in self.lost:
            return PeerLost(f"worker {worker} has ended")
        return getattr(self.replicas[worker], method)(*given)

    def _replica(self, worker):
        return Replica(self._model, self._options, worker, self._settings)


def replicas_of(session, workers=2, *, bucket=1 << 20, shard_optimizer=False, snapshot_steps=100):
    """Return the replicas of a session and their crew."""
    numbers = {"workers": workers, "bucket": bucket, "snapshot_steps": snapshot_steps}
    layout = layout_of(session, numbers, shard_optimizer=shard_optimizer)
    crew = ThreadCrew(session, layout.settings)
    return Replicas(crew, layout, snapshot_steps), crew
