"""Steps of training on two processes of this machine: what is sent, how long workers wait, what they keep.

The same batches are trained by one process, by workers without a state (the program sends the parameters
and collects the gradients), and by `distribute`: gradients in one piece, in buckets, and with a divided
optimizer. Then follow the cost of computing gradients in sections, and a step of many workers as the model of
`plan` has it. All processes have `BENCH_THREADS` threads for their computations. It needs Ray.
"""
# ruff: file-ignore[ambiguous-unicode-character-string]  the sign of multiplication

from __future__ import annotations

import importlib
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import harness as h  # before numpy: it pins the threads
import numpy as np
import training_networks
from gradients import DRAW, OPSET, Network, Weights

import sabir
from sabir.training import AdamW, Traffic, distribute, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ray: Any = importlib.import_module("ray")  # no part of the environment in which types are checked
WORKERS, STEPS, WARM = 2, 10, 2
PIECE, BUCKET = 1 << 40, 4 * h.MIB
SEND, ADD = 1e9, 2e9  # bytes a second: of a network of 10 Gbit/s less its overhead; that one core adds up
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
    """The seconds of a step, those of waiting, and the time of one worker alone by that of the step."""

    step: float
    waited: float
    efficiency: float


def plan(cluster: Cluster, workers: int, bucket: float | None, *, shard_optimizer: bool = False) -> Planned:
    """Return what a step of so many workers takes; without `bucket` gradients are sent after all are known.

    A bucket is sent when its gradients are known and the one before has been exchanged; its gradients are
    known in proportion to the backward pass. Workers begin together and are equally fast, and each has a part
    of the same size, however many there are.
    """
    alone = cluster.forward + cluster.backward + cluster.apply
    if workers == 1:
        return Planned(alone, 0.0, 1.0)
    count = 1 if bucket is None else max(1, round(cluster.size / bucket))
    backward = cluster.backward * (1 if count == 1 else 1 + cluster.cut)
    piece, share, apply = cluster.size / count, (workers - 1) / workers, cluster.apply
    one_way = (workers - 1) * cluster.latency + piece * share / cluster.bandwidth
    exchange = one_way + piece / cluster.adding + (0 if shard_optimizer else one_way)
    end = 0.0
    for number in range(1, count + 1):
        end = max(end, cluster.forward + backward * number / count) + exchange
    waited = end - cluster.forward - backward
    if shard_optimizer:
        apply /= workers
        waited += count * one_way  # of the parameters, after the step
    step = cluster.forward + backward + waited + apply
    return Planned(step, waited, alone / step)


class Measured(NamedTuple):
    """The seconds of a step, and of each worker: bytes and seconds per step, bytes of moments.

    `sent` are bytes to other workers, `by_program` those to and from the program.
    """

    step: float
    sent: float = 0.0
    by_program: float = 0.0
    waited: float | None = None
    processor: float | None = None
    optimizer: float = 0.0


def perceptron() -> Network:
    """Return a network whose gradients are large for what it computes: six layers of width 1024."""
    b, weights, width = sabir.Builder(OPSET), Weights(), 1024
    y, t = b.input("x", "float", ["N", width]), b.input("t", "int64", ["N"])
    for number in range(6):
        weights[f"w{number}"] = (DRAW.standard_normal((width, width)) * width**-0.5).astype(np.float32)
        y = b.Relu(b.MatMul(y, b.initializer(f"w{number}", weights[f"w{number}"])))
    b.output(b.SoftmaxCrossEntropyLoss(y, t), "loss")
    feeds = {"x": DRAW.standard_normal((128, width)).astype(np.float32), "t": DRAW.integers(0, width, 128)}
    return Network("perceptron 128×1024, 6 layers", b.model(), feeds, weights, lambda: None)


NETWORKS = (perceptron, training_networks.small_resnet18)


def main() -> None:
    ray.init(num_cpus=WORKERS, include_dashboard=False, logging_level="error", log_to_driver=False)
    for make in NETWORKS:
        network = make()
        size = sum(network.weights[n].nbytes for n in training_networks.trained(network))
        print(f"### {network.name}\n")
        print(f"{size / h.MIB:.1f} MiB of gradients, AdamW, {WORKERS} workers, {h.THREADS} thread(s) each.\n")
        head = (
            "way",
            "step",
            "processor",
            "waited",
            "MiB to workers",
            "MiB by the program",
            "MiB of moments",
        )
        h.table(head, [_row(title, work(network)) for title, work in WAYS.items()])
    _print_sections()
    ray.shutdown()
    _print_plan()


