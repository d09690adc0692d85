"""Steps of training on two processes of this machine: what is sent, how long workers wait, what they keep.

The same batches are trained by one process, by workers without a state (the program sends the parameters
and collects the gradients), and by `distribute`: gradients in one piece, in buckets, and with a divided
optimizer. Then follow the cost of computing gradients in sections, and a step of many workers as the model of
`plan` has it. All processes have `BENCH_THREADS` threads for their computations. It needs Ray.
"""
# ruff: file-ignore[ambiguous-unicode-character-string]  the sign of multiplication

from __future__ import annotations

import contextlib
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
    from collections.abc import Callable, Generator, Iterable

ray: Any = importlib.import_module("ray")  # no part of the environment in which types are checked
WORKERS, STEPS, WARM = 2, 15, 2
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
    known in proportion to the backward pass, and its parameters to the time of the optimizer. Workers begin
    together and are equally fast, and each has a part of the same size, however many there are.
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
        apply, sent = apply / workers, 0.0
        for number in range(1, count + 1):
            sent = max(sent, apply * number / count) + one_way
        waited += sent - apply
    step = cluster.forward + backward + waited + apply
    return Planned(step, waited, alone / step)


class Way(NamedTuple):
    """One way to train: what makes a step, what its workers did, and bytes.

    `by_program` are the bytes of a step to and from the program, `moments` those that a worker keeps.
    """

    step: Callable[[], object]
    traffic: Callable[[], tuple[Traffic, ...]] = tuple
    by_program: float = 0.0
    moments: float = 0.0


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
        print(
            f"{size / h.MIB:.1f} MiB of gradients, AdamW, {WORKERS} workers, {h.THREADS} thread(s) each; "
            f"medians of {STEPS} steps, the ways in turns.\n"
        )
        head = ("way", "step", "processor", "waited", "MiB to workers", "MiB by program", "MiB of moments")
        with contextlib.ExitStack() as stack:
            ways = {title: stack.enter_context(way(network)) for title, way in WAYS.items()}
            h.table(head, _rows(ways))
    _print_sections()
    ray.shutdown()
    _print_plan()


def _rows(ways: dict[str, Way]) -> list[tuple[str, ...]]:
    """Make steps of all ways in turns, and return what a step of each took and sent."""
    taken: dict[str, list[tuple[float, ...]]] = {title: [] for title in ways}
    for number in range(WARM + STEPS):
        h.progress(f"step {number + 1} of {WARM + STEPS}")
        for title, way in ways.items():
            before, started = way.traffic(), time.perf_counter()
            way.step()
            seconds, after = time.perf_counter() - started, way.traffic()
            found = [_difference(before, after, name) for name in ("processor", "waited", "sent", "fed")]
            if number >= WARM:
                taken[title].append((seconds, *found))
    rows: list[tuple[str, ...]] = []
    for title, way in ways.items():
        step, processor, waited, sent, fed = (statistics.median(c) for c in zip(*taken[title], strict=True))
        times = [h.time_text(step), *(h.time_text(t) if way.traffic() else "" for t in (processor, waited))]
        sizes = [f"{size / h.MIB:.1f}" for size in (sent, fed + way.by_program, _moments(way))]
        rows.append((title, *times, *sizes))
    return rows


def _difference(before: Iterable[Traffic], after: Iterable[Traffic], name: str) -> float:
    found = [getattr(b, name) - getattr(a, name) for a, b in zip(before, after, strict=True)]
    return statistics.mean(found) if found else 0.0


def _moments(way: Way) -> float:
    return statistics.mean(t.optimizer for t in way.traffic()) if way.traffic() else way.moments


def _session(network: Network) -> sabir.TrainingSession:
    model = prepare(
        network.model, "loss", optimizer=AdamW(1e-3), split=True, trainable=training_networks.trained(network)
    )
    return sabir.TrainingSession(model, threads=h.THREADS)


@contextlib.contextmanager
def _alone(network: Network) -> Generator[Way]:
    session, feeds = _session(network), dict(network.feeds)
    shared = {value.name for value in session.model.graph.initializers}
    moments = sum(array.nbytes for name, array in session.state.items() if name not in shared)
    yield Way(lambda: session.step(feeds), moments=moments)


@contextlib.contextmanager
def _by_program(network: Network) -> Generator[Way]:
    """Let workers have no state, as those of `distribute` had none at first."""
    session, feeds = _session(network), dict(network.feeds)
    places = np.array_split(np.arange(len(next(iter(feeds.values())))), WORKERS)
    parts = [{n: a[part] for n, a in feeds.items()} for part in places]
    model = ray.put(sabir.dumps(session.model))
    actors = [ray.remote(num_cpus=0)(_Stateless).remote(model, h.THREADS) for _ in range(WORKERS)]
    shared = [n for n in session.part(0).reads(()) if n in session.state]
    sent = sum(session.state[n].nbytes for names in (shared, session.summed) for n in names)

    def step() -> None:
        values = ray.put({name: session.state[name] for name in shared})
        found = ray.get([a.gradients.remote(values, f) for a, f in zip(actors, parts, strict=True)])
        session.state.update({n: _mean([one[n] for one in found]) for n in found[0]})
        session.step({}, 1, outputs=[])

    try:
        yield Way(step, by_program=sent)
    finally:
        for actor in actors:
            ray.kill(actor)


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


@contextlib.contextmanager
def _distributed(network: Network, bucket: int, *, shard_optimizer: bool = False) -> Generator[Way]:
    session, feeds = _session(network), dict(network.feeds)
    with distribute(session, WORKERS, bucket=bucket, shard_optimizer=shard_optimizer):
        yield Way(lambda: session.step(feeds), lambda: session.traffic)


_IN_BUCKETS = f"`distribute`, buckets of {BUCKET // h.MIB} MiB"
WAYS: dict[str, Callable[[Network], contextlib.AbstractContextManager[Way]]] = {
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
