"""`sabir bench`: how fast a model runs, alone or beside another program."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from sabir.base import UnsupportedError, counted
from sabir.cli._bench_folder import FORMATS, bench_folder
from sabir.cli._compile import values_of
from sabir.cli._feed_options import (
    DimsOption,
    InputsOption,
    PrecisionOption,
    SeedOption,
    ShapesOption,
    ThreadsOption,
    feed_options,
)
from sabir.cli._feeds import gather
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import load_any, shown
from sabir.cli._operators import NewerOpsetsOption, OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._peers import PEERS, peer
from sabir.cli._progress import counting_bar
from sabir.cli._screen import Screen, bytes_text, plain
from sabir.cli._usage import FAULTY, refuse
from sabir.compilation import Compiled, Settings
from sabir.compilation.native import usable_cores
from sabir.debugging import difference
from sabir.drawing import seconds_text
from sabir.runtime import ENGINES, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.cli._feeds import Feeds
    from sabir.compilation import Roofline
    from sabir.ir import Model
    from sabir.schema import Registry

EXAMPLES = (
    "sabir bench model.onnx --dim batch=8",
    "sabir bench model.onnx --engine compiled --threads 1 --rounds 200",
    "sabir bench model.onnx --against onnxruntime",
    "sabir bench models/ --against onnxruntime -o table.html",
)
_GIGA = 1e9
_BLOCK = 10  # timed runs of one program before the other has its turn
_WARM = 2  # runs before those of a block: caches and threads
_PAUSE = 0.15  # seconds, after which the threads of a program that waits have gone to sleep
_PERCENTILES = (50, 90, 99)
_RTOL, _ATOL = 1e-3, 1e-4


class Work(NamedTuple):
    """The operations of one run, as far as kernels do them, and what the machine could do."""

    flops: int
    evaluated: int
    limits: Roofline


class Measured(NamedTuple):
    """The times of one program in seconds, and the bytes of memory that it needed, where they are known."""

    name: str
    seconds: list[float]
    memory: int | None

    def percentile(self, percent: int) -> float:
        """Return the time that so many percent of the runs do not exceed."""
        return float(np.percentile(self.seconds, percent))


def _choice(name: str, known: Sequence[str]) -> Callable[[str | None], str | None]:
    def check(text: str | None) -> str | None:
        if text is not None and text not in known:
            raise typer.BadParameter(f"there is no {name} {text!r}; there are {', '.join(known)}")
        return text

    return check


def bench(  # ruff: ignore[too-many-arguments]  each is an option
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model, or a folder of .onnx, .onnxtxt and .textproto files."),
    ],
    *,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    shapes: ShapesOption = None,
    seed: SeedOption = 0,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            callback=_choice("engine", ("auto", *ENGINES)),
            help=f"The engine: auto, {', '.join(ENGINES)}.",
        ),
    ] = "auto",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM",
            callback=_choice("program", PEERS),
            help=f"Measure another program too, where it is installed: {', '.join(PEERS)}.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Time N runs.")] = 50,
    threads: ThreadsOption = None,
    precision: PrecisionOption = "exact",
    newer_opsets: NewerOpsetsOption = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=f"Also write the table of a folder: {', '.join(FORMATS)}.",
        ),
    ] = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Measure how fast models run, in time, GFLOP/s and memory.

    With --against another program runs the same model on the same inputs and as many threads, in turns:
    blocks of some runs, with a pause between them in which the threads of the other go to sleep. The exit
    code is 1 if their results differ.

    GFLOP/s count the operations of kernels, and are compared with the most that this machine was measured to
    do. The memory is the most that the process has used up to the first runs, with the model itself.

    Each model of a folder is measured in a process of its own, one after the other.
    """
    if model.is_dir():
        bench_folder(context, model, output, as_json=as_json)
        return
    if output is not None:
        refuse("-o writes the table of a folder; for one model redirect --json")
    registry, loaded = registry_of(operators, documents), load_any(model)
    chosen: Any = engine  # one of the names, as the option has checked
    session = Session(
        loaded, engine=chosen, threads=threads, newer_opsets=newer_opsets, registry=registry,
        precision=precision,
    )  # fmt: skip
    feeds = gather(session.inputs, feed_options({p.name for p in session.inputs}, inputs, dims, shapes, seed))
    values = values_of(feeds.values)
    with counting_bar("compiling") as progress:
        session.compile(values, progress)
    results = session.run(values)
    memory = peak_memory()
    programs: dict[str, Callable[[Mapping[str, Any]], Any]] = {session.engine: session.run}
    problems: list[str] = []
    if against is not None:
        programs[against] = peer(against, loaded, threads or usable_cores())
        problems = _differences(results, programs[against](values))
    times = measure(programs, values, rounds)
    work = _work(loaded, registry, values, threads, Settings(precision, newer_opsets=newer_opsets))
    found = [Measured(n, s, memory if n == session.engine else None) for n, s in times.items()]
    if as_json:
        write_json(_as_json(found, work, feeds, problems))
    else:
        _report(shown(Path(model.name)), found, work, feeds, problems)
    if problems:
        raise typer.Exit(FAULTY)