def _row(title: str, found: Measured) -> tuple[str, ...]:
    h.progress(title)
    sizes = [f"{size / h.MIB:.1f}" for size in (found.sent, found.by_program, found.optimizer)]
    times = ["" if t is None else h.time_text(t) for t in (found.step, found.processor, found.waited)]
    return title, *times, *sizes


def _session(network: Network) -> sabir.TrainingSession:
    model = prepare(
        network.model, "loss", optimizer=AdamW(1e-3), split=True, trainable=training_networks.trained(network)
    )
    return sabir.TrainingSession(model, threads=h.THREADS)


def _alone(network: Network) -> Measured:
    session, feeds = _session(network), dict(network.feeds)
    shared = {value.name for value in session.model.graph.initializers}
    moments = sum(array.nbytes for name, array in session.state.items() if name not in shared)
    return Measured(_median(lambda: session.step(feeds)), optimizer=moments)


def _by_program(network: Network) -> Measured:
    """Measure workers without a state, as `distribute` had them at first."""
    session, feeds = _session(network), dict(network.feeds)
    count = len(next(iter(feeds.values())))
    places = np.array_split(np.arange(count), WORKERS)
    parts = [{n: a[part] for n, a in feeds.items()} for part in places]
    model = ray.put(sabir.dumps(session.model))
    actors = [ray.remote(num_cpus=0)(_Stateless).remote(model, h.THREADS) for _ in range(WORKERS)]
    summed = session.summed
    shared = [n for n in session.part(0).reads(()) if n in session.state]
    sent = sum(session.state[n].nbytes for names in (shared, summed) for n in names)

    def step() -> None:
        values = ray.put({name: session.state[name] for name in shared})
        found = ray.get([a.gradients.remote(values, f) for a, f in zip(actors, parts, strict=True)])
        session.state.update({n: _mean([one[n] for one in found]) for n in found[0]})
        session.step({}, 1, outputs=[])

    taken = _median(step)
    for actor in actors:
        ray.kill(actor)
    return Measured(taken, by_program=sent)


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
    sent, fed, waited, processor = (
        _per_step(before, after, name) for name in ("sent", "fed", "waited", "processor")
    )
    return Measured(taken, sent, fed, waited, processor, statistics.mean(t.optimizer for t in after))


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


_IN_BUCKETS = f"`distribute`, buckets of {BUCKET // h.MIB} MiB"
WAYS: dict[str, Callable[[Network], Measured]] = {
    "one process": _alone,
    "the program sends parameters and collects gradients": _by_program,
    "`distribute`, gradients in one piece": partial(_distributed, bucket=PIECE),
    _IN_BUCKETS: partial(_distributed, bucket=BUCKET),
    f"{_IN_BUCKETS}, divided optimizer": partial(_distributed, bucket=BUCKET, shard_optimizer=True),
}


def _print_sections() -> None:
    """Print what it costs to compute gradients in sections: one worker, which sends nothing."""
    rows: list[tuple[str, ...]] = []
    for make in NETWORKS:
        network = make()
        taken = [_processor(network, bucket) for bucket in (PIECE, BUCKET)]
        rows.append((network.name, *map(h.time_text, taken), f"{taken[1] / taken[0] - 1:+.0%}"))
    print("### Gradients in sections\n")
    print("The least processor time of a step of one worker, which sends nothing.\n")
    h.table(("network", "in one piece", f"in sections of {BUCKET // h.MIB} MiB", "difference"), rows)


def _processor(network: Network, bucket: int) -> float:
    session, feeds = _session(network), dict(network.feeds)
    taken: list[float] = []
    with distribute(session, 1, bucket=bucket):
        for _ in range(STEPS + WARM):
            before = session.traffic[0].processor
            session.step(feeds)
            taken.append(session.traffic[0].processor - before)
    return min(taken[WARM:])


def _print_plan() -> None:
    """Print steps of many workers, each with a part of the same size, as `plan` has them."""
    print("### Planned\n")
    for title, bandwidth in (("10 Gbit/s", SEND), ("1 Gbit/s", SEND / 10)):
        example = EXAMPLE._replace(bandwidth=bandwidth)
        print(f"The time of a step and the efficiency, on a network of {title}.\n")
        rows = [
            (way, *(_text(plan(example, count, bucket, shard_optimizer=divided)) for count in COUNTS))
            for way, (bucket, divided) in PLANNED.items()
        ]
        h.table(("way", *(f"{count} workers" for count in COUNTS)), rows)


def _text(planned: Planned) -> str:
    return f"{planned.step:.2f} s, {planned.efficiency:.0%}"


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
