"""Steps of training on two processes of this machine: what is sent, how long workers wait, what they keep.

The same batches are trained by one process, by workers without a state (the program sends the parameters and
collects the gradients), and by `distribute`: gradients in one piece, in buckets, and with a divided optimizer.
The processes have one thread each. Then the first algorithm whole and in sections, in one process, and a step
of many workers as the model of `plan` has it. It needs Ray.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import harness as h  # before numpy: it pins the threads
import numpy as np
import ray
import training_networks

import sabir
from sabir.training import AdamW, Traffic, distribute, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gradients import Network

WORKERS, STEPS, WARM = 2, 12, 3
BUCKET = 4 * h.MIB
NETWORKS = ("vit", "resnet18-small")
SEND, ADD = 1e9, 2e9  # bytes a second of a network of 10 Gbit/s less its overhead; that one core adds up
LATENCY = 5e-5  # seconds of a message
COUNTS = (2, 8, 16, 64)


class Cluster(NamedTuple):
    """What a step of a worker takes: seconds, bytes of gradients, and the network.

    `forward` and `backward` are the seconds of a part of the batch, `apply` those of the optimizer, `cut` the
    share that sections add to the backward pass. `bandwidth` is bytes a second of one worker, `latency`
    seconds of a message, `adding` bytes a second that a worker adds up.
    """

    forward: float
    backward: float
    apply: float
    size: float
    cut: float = 0.05
    bandwidth: float = SEND
    latency: float = LATENCY
    adding: float = ADD


class Planned(NamedTuple):
    """The seconds of a step, those of waiting, and the share of the time that workers compute usefully."""

    step: float
    waited: float
    efficiency: float


def plan(cluster: Cluster, workers: int, bucket: float | None, *, shard_optimizer: bool = False) -> Planned:
    """Return what a step of so many workers takes; without `bucket` gradients are sent after all are known.

    A bucket is sent when its gradients are known and the one before has been exchanged; its gradients are
    known in proportion to the backward pass. Workers begin together and are equally fast.
    """
    count = 1 if bucket is None else max(1, round(cluster.size / bucket))
    backward = cluster.backward * (1 if count == 1 else 1 + cluster.cut)
    alone = cluster.forward + cluster.backward + cluster.apply
    if workers == 1:
        return Planned(alone, 0.0, 1.0)
    piece, share, apply = cluster.size / count, (workers - 1) / workers, cluster.apply
    one_way = (workers - 1) * cluster.latency + piece * share / cluster.bandwidth
    exchange = one_way + piece / cluster.adding + (0 if shard_optimizer else one_way)
    end = 0.0
    for number in range(1, count + 1):
        end = max(end, cluster.forward + backward * number / count) + exchange
    waited = end - cluster.forward - backward
    if shard_optimizer:
        apply /= workers
        waited += count * one_way  # parameters, after the step
    step = cluster.forward + backward + waited + apply
    return Planned(step, waited, alone / step)


class Measured(NamedTuple):
    """The seconds of a step, and per step and worker: bytes to others, to and from the program, and waiting."""

    step: float
    sent: float
    by_program: float
    waited: float
    optimizer: float


def main() -> None:
    ray.init(num_cpus=WORKERS, include_dashboard=False, logging_level="error", log_to_driver=False)
    for name in NETWORKS:
        network = training_networks.NETWORKS[name]()
        size = sum(network.weights[n].nbytes for n in training_networks.trained(network))
        print(f"### {network.name}\n")
        print(f"{size / h.MIB:.1f} MiB of gradients, AdamW, {WORKERS} workers of one thread each.\n")
        rows = [_row(title, work(network)) for title, work in WAYS.items()]
        head = ("way", "step", "MiB sent to workers", "MiB by the program", "waited", "MiB of moments")
        h.table(head, rows)
    ray.shutdown()
    _print_sections()
    _print_plan()


def _row(title: str, found: Measured) -> tuple[str, ...]:
    sizes = [f"{size / h.MIB:.1f}" for size in (found.sent, found.by_program, found.optimizer)]
    waited = "" if found.waited < 0 else h.time_text(found.waited)
    return title, h.time_text(found.step), sizes[0], sizes[1], waited, sizes[2]


def _session(network: Network) -> sabir.TrainingSession:
    model = prepare(
        network.model, "loss", optimizer=AdamW(1e-3), split=True, trainable=training_networks.trained(network)
    )
    return sabir.TrainingSession(model, threads=h.THREADS)


def _moments(session: sabir.TrainingSession) -> int:
    own = {value.name for value in session.model.graph.initializers}
    return sum(array.nbytes for name, array in session.state.items() if name not in own)


def _alone(network: Network) -> Measured:
    session, feeds = _session(network), dict(network.feeds)
    return Measured(_median(lambda: session.step(feeds)), 0, 0, -1, _moments(session))


def _by_program(network: Network) -> Measured:
    """Measure workers without a state, as `distribute` had them before."""
    session, feeds = _session(network), dict(network.feeds)
    count = len(next(iter(feeds.values())))
    parts = [{n: a[part] for n, a in feeds.items()} for part in np.array_split(np.arange(count), WORKERS)]
    model = ray.put(sabir.dumps(session.model))
    actors = [ray.remote(num_cpus=0)(_Stateless).remote(model, h.THREADS) for _ in range(WORKERS)]
    summed = session.summed
    shared = [n for n in session.part(0).reads(()) if n in session.state]
    sent = sum(session.state[n].nbytes for n in shared) + sum(session.state[n].nbytes for n in summed)

    def step() -> None:
        values = ray.put({name: session.state[name] for name in shared})
        found = ray.get([a.gradients.remote(values, f) for a, f in zip(actors, parts, strict=True)])
        session.state.update({n: _mean([one[n] for one in found]) for n in found[0]})
        session.step({}, 1, outputs=[])

    taken = _median(step)
    for actor in actors:
        ray.kill(actor)
    return Measured(taken, 0, sent, -1, _moments(session) / WORKERS)


class _Stateless:
    """A worker that gets the state with each call."""

    def __init__(self, model: bytes, threads: int) -> None:
        self._session = sabir.TrainingSession(model, threads=threads)

    def gradients(self, values: dict[str, Any], feeds: dict[str, Any]) -> dict[str, Any]:
        self._session.state.update(values)
        self._session.step(feeds, 0)
        return {name: self._session.state[name] for name in self._session.summed}


def _mean(arrays: list[Any]) -> Any:
    return np.mean(np.stack(arrays), axis=0).astype(arrays[0].dtype)


def _distributed(network: Network, bucket: int, *, shard_optimizer: bool = False) -> Measured:
    session, feeds = _session(network), dict(network.feeds)
    with distribute(session, WORKERS, bucket=bucket, shard_optimizer=shard_optimizer):
        for _ in range(WARM):
            session.step(feeds)
        before = session.traffic
        taken = _median(lambda: session.step(feeds), warm=0)
        after = session.traffic
    return Measured(
        taken,
        _per_step(before, after, "sent"),
        _per_step(before, after, "fed"),
        _per_step(before, after, "waited"),
        statistics.mean(one.optimizer for one in after),
    )


def _per_step(before: Iterable[Traffic], after: Iterable[Traffic], name: str) -> float:
    pairs = zip(before, after, strict=True)
    return statistics.mean((getattr(b, name) - getattr(a, name)) / STEPS for a, b in pairs)


def _median(work: Callable[[], object], warm: int = WARM) -> float:
    for _ in range(warm):
        work()
    taken: list[float] = []
    for _ in range(STEPS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


WAYS: dict[str, Callable[[Network], Measured]] = {
    "one process": _alone,
    "the program sends parameters and collects gradients": _by_program,
    "`distribute`, gradients in one piece": partial(_distributed, bucket=1 << 40),
    f"`distribute`, buckets of {BUCKET // h.MIB} MiB": partial(_distributed, bucket=BUCKET),
    f"`distribute`, buckets of {BUCKET // h.MIB} MiB, divided optimizer": partial(
        _distributed, bucket=BUCKET, shard_optimizer=True
    ),
}


def _print_sections() -> None:
    """Print what it costs to compute gradients in sections: one worker, which sends nothing."""
    rows: list[tuple[str, ...]] = []
    ray.init(num_cpus=1, include_dashboard=False, logging_level="error", log_to_driver=False)
    for name in NETWORKS:
        network = training_networks.NETWORKS[name]()
        taken = [_computed(network, bucket) for bucket in (1 << 40, BUCKET)]
        rows.append((network.name, *map(h.time_text, taken), f"{taken[1] / taken[0] - 1:+.0%}"))
    ray.shutdown()
    print(
        f"A step of one worker, whose gradients are computed together, and in sections of {BUCKET // h.MIB} MiB.\n"
    )
    h.table(("network", "together", "in sections", "difference"), rows)


def _computed(network: Network, bucket: int) -> float:
    session, feeds = _session(network), dict(network.feeds)
    taken: list[float] = []
    with distribute(session, 1, bucket=bucket):
        for number in range(STEPS + WARM):
            before = session.traffic[0].computed
            session.step(feeds)
            if number >= WARM:
                taken.append(session.traffic[0].computed - before)
    return statistics.median(taken)


def _print_plan() -> None:
    """Print steps of many workers, each with a part of the same size, as `plan` has them."""
    for title, bandwidth in (("10 Gbit/s", SEND), ("1 Gbit/s", SEND / 10)):
        example = EXAMPLE._replace(bandwidth=bandwidth)
        print(f"Planned, on a network of {title}: the time of a step, and the efficiency.\n")
        rows = [
            (way, *(_planned(example, count, bucket, shard) for count in COUNTS))
            for way, (bucket, shard) in PLANNED.items()
        ]
        h.table(("way", *(f"{count} workers" for count in COUNTS)), rows)


def _planned(cluster: Cluster, workers: int, bucket: float | None, shard: bool) -> str:
    found = plan(cluster, workers, bucket, shard_optimizer=shard)
    return f"{found.step:.2f} s, {found.efficiency:.0%}"


EXAMPLE = Cluster(forward=0.4, backward=0.8, apply=0.06, size=400e6)  # 100 million parameters in float
PLANNED: dict[str, tuple[float | None, bool]] = {
    "one piece": (None, False),
    "buckets of 4 MiB": (4 * h.MIB, False),
    "buckets of 25 MiB": (25 * h.MIB, False),
    "buckets of 100 MiB": (100 * h.MIB, False),
    "buckets of 25 MiB, divided optimizer": (25 * h.MIB, True),
}


if __name__ == "__main__":
    main()