def measure(
    programs: Mapping[str, Callable[[Mapping[str, Any]], Any]], feeds: Mapping[str, Any], rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of so many runs of each program, which run in turns, a block of runs each."""
    found: dict[str, list[float]] = {name: [] for name in programs}
    for start in range(0, rounds, _BLOCK):
        for name, run in programs.items():
            if len(programs) > 1:
                time.sleep(_PAUSE)
            for _ in range(_WARM):
                run(feeds)
            for _ in range(min(_BLOCK, rounds - start)):
                started = time.perf_counter()
                run(feeds)
                found[name].append(time.perf_counter() - started)
    return found


def _differences(results: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    compared = [difference(n, results[n], other, _RTOL, _ATOL) for n, other in others.items() if n in results]
    return [f"output {c.name}: {c.problem}" for c in compared if c.problem]


def _work(
    model: Model,
    registry: Registry,
    feeds: Mapping[str, Any],
    threads: int | None,
    settings: Settings,
) -> Work | None:
    """Return the work of a run; None where there are no kernels for this machine."""
    try:
        compiled = Compiled(model, registry, threads=threads, settings=settings)
        plan = compiled.compile(feeds)
        return Work(plan.flops, len(plan.explain().evaluated), compiled.roofline())
    except UnsupportedError:
        return None


def peak_memory() -> int | None:
    """Return the most bytes of memory that this process has used; None where the system does not tell."""
    try:
        import resource  # ruff: ignore[import-outside-top-level]  Windows has none
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10  # bytes there, KiB elsewhere


# the report


def _report(
    name: str, found: Sequence[Measured], work: Work | None, feeds: Feeds, problems: Sequence[str]
) -> None:
    screen = Screen()
    screen.line(f"{screen.paint(name, bold=True)}: {counted(len(found[0].seconds), 'run')}")
    columns = ("", *(f"p{p}" for p in _PERCENTILES), "GFLOP/s", "of peak", "memory")
    screen.table([columns, *(_row(m, work) for m in found)], "cyan", *["right"] * 6)
    if len(found) > 1:
        first, second = found
        ratio = second.percentile(50) / first.percentile(50)
        screen.line(f"   {second.name} / {first.name}: {ratio:.3g}, the ratio of the medians")
    notes = [*feeds.assumed]
    if work is None:
        notes.append("GFLOP/s are unknown: there are no kernels for this machine or model")
    elif work.evaluated:
        notes.append(f"GFLOP/s count kernels alone; {counted(work.evaluated, 'node')} without one ran too")
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in notes)
    screen.lines(f"   the results differ: {plain(problem)}" for problem in problems)


def _row(m: Measured, work: Work | None) -> tuple[str, ...]:
    rate = _rate(m, work)
    return (
        m.name,
        *(seconds_text(m.percentile(p)) for p in _PERCENTILES),
        "" if rate is None else f"{rate / _GIGA:.3g}",
        "" if rate is None or work is None else f"{rate / work.limits.flops:.1%}",
        "" if m.memory is None else bytes_text(m.memory),
    )


def _rate(m: Measured, work: Work | None) -> float | None:
    return None if work is None or not work.flops else work.flops / m.percentile(50)


def _as_json(
    found: Sequence[Measured], work: Work | None, feeds: Feeds, problems: Sequence[str]
) -> dict[str, Any]:
    def one(m: Measured) -> dict[str, Any]:
        rate = _rate(m, work)
        return {
            "name": m.name,
            **{f"p{p}": m.percentile(p) for p in _PERCENTILES},
            "flops_per_second": rate,
            "of_peak": None if rate is None or work is None else rate / work.limits.flops,
            "memory": m.memory,
            "seconds": m.seconds,
        }

    medians = [m.percentile(50) for m in found]
    return {
        "programs": [one(m) for m in found],
        "ratio": medians[1] / medians[0] if len(medians) > 1 else None,
        "flops": None if work is None else work.flops,
        "limits": None if work is None else work.limits._asdict(),
        "evaluated": None if work is None else work.evaluated,
        "assumed": list(feeds.assumed),
        "differences": list(problems),
    }
