"""Models whose nodes take microseconds, and two processes that share the cores.

    python benchmarks/small.py [FOLDER]

`BENCH_THREADS` is the number of threads of each session. With a FOLDER its models run in one process after
the other, and in two at once.
"""

from __future__ import annotations

import argparse
import subprocess  # ruff: ignore[suspicious-subprocess-import]  for the two processes
import sys
import time
from importlib import resources
from itertools import pairwise, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
from zoo import difference, made_feeds

import sabir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 2.0  # of runs of a model, alone
CHILD = """
import sys, time
sys.path.insert(0, {folder!r})
import zoo, sabir
session = sabir.Session(sys.argv[1], threads=zoo.h.THREADS)
feeds = zoo.made_feeds(session, {{}})
session.run(feeds)
print("ready", flush=True)
sys.stdin.readline()
started = time.perf_counter()
for _ in range(int(sys.argv[2])):
    session.run(feeds)
print(time.perf_counter() - started)
"""


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path, nargs="?")
    folder = cli.parse_args().folder
    print(f"{h.THREADS} thread(s) on both sides.\n")
    h.table(("model", "Sabir", "onnxruntime", "ratio", "difference"), list(starmap(_row, models())))
    if folder is None:
        return
    print("The same runs in one process after the other, and in two at once, each with as many threads.\n")
    rows = [_shared(path) for path in sorted(folder.glob("*.onnx"))]
    h.table(("model", "one after the other", "at once", "ratio"), rows)


def _row(name: str, data: bytes) -> tuple[str, ...]:
    h.progress(name)
    peer, session = h.onnxruntime_session(data), sabir.Session(data, threads=h.THREADS)
    feeds = made_feeds(session, {})
    worst = max(map(difference, session.run(feeds).values(), peer.run(None, feeds)))
    ours, theirs = h.short_blocks([
        h.Case("Sabir", lambda _: session.run(feeds)),
        h.Case("onnxruntime", lambda _: peer.run(None, feeds)),
    ]).values()
    return name, h.time_text(ours), h.time_text(theirs), h.ratio_text(theirs, ours), f"{worst:.1e}"


# ---------------------------------------------------------------- models


def models() -> Iterator[tuple[str, bytes]]:
    yield "two nodes: Add and Relu of 8 numbers", _built([1, 8], lambda b, x: b.Relu(b.Add(x, x)))
    yield "policy network 64-64-64-8, 1 row", _built([1, 64], _network(64, 64, 64, 8))
    yield "the same, 32 rows", _built([32, 64], _network(64, 64, 64, 8))
    yield "network 784-256-10, 1 row", _built([1, 784], _network(784, 256, 10))
    digits = resources.files("sabir.demo").joinpath("digits.onnx")
    yield "the digit classifier of the demo", digits.read_bytes()
    yield "image 1x32x32: two convolutions, two layers", _built([1, 1, 32, 32], _image)


def _built(shape: list[int], make: Callable[[Any, Any], Any]) -> bytes:
    b = sabir.Builder(21)
    b.output(make(b, b.input("x", "float", shape)), "y")
    return sabir.dumps(b.model())


def _weights(*shape: int) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def _network(*widths: int) -> Callable[[Any, Any], Any]:
    def make(b: Any, x: Any) -> Any:
        for number, (rows, columns) in enumerate(pairwise(widths)):
            x = b.Gemm(x if number == 0 else b.Tanh(x), _weights(rows, columns), _weights(columns))
        return x

    return make


def _image(b: Any, x: Any) -> Any:
    for channels, before in ((8, 1), (16, 8)):
        x = b.Relu(b.Conv(x, _weights(channels, before, 3, 3), pads=[1, 1, 1, 1]))
        x = b.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2])
    return _network(1024, 64, 10)(b, b.Flatten(x))


# ---------------------------------------------------------------- two processes


def _shared(path: Path) -> tuple[str, ...]:
    h.progress(f"{path.stem}, two processes")
    session = sabir.Session(path, threads=h.THREADS)
    feeds = made_feeds(session, {})
    session.run(feeds)
    (alone,) = h.blocks([h.Case("alone", lambda _: session.run(feeds))]).values()
    session.release()
    count = max(3, int(SECONDS / alone))
    apart = sum(_times(path, count, at_once=False))
    together = max(_times(path, count, at_once=True))
    return path.stem, h.time_text(apart), h.time_text(together), h.ratio_text(apart, together)


def _times(path: Path, count: int, *, at_once: bool) -> list[float]:
    """Return the seconds of two processes that make so many runs each."""
    code = CHILD.format(folder=str(Path(__file__).parent))
    command = [sys.executable, "-c", code, str(path), str(count)]
    children = [
        subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for child in children:
        if child.stdout is None or child.stdout.readline() != "ready\n":
            raise RuntimeError(f"a process could not run {path}")
    time.sleep(h.PAUSE)
    if at_once:
        for child in children:
            _start(child)
        return [float(child.communicate()[0]) for child in children]
    found: list[float] = []
    for child in children:
        _start(child)
        found.append(float(child.communicate()[0]))
    return found


def _start(child: subprocess.Popen[str]) -> None:
    if child.stdin is None:
        raise RuntimeError("the process has no standard input")
    child.stdin.write("\n")
    child.stdin.flush()


if __name__ == "__main__":
    main()
