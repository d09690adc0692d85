"""This source tree and an earlier one, in turn on the light models and those of folders: runs and first runs.

    git worktree add /tmp/before COMMIT
    python benchmarks/before.py /tmp/before/src FOLDER_OF_MODELS

Each side has a process and a cache of its own. Feeds and threads are those of `zoo.py`.
"""

# ruff: file-ignore[banned-api]  the light models come with onnx

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import harness as h  # before numpy: it pins the threads
import onnx
from pairs import Side

BLOCKS, RUNS, COLD_RUNS, WARM_RUNS = 6, 8, 4, 4
BLOCK_SECONDS = 0.5  # of one block, or three runs
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
OURS = Path(__file__).parents[1] / "src"
WORKER = """
import json, statistics, sys, time
import numpy as np
import sabir
import sabir.compilation
path, threads = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
feeds = {}
started = time.perf_counter()
session = sabir.Session(path, threads=threads)
for port in session.inputs:
    if not port.optional:
        shape = [d if isinstance(d, int) else (64 if at else 1) for at, d in enumerate(port.type.shape)]
        dtype = port.type.element.dtype
        drawn = rng.integers(0, 100, shape) if dtype.kind in "iu" else rng.standard_normal(shape)
        feeds[port.name] = drawn.astype(dtype)
session.run(feeds)
print(json.dumps(time.perf_counter() - started), flush=True)
for line in sys.stdin:
    taken = []
    for _ in range(int(line)):
        started = time.perf_counter()
        session.run(feeds)
        taken.append(time.perf_counter() - started)
    print(json.dumps(statistics.median(taken[2:])), flush=True)
"""


def main() -> None:
    """Print a table with a row a model."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("before", type=Path, metavar="SRC", help="the `src` folder of the earlier tree")
    cli.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    given = cli.parse_args()
    paths = [path for folder in (*given.folders, LIGHT) for path in sorted(folder.glob("*.onnx"))]
    print(f"{h.THREADS} thread(s). A ratio above 1 means that this tree is faster.\n")
    with tempfile.TemporaryDirectory() as folder:
        trees = {"before": given.before, "now": OURS}
        caches = {name: str(Path(folder, name)) for name in trees}
        for tree in trees.values():
            _side(tree, "off", paths[0]).close()  # writes the bytecode
        rows = [_row(path, trees, caches) for path in paths]
    h.table(
        ("model", "run before", "run now", "ratio", "cold before", "cold now", "ratio",
         "warm before", "warm now", "ratio"),
        [row for row, _ in rows],
    )  # fmt: skip
    mean = statistics.geometric_mean(ratio for _, ratio in rows)
    print(f"Geometric mean of the ratios of runs: {mean:.3f}.")


def _side(tree: Path, cache: str, path: Path) -> Side:
    return Side(tree, cache, ["-c", WORKER, str(path), str(h.THREADS)])


def _row(path: Path, trees: dict[str, Path], caches: dict[str, str]) -> tuple[tuple[Any, ...], float]:
    h.progress(path.stem)
    firsts: dict[str, list[float]] = {name: [] for name in trees}
    sides: dict[str, Side] = {}
    for number in range(COLD_RUNS + WARM_RUNS):
        for name in sorted(trees, reverse=bool(number % 2)):
            if name in sides:
                sides[name].close()
            os.sync()  # what the cache of the other side has written is not written during this run
            cold = f"{path.stem} {min(number, COLD_RUNS - 1)}"
            sides[name] = _side(trees[name], str(Path(caches[name], cold)), path)
            firsts[name].append(sides[name].first)
    taken: dict[str, list[float]] = {name: [] for name in trees}
    runs = max(1, min(RUNS, int(BLOCK_SECONDS / sides["now"].block(3)) - 2))
    for number in range(BLOCKS):
        for name in sorted(trees, reverse=bool(number % 2)):
            time.sleep(h.PAUSE)
            taken[name].append(sides[name].block(runs + 2))
    for side in sides.values():
        side.close()
    pairs = (
        [statistics.median(taken[name]) for name in trees],
        [statistics.median(firsts[name][:COLD_RUNS]) for name in trees],
        [statistics.median(firsts[name][COLD_RUNS:]) for name in trees],
    )
    cells: list[Any] = [path.stem]
    for before, now in pairs:
        cells += [h.time_text(before), h.time_text(now), h.ratio_text(before, now)]
    return tuple(cells), pairs[0][0] / pairs[0][1]


if __name__ == "__main__":
    main()
