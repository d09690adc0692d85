"""Whether this tree is slower than an earlier commit, in a few minutes: `make bench-quick`.

    python benchmarks/quick.py [--since COMMIT] [NAME ...]

Each case runs in two processes, one for each tree, in turns. A case is slower where the median of the ratios
of neighbouring blocks is below 0.95 and nearly all of them are below 1; then it is measured once more, and
the exit code is 1 if it is slower again. `BENCH_THREADS` is the number of threads. The default commit is the
last one, or the one before it where nothing is uncommitted.
"""

from __future__ import annotations

import argparse
import io
import statistics
import subprocess  # ruff: ignore[suspicious-subprocess-import]  git, and an interpreter for each tree
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import harness as h  # before numpy: it pins the threads
from pairs import RunFailed, Side
from quick_cases import CASES

ROOT = Path(__file__).parents[1]
SCRIPT = str(Path(__file__).with_name("quick_cases.py"))
BLOCKS, BLOCK_SECONDS, MOST_RUNS = 7, 0.15, 2_000
LEAST = 0.95  # a ratio below it, in nearly all blocks, is no noise
STARTS = 4  # pairs of processes
IMPORTING = """import json, time
started = time.perf_counter()
import sabir
print(json.dumps(time.perf_counter() - started), flush=True)"""
PROCESSES = (IMPORT, COLD, WARM) = ("import sabir", "first process, two nodes", "second process, two nodes")


class Outcome(NamedTuple):
    """The seconds of both trees, and the ratios of neighbouring blocks: above 1 this tree is faster."""

    before: float
    now: float
    ratios: list[float]

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table, but for the name."""
        times = h.time_text(self.before), h.time_text(self.now)
        return (*times, h.ratio_text(self.ratio, 1), "slower" if self.is_slower else "")

    @property
    def is_slower(self) -> bool:
        """Whether this tree is slower, and not by chance."""
        return self.ratio < LEAST and sum(r >= 1 for r in self.ratios) <= 1


def main() -> None:
    """Measure all cases, or those that are named."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*CASES, *PROCESSES]
    cli.add_argument("names", nargs="*", metavar="NAME", help="; ".join(names))
    cli.add_argument("--since", metavar="COMMIT", help="the commit to compare with")
    given = cli.parse_args()
    unknown = [name for name in given.names if name not in names]
    if unknown:
        cli.error(f"no case {', '.join(unknown)}; there are {'; '.join(names)}")
    commit = given.since or ("HEAD" if _git("status", "--porcelain", "src").strip() else "HEAD~1")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trees = {"before": _extracted(commit, Path(folder, "tree")), "now": ROOT / "src"}
        found = {name: _measured(name, trees, folder) for name in given.names or names}
    print(f"{h.THREADS} thread(s), this tree beside {_git('log', '-1', '--format=%h %s', commit).strip()}.\n")
    h.table(
        ("case", "before", "now", "ratio", ""),
        [(name, *(("", "", "", "not before") if x is None else x.cells())) for name, x in found.items()],
    )
    print(f"Took {time.perf_counter() - started:.0f} s.")
    if any(x is not None and x.is_slower for x in found.values()):
        sys.exit(1)


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout  # ruff: ignore[subprocess-without-shell-equals-true]  git


def _extracted(commit: str, folder: Path) -> Path:
    """Return the folder `src` of a commit, written into a folder."""
    command = ["git", "-C", str(ROOT), "archive", commit, "src"]
    data = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout  # ruff: ignore[subprocess-without-shell-equals-true]  git
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _measured(name: str, trees: dict[str, Path], folder: str) -> Outcome | None:
    """Measure a case; None where the earlier tree cannot run it."""
    h.progress(name)
    if name in CASES:
        try:
            Side(trees["before"], "off", [SCRIPT, name]).close()
        except RunFailed:
            return None
    measure = _starts if name in PROCESSES else _blocks
    found = measure(name, trees, folder)
    return measure(name, trees, folder) if found.is_slower else found


def _blocks(name: str, trees: dict[str, Path], folder: str) -> Outcome:
    sides = {side: Side(tree, str(Path(folder, side)), [SCRIPT, name]) for side, tree in trees.items()}
    once = max(side.block(3) for side in sides.values())
    runs = max(1, min(MOST_RUNS, int(BLOCK_SECONDS / once)))
    taken: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(BLOCKS):
        for side in sorted(sides, reverse=bool(number % 2)):
            time.sleep(h.PAUSE)
            taken[side].append(sides[side].block(runs))
    for side in sides.values():
        side.close()
    return _outcome(taken)


def _starts(name: str, trees: dict[str, Path], folder: str) -> Outcome:
    """Measure starts of processes: the import alone, or the first run, without a cache and with one."""
    kept = {side: tempfile.mkdtemp(dir=folder) for side in trees}
    if name == WARM:
        for side, tree in trees.items():
            _start(name, tree, kept[side])
    taken: dict[str, list[float]] = {side: [] for side in trees}
    for number in range(STARTS):
        for side in sorted(trees, reverse=bool(number % 2)):
            cache = kept[side] if name == WARM else tempfile.mkdtemp(dir=folder)
            taken[side].append(_start(name, trees[side], cache))
    return _outcome(taken)


def _start(name: str, tree: Path, cache: str) -> float:
    if name != IMPORT:
        side = Side(tree, cache, [SCRIPT, "two nodes"])
        side.close()
        return side.first
    side = Side(tree, cache, ["-c", IMPORTING])
    side.close()
    return side.first


def _outcome(taken: dict[str, list[float]]) -> Outcome:
    before, now = taken["before"], taken["now"]
    ratios = [b / n for b, n in zip(before, now, strict=True)]
    return Outcome(statistics.median(before), statistics.median(now), ratios)


if __name__ == "__main__":
    main()
