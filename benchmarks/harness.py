"""What the benchmarks share: pinned threads, interleaved medians, fresh processes, Markdown tables.

Import it before numpy: it pins the threads of the libraries beneath, which read their settings once.
"""
# ruff: file-ignore[ambiguous-unicode-character-string]  the signs of multiplication and of millionths

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import statistics
import subprocess  # ruff: ignore[suspicious-subprocess-import]  for fresh interpreters
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

if "numpy" in sys.modules:
    raise ImportError("import harness before numpy, whose libraries read their thread counts once")
THREADS = int(os.environ.get("BENCH_THREADS", "1"))
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = str(THREADS)

MIB = 1 << 20
PAUSE = 0.15  # seconds


class Case(NamedTuple):
    """One contestant: `work` is timed, on what the untimed `setup` returns."""

    name: str
    work: Callable[[Any], Any]
    setup: Callable[[], Any] = lambda: None


class Script(NamedTuple):
    """One contestant for a process of its own: three pieces of code, of which `work` alone is measured.

    `path` is given to all three.
    """

    name: str
    imports: str
    work: str
    setup: str = ""


class Cost(NamedTuple):
    """What a script took: seconds, and the MiB its resident memory grew, at the end and at the peak."""

    seconds: float
    growth: float
    peak: float


def progress(text: str) -> None:
    """Say on stderr what is under way; stdout is for results."""
    print(f"  .. {text}", file=sys.stderr, flush=True)


def medians(
    cases: Sequence[Case],
    rounds: int = 5,
    pick: Callable[[list[float]], float] = statistics.median,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the seconds of each case, every round running all of them in turn; `pick` may be `min`.

    `clock` may be `time.process_time`, for work of one thread on a machine that does other work too.
    """
    taken: dict[str, list[float]] = {case.name: [] for case in cases}
    for number in range(rounds):
        first = number % len(cases)
        progress(f"round {number + 1} of {rounds}")
        for case in (*cases[first:], *cases[:first]):
            taken[case.name].append(_timed(case, clock))
    return {name: pick(times) for name, times in taken.items()}


def blocks(
    cases: Sequence[Case],
    rounds: int = 15,
    size: int = 5,
    pick: Callable[[list[float]], float] = statistics.median,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the seconds of each case over so many runs, which run in turns, a block of runs each.

    Before each block there is a pause, in which the threads of the other case go to sleep: they would spin on
    the cores of this one. The first two runs of a block are not counted. `pick` may be `min`, and `clock`
    `time.process_time`, the seconds of the process on all cores.
    """
    taken: dict[str, list[float]] = {case.name: [] for case in cases}
    for start in range(0, rounds, size):
        for case in cases:
            time.sleep(PAUSE)
            for _ in range(2):
                _timed(case, clock)
            taken[case.name] += [_timed(case, clock) for _ in range(min(size, rounds - start))]
    return {name: pick(times) for name, times in taken.items()}


def short_blocks(cases: Sequence[Case], rounds: int = 7, seconds: float = 0.02) -> dict[str, float]:
    """Return the median seconds of runs of microseconds, which fill blocks of so many seconds, in turns.

    There is a pause before each block, as in `blocks`. What a block takes is divided by its number of runs.
    """
    taken: dict[str, list[float]] = {case.name: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            time.sleep(PAUSE)
            given, count = case.setup(), 0
            for _ in range(2):
                case.work(given)
            started = time.perf_counter()
            while (spent := time.perf_counter() - started) < seconds or not count:
                case.work(given)
                count += 1
            taken[case.name].append(spent / count)
    return {name: statistics.median(times) for name, times in taken.items()}


def costs(scripts: Sequence[Script], path: Path | str = "", rounds: int = 5) -> dict[str, Cost]:
    """Return the median cost of each script, each run in a fresh process, interleaved.

    Each has run once before: its bytecode is there, as that of an installed package is.
    """
    for script in scripts:
        progress(f"{script.name}, not measured yet")
        _cost(script, str(path))
    taken: dict[str, list[Cost]] = {script.name: [] for script in scripts}
    for number in range(rounds):
        first = number % len(scripts)
        progress(f"round {number + 1} of {rounds}, each run in a fresh process")
        for script in (*scripts[first:], *scripts[:first]):
            taken[script.name].append(_cost(script, str(path)))
    return {
        name: Cost(*(statistics.median(column) for column in zip(*found, strict=True)))
        for name, found in taken.items()
    }


def onnxruntime_session(model: Path | bytes) -> Any:
    """Return a session of onnxruntime on the pinned threads; only benchmarks beside it need it installed."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table: the first column to the left, numbers to the right."""
    print(f"| {' | '.join(head)} |")
    print(f"|---{'|--:' * (len(head) - 1)}|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    print(flush=True)


def time_text(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def ratio_text(theirs: float, ours: float) -> str:
    """Return how many times ours goes into theirs: above 1 is faster than the peer."""
    ratio = theirs / ours
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.2f}×"


def listed(found: Mapping[str, float], ours: str) -> list[tuple[str, str, str]]:
    """Return rows of name, time and ratio, where `ours` is the one that the others are compared with."""
    return [(n, time_text(s), "" if n == ours else ratio_text(s, found[ours])) for n, s in found.items()]


def _timed(case: Case, clock: Callable[[], float] = time.perf_counter) -> float:
    given = case.setup()
    gc.collect()
    started = clock()
    kept = case.work(given)
    taken = clock() - started
    del kept
    return taken


_CHILD = """
import json, sys, time
{imports}
path = sys.argv[1]
def resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024
{setup}
before, peak_before = resident("VmRSS"), resident("VmHWM")
started = time.perf_counter()
{work}
taken = time.perf_counter() - started
print(json.dumps([taken, resident("VmRSS") - before, max(0.0, resident("VmHWM") - max(before, peak_before))]))
"""


@functools.cache
def _environment() -> dict[str, str]:
    """Return the environment of fresh processes: they keep bytecode, in a folder of this process."""
    folder = tempfile.TemporaryDirectory(prefix="bytecode")
    atexit.register(folder.cleanup)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder.name}


def _cost(script: Script, path: str) -> Cost:
    code = _CHILD.format_map(script._asdict())
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False, env=_environment()
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed:\n{done.stderr}")
    return Cost(*json.loads(done.stdout.splitlines()[-1]))
