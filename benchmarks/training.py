"""Steps of training: the compiled engine of Sabir beside PyTorch eager.

For four small networks the loss alone, the loss and its gradients, and a whole step with AdamW are measured;
for networks of full size (`--full`) a step, `step(feeds)`; and for all of them the memory of some steps in a
fresh process. PyTorch's step is that with the faster of its default and its fused optimizer. PyTorch is
optional: without it its columns and the ratios are left out. `BENCH_THREADS` is the number of threads of both
sides. All of the section "Training at full size", on a quiet machine:

    BENCH_THREADS=2 python benchmarks/training.py --full

`--process-time` is for one thread on a machine that does other work too.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import training_networks
from gradients import Network, cnn, lstm, mlp, torch, transformer

import sabir
from sabir.training import AdamW, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, FULL_ROUNDS, FULL_BLOCK = 20, 9, 3
RATE = 1e-3
STEPS, FULL_STEPS = 10, 3  # in a process of its own
COMPARED, FULL_COMPARED = 10, 1  # steps before the losses are compared: deep networks amplify rounding
TOLERANCE = 2e-3
SMALL = {"MLP": mlp, "CNN": cnn, "transformer": transformer, "LSTM": lstm}
NETWORKS = {**SMALL, **training_networks.NETWORKS}
SABIR, PEER = "Sabir", "PyTorch"
FUSED = "PyTorch, fused"


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NETWORKS)}")
    cli.add_argument("--full", action="store_true", help="all networks of full size, not all small ones")
    cli.add_argument("--engine", default="compiled", choices=["compiled", "reference"])
    cli.add_argument(
        "--process-time",
        action="store_true",
        help="seconds of the process, which a busy machine hardly changes",
    )
    given = cli.parse_args()
    clock = time.process_time if given.process_time else time.perf_counter
    beside = "PyTorch is not installed: its columns and the ratios are left out."
    if torch is not None:
        beside = f"Ratios are against PyTorch {torch.__version__} eager."
    timed = ", process time" if given.process_time else ""
    print(f"{h.THREADS} thread(s) on both sides, engine {given.engine}{timed}. {beside}\n")
    names = given.names or list(training_networks.NETWORKS if given.full else SMALL)
    networks = {name: NETWORKS[name]() for name in names}
    rows = [row for n, network in networks.items() for row in _times(n, network, given.engine, clock)]
    h.table(("network and work", SABIR, PEER, "ratio"), [row[:-1] for row in rows])
    ratios = [ratio for *_, ratio in rows if not math.isnan(ratio)]
    if ratios:
        print(f"Geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}.\n")
    count = STEPS if all(name in SMALL for name in names) else FULL_STEPS
    print(f"What {count} steps add to the memory of a fresh process, at their end and at most.\n")
    h.table(("network", SABIR, PEER), [_memory(n, networks[n].name, given.engine) for n in names])


def _times(name: str, network: Network, engine: Any, clock: Callable[[], float]) -> list[tuple[Any, ...]]:
    """Measure one network; raises SystemExit where the losses of both sides differ after some steps.

    A row has the cells of the table, and the ratio as a number, NaN without PyTorch.
    """
    h.progress(network.name)
    small = name in SMALL
    ours = _ours(network, engine) if small else _our_steps(network, engine)
    count = COMPARED if small else FULL_COMPARED
    losses = [steps(network, SABIR, engine, count)]
    theirs: dict[str, Callable[[], Any]] = {}
    if torch is not None:
        theirs = _theirs(network) if small else _their_steps(network)
        losses += [steps(network, side, engine, count) for side in (PEER, FUSED)]
    if any(abs(other - losses[0]) > TOLERANCE for other in losses):
        raise SystemExit(f"{network.name}: the losses differ after some steps: {losses}")
    cases = [h.Case(f"{SABIR} {name}", lambda _, w=work: w()) for name, work in ours.items()]
    cases += [h.Case(f"{PEER} {name}", lambda _, w=work: w()) for name, work in theirs.items()]
    taken = (
        h.blocks(cases, ROUNDS, clock=clock)
        if small
        else h.blocks(cases, FULL_ROUNDS, FULL_BLOCK, clock=clock)
    )
    rows: list[tuple[Any, ...]] = []
    for work in ours:
        mine = taken[f"{SABIR} {work}"]
        same = f"{PEER} {work}"
        found = min((t for n, t in taken.items() if n.startswith(same)), default=math.nan)
        compared = (h.time_text(found), h.ratio_text(found, mine)) if theirs else ("", "")
        rows.append((f"{network.name}: {work}", h.time_text(mine), *compared, found / mine))
    return rows


def _ours(network: Network, engine: Any) -> dict[str, Callable[[], Any]]:
    """Return the pieces of work of Sabir by name."""
    feeds = dict(network.feeds)
    gradients = sabir.differentiate(network.model, "loss", list(network.weights))
    forward, backward = (
        sabir.Session(m, engine=engine, threads=h.THREADS) for m in (network.model, gradients)
    )
    session = _session(network, engine)
    return {
        "forward": lambda: forward.run(feeds),
        "forward and backward": lambda: backward.run(feeds),
        "step": lambda: session.step(feeds),
    }


def _our_steps(network: Network, engine: Any) -> dict[str, Callable[[], Any]]:
    session, feeds = _session(network, engine), dict(network.feeds)
    return {"step": lambda: session.step(feeds)}


def _session(network: Network, engine: Any) -> sabir.TrainingSession:
    model = prepare(
        network.model,
        "loss",
        optimizer=AdamW(RATE),
        trainable=training_networks.trained(network),
    )
    return sabir.TrainingSession(model, engine=engine, threads=h.THREADS)


def _theirs(network: Network) -> dict[str, Callable[[], Any]]:
    """Return the pieces of work of PyTorch by name."""
    weights, feeds = _tensors(network)

    def forward() -> None:
        with torch.no_grad():
            network.loss(weights, *feeds)

    def backward() -> None:
        for weight in weights.values():
            weight.grad = None
        network.loss(weights, *feeds).backward()

    return {"forward": forward, "forward and backward": backward, **_their_steps(network)}


def _their_steps(network: Network) -> dict[str, Callable[[], Any]]:
    return {"step": _peer_step(network), "step, fused": _peer_step(network, fused=True)}


def _tensors(network: Network) -> tuple[dict[str, Any], list[Any]]:
    torch.set_num_threads(h.THREADS)
    trained = set(training_networks.trained(network))
    weights = {n: torch.tensor(w, requires_grad=n in trained) for n, w in network.weights.items()}
    return weights, [torch.tensor(x) for x in network.feeds.values()]


def _peer_step(network: Network, *, fused: bool = False) -> Callable[[], float]:
    """Return a step of PyTorch that returns the loss before it."""
    weights, feeds = _tensors(network)
    optimizer = torch.optim.AdamW([w for w in weights.values() if w.requires_grad], lr=RATE, fused=fused)

    def step() -> float:
        optimizer.zero_grad()
        loss = network.loss(weights, *feeds)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def steps(network: Network, side: str, engine: Any, count: int) -> float:
    """Make some steps on one side from the first weights, and return the last loss."""
    if side == SABIR:
        session, feeds = _session(network, engine), dict(network.feeds)
        losses = [next(iter(session.step(feeds).values())) for _ in range(count)]
    else:
        step = _peer_step(network, fused=side == FUSED)
        losses = [step() for _ in range(count)]
    return float(losses[-1])


def _memory(name: str, title: str, engine: str) -> tuple[str, ...]:
    """Measure the memory that both sides need for some steps, each in a process of its own."""
    folder = str(Path(__file__).parent)
    scripts = [
        h.Script(
            side,
            f"sys.path.insert(0, {folder!r})\nimport training",
            f"training.steps(network, {side!r}, {engine!r}, {STEPS if name in SMALL else FULL_STEPS})",
            f"network = training.NETWORKS[{name!r}]()",
        )
        for side in ([SABIR] if torch is None else [SABIR, PEER])
    ]
    found = h.costs(scripts, rounds=1)
    shown = [f"{found[s.name].growth:.0f} MiB, peak {found[s.name].peak:.0f} MiB" for s in scripts]
    return (title, *shown, *[""] * (2 - len(shown)))


if __name__ == "__main__":
    main()
